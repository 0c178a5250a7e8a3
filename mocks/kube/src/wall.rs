//! The server's wall clock: the times that the server writes into objects.
//!
//! Owns by how much this clock is ahead of the machine's. Lifetimes and times of the record stay by the machine's clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// A wall clock that may jump ahead.
#[derive(Debug, Default)]
pub(crate) struct Wall {
    ahead_ns: AtomicI64,
}

impl Wall {
    pub(crate) fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        let ahead = SignedDuration::from_nanos(self.ahead_ns.load(Ordering::Relaxed));
        now.checked_add(ahead).unwrap_or(now)
    }

    pub(crate) fn jump(&self, by: Duration) {
        let by_ns = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        let add = |ahead: i64| Some(ahead.saturating_add(by_ns));
        let _ = self.ahead_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
}
