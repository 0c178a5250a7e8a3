//! The phases of a process that ends: serve, drain, close, stop.
//!
//! Every listener and connection follows the phase held here. A phase never goes back.

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Serving,
    /// Not ready any more, but every call is answered; HTTP/1.1 answers carry `Connection: close`.
    Draining,
    /// New connections are refused. Open ones get their answer, also for a call that is still on its way.
    Closing,
    /// Answers under way are finished; nothing new is accepted.
    Stopping,
}

/// The sender of phase changes.
#[derive(Debug, Clone)]
pub struct Drain(watch::Sender<Phase>);

impl Drain {
    pub fn new() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }

    /// Enters `phase`; entering an earlier one does nothing.
    pub fn enter(&self, phase: Phase) {
        self.0.send_if_modified(|current| {
            let later = phase > *current;
            *current = phase.max(*current);
            later
        });
    }

    pub fn follow(&self) -> watch::Receiver<Phase> {
        self.0.subscribe()
    }

    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}
