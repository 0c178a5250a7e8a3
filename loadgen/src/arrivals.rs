//! [`Arrivals`] and the planned times that follow from it. Pure: a plan of 100 hours is an iterator, never a list.
//!
//! The number of arrivals is fixed by rate and length, so that "planned" can be compared with "done" exactly. A Poisson
//! process conditioned on its count is that many independent uniform times in order. The next of `k` remaining uniform
//! times in a remaining stretch `r` lies `r * (1 - u^(1/k))` ahead, so they can be drawn one by one. If the rate
//! changes, the same is done on the axis of the cumulative rate, and [`Profile`] maps a value of it to its time.

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

/// The distribution of arrivals over time: even or random, round a rate that may change along a [`Shape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Arrivals {
    /// Evenly: the same time between any two.
    Constant,
    /// Independently of each other, as requests of many users are: bursts and gaps occur.
    #[default]
    Poisson,
}

/// Planned times as offsets from the beginning, in order.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    arrivals: Arrivals,
    profile: Arc<Profile>,
    total: u64,
    next: u64,
    /// The passed part of the profile's measure; only Poisson arrivals need it.
    passed: f64,
    cursor: usize,
    /// The last time: rounding to nanoseconds must not change the order of two arrivals.
    last: Duration,
    rng: ChaCha8Rng,
}

impl Times {
    /// A constant rate.
    pub(crate) fn new(arrivals: Arrivals, rate: Rate, length: Duration, rng: ChaCha8Rng) -> Self {
        Self::along(arrivals, Arc::new(Profile::flat(rate, length)), rng)
    }

    /// A rate that follows the profile.
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

/// The number of arrivals of a rate in a length of time, rounded to the nearest.
pub(crate) fn count(rate: Rate, length: Duration) -> u64 {
    Profile::flat(rate, length).count()
}

#[cfg(test)]
mod tests;
