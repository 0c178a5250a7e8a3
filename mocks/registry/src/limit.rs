//! The rate limit: one token bucket for all requests of the registry.
//!
//! This module is pure: callers pass the time.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// Tokens per second that are added to the bucket. A request takes one token.
    pub per_second: f64,
    /// The size of the bucket: the number of requests that are accepted at once.
    pub burst: u32,
}

/// The token bucket of one registry; without a limit, the bucket accepts every request.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    limit: Option<RateLimit>,
    tokens: f64,
    filled_at: Duration,
}

impl Bucket {
    pub(super) fn new(limit: Option<RateLimit>, now: Duration) -> Self {
        Self { limit, tokens: limit.map_or(0.0, |limit| f64::from(limit.burst)), filled_at: now }
    }

    /// Takes one token, or returns the time until a token is available.
    pub(super) fn take(&mut self, now: Duration) -> Result<(), Duration> {
        let Some(limit) = self.limit else { return Ok(()) };
        let elapsed = now.saturating_sub(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * limit.per_second).min(f64::from(limit.burst.max(1)));
        self.filled_at = self.filled_at.max(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let wait = (1.0 - self.tokens) / limit.per_second;
        // A rate of zero never refills; Retry-After is then an hour.
        Err(Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX).min(Duration::from_hours(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let mut bucket = Bucket::new(Some(RateLimit { per_second: 2.0, burst: 3 }), Duration::ZERO);
        for _ in 0..3 {
            bucket.take(Duration::ZERO).unwrap();
        }
        assert_eq!(bucket.take(Duration::ZERO), Err(Duration::from_millis(500)));
        bucket.take(Duration::from_millis(500)).unwrap();
        assert!(bucket.take(Duration::from_millis(500)).is_err());
        let later = Duration::from_hours(1);
        assert_eq!((0..10).filter(|_| bucket.take(later).is_ok()).count(), 3, "the bucket does not overflow");
    }

    #[test]
    fn no_limit_and_no_rate() {
        let mut open = Bucket::new(None, Duration::ZERO);
        assert!((0..1000).all(|_| open.take(Duration::ZERO).is_ok()));
        let mut shut = Bucket::new(Some(RateLimit { per_second: 0.0, burst: 0 }), Duration::ZERO);
        assert_eq!(shut.take(Duration::from_secs(9)), Err(Duration::from_hours(1)));
    }
}
