//! Delays between failed requests, with full jitter and an upper bound; the server's Retry-After is the minimum.
//!
//! The functions of this module get random numbers and times as arguments.

use std::time::Duration;

/// Longest Retry-After that is obeyed; longer values are shortened to this limit.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(2);

/// Computes the delay after each of several failures in a row.
#[derive(Debug, Clone)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    pub fn new(initial: Duration, max: Duration) -> Self {
        Self { initial, max, failures: 0 }
    }

    /// Resets the number of failures after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// The delay after one more failure. `draw` is a random number from 0 to 1; `asked` is the server's Retry-After.
    pub fn next(&mut self, draw: f64, asked: Option<Duration>) -> Duration {
        let bound = self.initial.saturating_mul(1u32.checked_shl(self.failures).unwrap_or(u32::MAX)).min(self.max);
        self.failures = self.failures.saturating_add(1);
        let wait = bound.mul_f64(draw.clamp(0.0, 1.0));
        match asked {
            // The server's wait is a minimum; jitter on top keeps its clients from coming back together.
            Some(asked) => asked.min(RETRY_AFTER_MAX) + wait.min(Duration::from_secs(1)),
            None => wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_double_up_to_the_limit_and_reset() {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(30));
        let waits: Vec<_> = (0..10).map(|_| backoff.next(1.0, None).as_millis()).collect();
        assert_eq!(waits, [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
        assert_eq!(backoff.next(0.0, None), Duration::ZERO);
        backoff.reset();
        assert_eq!(backoff.next(0.5, None), Duration::from_millis(100));
        assert_eq!(backoff.next(1.0, Some(Duration::from_secs(7))), Duration::from_millis(7_400));
        assert!(backoff.next(1.0, Some(Duration::from_hours(9))) < Duration::from_mins(3));
        for _ in 0..100 {
            assert!(backoff.next(1.0, None) <= Duration::from_secs(30));
        }
    }
}
