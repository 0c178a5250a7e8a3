//! [`Arrivals`]: how requests are spread over time, and the planned times that follow. Pure: a plan of 100 hours is an
//! iterator, never a list.
//!
//! Rate and length fix the number of arrivals, so that planned and sent requests can be compared exactly. A Poisson
//! process with a fixed count consists of that many independent uniform times, sorted. The next of `k` remaining times
//! in a remaining duration `r` is `r * (1 - u^(1/k))` ahead, so times can be drawn one by one. If the rate changes, the
//! number of expected arrivals replaces time, and [`Profile`] converts that number back to a time.

mod profile;
mod recording;
mod schedule;
mod shape;

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use units::Rate;

pub(crate) use profile::Profile;
pub(crate) use recording::{Entries, Recorded, Recording};
pub use recording::{LineError, RecordingError};
pub use schedule::Schedule;
pub(crate) use schedule::Stream;
pub use shape::{Ramp, Shape, Sine, Stairs, Step};

/// How arrivals are distributed over time: evenly or at random, at a rate that a [`Shape`] may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Arrivals {
    /// Requests come evenly, with the same time between any two arrivals.
    Constant,
    /// Requests come independently of each other, as from many users, sometimes close together and sometimes far apart.
    #[default]
    Poisson,
}

/// The planned times in order, as offsets from the beginning of the load.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    arrivals: Arrivals,
    profile: Arc<Profile>,
    total: u64,
    next: u64,
    /// How much of the profile's measure (expected arrivals or seconds) has passed; only Poisson arrivals need it.
    passed: f64,
    cursor: usize,
    /// The last planned time, so that rounding to nanoseconds does not change the order of two arrivals.
    last: Duration,
    rng: ChaCha8Rng,
}

impl Times {
    /// The planned times at a constant rate.
    pub(crate) fn new(arrivals: Arrivals, rate: Rate, length: Duration, rng: ChaCha8Rng) -> Self {
        Self::along(arrivals, Arc::new(Profile::flat(rate, length)), rng)
    }

    /// The planned times at a rate that follows the profile.
    pub(crate) fn along(arrivals: Arrivals, profile: Arc<Profile>, rng: ChaCha8Rng) -> Self {
        Self { arrivals, total: profile.count(), profile, next: 0, passed: 0.0, cursor: 0, last: Duration::ZERO, rng }
    }

    fn constant(&mut self) -> Duration {
        if let Some(length) = self.profile.flat_length() {
            // Whole nanoseconds: no drift, however long the run.
            let ns = length.as_nanos() * u128::from(self.next) / u128::from(self.total);
            return Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        }
        let share = self.next as f64 / self.total as f64;
        self.profile.when(self.profile.measure() * share, &mut self.cursor)
    }

    fn poisson(&mut self) -> Duration {
        let remaining = (self.total - self.next) as f64;
        let stretch = self.profile.measure() - self.passed;
        let u = 1.0 - self.rng.random::<f64>(); // in (0, 1]: the logarithm is finite
        self.passed += -stretch * (u.ln() / remaining).exp_m1();
        self.profile.when(self.passed, &mut self.cursor)
    }
}

impl Iterator for Times {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.next >= self.total {
            return None;
        }
        let at = match self.arrivals {
            Arrivals::Constant => self.constant(),
            Arrivals::Poisson => self.poisson(),
        };
        self.next += 1;
        self.last = self.last.max(at);
        Some(self.last)
    }
}

/// The number of arrivals at a rate in a duration, rounded to the nearest number.
pub(crate) fn count(rate: Rate, length: Duration) -> u64 {
    Profile::flat(rate, length).count()
}

#[cfg(test)]
mod tests;
