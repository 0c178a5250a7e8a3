//! The time of the last call of the webhook in this process.
//!
//! The time is an atomic value, because every review writes it. The time has whole seconds, like the creation times of
//! objects with which the time is compared.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The time of the webhook's last call, in seconds since 1970. The start of the process counts as a call, because the
/// process cannot know about earlier calls.
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

/// The present time in seconds since 1970.
pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
