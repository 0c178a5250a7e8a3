//! The state shared between a generator thread and its load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::corpus::Corpus;
use super::interval::{Interval, Recorder};
use crate::open_loop::Counts;

/// The stop signal that a generator thread reads when it wakes.
#[derive(Debug, Default)]
pub(super) struct Stop {
    stopping: AtomicBool,
    until: Mutex<Option<Instant>>,
}

impl Stop {
    /// Plan no further request and finish by `until`.
    pub(super) fn by(&self, until: Instant) {
        *self.until.lock() = Some(until);
        self.stopping.store(true, Ordering::Release);
    }

    /// `None`: go on. Else plan no further request and finish by then.
    pub(super) fn until(&self) -> Option<Instant> {
        if self.stopping.load(Ordering::Acquire) { *self.until.lock() } else { None }
    }
}

/// The records that a thread writes and the load takes.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub counts: Arc<Counts>,
    pub recorder: Mutex<Recorder>,
}

/// A recorder that was taken, with the counts of the same moment.
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
