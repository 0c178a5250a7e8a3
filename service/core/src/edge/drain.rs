//! The phases of a process: serve, drain, close, stop.
//!
//! Every listener and connection acts according to the phase. The process never returns to an earlier phase.

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Serving,
    /// The process is not ready any more but answers every call; HTTP/1.1 answers have `Connection: close`.
    Draining,
    /// New connections are refused. Open connections get their answers, even for a call that is still arriving.
    Closing,
    /// Answers that were started are finished; nothing new is accepted.
    Stopping,
}

#[derive(Debug, Clone)]
pub struct Drain(watch::Sender<Phase>);

impl Drain {
    pub fn new() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }

    /// Enters `phase`. If the process is already in a later phase, the call has no effect.
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
