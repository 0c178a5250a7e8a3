//! The time of the last call to this process.
//!
//! Lock-free, because every review writes it. Whole seconds, because it is compared with times of objects, which have
//! no fractions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The last call, in seconds since 1970. A process that has just started counts as called: it cannot know about earlier
/// calls.
#[derive(Debug)]
pub struct Calls(AtomicU64);

impl Calls {
    pub fn new() -> Self {
        Self(AtomicU64::new(now_s()))
    }

    pub fn note(&self) {
        let now = now_s();
        // Most reviews come within a second of another one: an unchanged time is not written, so that no cache line
        // moves.
        if self.0.load(Ordering::Relaxed) != now {
            self.0.store(now, Ordering::Relaxed);
        }
    }

    pub(super) fn last_s(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Calls {
    fn default() -> Self {
        Self::new()
    }
}

/// Seconds since 1970.
pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
