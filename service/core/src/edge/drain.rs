//! The phases of a process that ends: serve, drain, stop.
//!
//! Owns the phase that every listener and connection follows. It never goes back.

use tokio::sync::watch;

/// Where the process is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Normal work.
    Serving,
    /// Not ready any more, but every call is answered; HTTP/1.1 answers carry `Connection: close`.
    Draining,
    /// No new connection is taken; those that are open get their answer, also for a call that is only on its way.
    Closing,
    /// Answers under way are finished, nothing new is taken.
    Stopping,
}

/// Changes the phase.
#[derive(Debug, Clone)]
pub struct Drain(watch::Sender<Phase>);

impl Drain {
    /// A process that serves.
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

    /// Whoever wants to follow.
    pub fn follow(&self) -> watch::Receiver<Phase> {
        self.0.subscribe()
    }

    /// The phase now.
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}
