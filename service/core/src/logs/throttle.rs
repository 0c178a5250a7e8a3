//! How many lines of one kind are written: whoever reaches a port must not be able to fill a disk.
//!
//! Owns the count of lines that were left out; it goes with the next line that is written.

use std::sync::atomic::{AtomicU64, Ordering};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// Lines a second, for long.
const PER_SECOND: u32 = 10;
/// Lines at once: all clients of a small installation come back together after a restart.
const BURST: u32 = 100;

/// Lets ten lines a second through, and a hundred at once.
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
    /// Whether a line may be written now; then with how many were left out before it.
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
