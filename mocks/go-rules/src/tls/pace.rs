//! The clock by which certificates are checked if a subject's clock runs faster than the machine's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// A clock that showed the machine's time at some instant and has run faster since then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    since: SystemTime,
    rate: u32,
}

impl Pace {
    /// A clock that runs `rate` times as fast from now on.
    #[must_use]
    pub fn from_now(rate: u32) -> Self {
        Self { since: SystemTime::now(), rate }
    }

    #[must_use]
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// The present time of this clock, since the epoch.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.at(self.since.elapsed().unwrap_or_default())
    }

    fn at(&self, passed: Duration) -> Duration {
        self.since.duration_since(UNIX_EPOCH).unwrap_or_default() + passed.saturating_mul(self.rate)
    }
}

impl TimeProvider for Pace {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_over_in_a_minute() {
        let pace = Pace::from_now(60);
        let later = pace.at(Duration::from_mins(1)).checked_sub(pace.at(Duration::ZERO));
        assert_eq!(later, Some(Duration::from_hours(1)));
        assert!(pace.current_time().unwrap().as_secs() >= UnixTime::now().as_secs());
    }
}
