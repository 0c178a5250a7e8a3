//! The rate limit of log lines of one kind: a stranger that reaches a port must not be able to fill a disk.
//!
//! This module owns the count of skipped lines; the next written line carries it.

use std::sync::atomic::{AtomicU64, Ordering};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// Lines per second in the long run.
const PER_SECOND: u32 = 10;
/// Lines at once: all clients of a small installation come back together after a restart.
const BURST: u32 = 100;

/// Allows ten lines per second, and a hundred at once.
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
    /// The number of lines skipped before this one, or `None` if the line must not be written.
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
