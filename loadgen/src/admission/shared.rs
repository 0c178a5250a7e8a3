//! The state that a generator thread shares with [`super::Load`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::corpus::Corpus;
use super::interval::{Interval, Recorder};
use crate::open_loop::Counts;

/// The signal to stop, which a generator thread reads when it wakes.
#[derive(Debug, Default)]
pub(super) struct Stop {
    stopping: AtomicBool,
    until: Mutex<Option<Instant>>,
}

impl Stop {
    /// Stops the thread: it plans no further request and finishes by `until`.
    pub(super) fn by(&self, until: Instant) {
        *self.until.lock() = Some(until);
        self.stopping.store(true, Ordering::Release);
    }

    /// The time by which the thread must finish without planning a further request; `None` while it may go on.
    pub(super) fn until(&self) -> Option<Instant> {
        if self.stopping.load(Ordering::Acquire) { *self.until.lock() } else { None }
    }
}

/// The records that a thread writes and [`super::Load`] takes.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub counts: Arc<Counts>,
    pub recorder: Mutex<Recorder>,
}

/// A recorder that was taken, with the planned and overflow counts of the same moment.
pub(super) struct Taken(Recorder, (u64, u64));

impl Shared {
    pub(super) fn take(&self) -> Taken {
        // Made before the lock is taken: filling 750 KiB with zeros takes longer than a call may wait.
        let fresh = Recorder::default();
        let full = std::mem::replace(&mut *self.recorder.lock(), fresh);
        Taken(full, self.counts.take())
    }
}

impl Taken {
    pub(super) fn finish_with(self, corpus: &Corpus, closed_loop: bool) -> Interval {
        self.0.finish(self.1, corpus, closed_loop)
    }
}
