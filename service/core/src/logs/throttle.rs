//! A rate limit for log lines of one kind: clients of an open port must not be able to fill a disk.
//!
//! This module counts the skipped lines. The next written line states the number of skipped lines.

use std::sync::atomic::{AtomicU64, Ordering};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// Maximum number of lines per second, averaged over a long time.
const PER_SECOND: u32 = 10;
/// Maximum number of lines at once, because all clients of a small installation connect again after a restart.
const BURST: u32 = 100;

/// A limit of ten lines per second, and a hundred lines at once.
#[derive(Debug)]
pub struct Throttle {
    limiter: DefaultDirectRateLimiter,
    left_out: AtomicU64,
}

impl Default for Throttle {
    fn default() -> Self {
        let per_second = std::num::NonZeroU32::new(PER_SECOND).expect("a positive constant");
        let burst = std::num::NonZeroU32::new(BURST).expect("a positive constant");
        let limiter = RateLimiter::direct(Quota::per_second(per_second).allow_burst(burst));
        Self { limiter, left_out: AtomicU64::new(0) }
    }
}

impl Throttle {
    /// The number of lines that were skipped before this one; `None` if this line must be skipped.
    pub fn admit(&self) -> Option<u64> {
        if self.limiter.check().is_ok() {
            return Some(self.left_out.swap(0, Ordering::Relaxed));
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_lines_than_may_be_are_counted_and_not_written() {
        let throttle = Throttle::default();
        let written = (0..10_000).filter(|_| throttle.admit() == Some(0)).count();
        assert!((100..1_000).contains(&written), "{written}");
        assert!(throttle.left_out.load(Ordering::Relaxed) >= 9_000);
    }
}
