//! [`Arrivals`] and the planned times that follow from it. Pure: a plan of 100 hours is an iterator, never a list.
//!
//! The number of arrivals is fixed by rate and length, so that "planned" can be compared with "done" exactly. A Poisson
//! process conditioned on its count is that many independent uniform times in order; the next of `k` remaining uniform
//! times in a remaining stretch `r` lies `r * (1 - u^(1/k))` ahead, so they can be drawn one by one.

use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use units::Rate;

/// How arrivals are spread over time.
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
    length: Duration,
    total: u64,
    next: u64,
    at_s: f64,
    rng: ChaCha8Rng,
}

impl Times {
    pub(crate) fn new(arrivals: Arrivals, rate: Rate, length: Duration, rng: ChaCha8Rng) -> Self {
        Self { arrivals, length, total: count(rate, length), next: 0, at_s: 0.0, rng }
    }

    fn constant(&self) -> Duration {
        let ns = self.length.as_nanos() * u128::from(self.next) / u128::from(self.total);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    fn poisson(&mut self) -> Duration {
        let remaining = (self.total - self.next) as f64;
        let stretch_s = self.length.as_secs_f64() - self.at_s;
        let u = 1.0 - self.rng.random::<f64>(); // in (0, 1]: the logarithm is finite
        self.at_s += -stretch_s * (u.ln() / remaining).exp_m1();
        Duration::from_secs_f64(self.at_s.max(0.0)).min(self.length)
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
        Some(at)
    }
}

/// How many arrivals a rate makes in a length of time, rounded to the nearest.
pub(crate) fn count(rate: Rate, length: Duration) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and `as` saturates")]
    let whole = (rate.as_per_second() * length.as_secs_f64()).round() as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed;
    use proptest::prelude::*;

    fn times(arrivals: Arrivals, per_second: f64, length: Duration, seed: u64) -> Times {
        Times::new(arrivals, Rate::per_second(per_second), length, seed::stream(seed, "arrivals"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        /// Whatever the rate, arrivals are in order, inside the length, exactly as many as planned, and repeat for a seed.
        #[test]
        fn ordered_inside_and_exact(per_second in 0.1f64..2000.0, seconds in 1u64..20, seed: u64, even: bool) {
            let arrivals = if even { Arrivals::Constant } else { Arrivals::Poisson };
            let length = Duration::from_secs(seconds);
            let all: Vec<Duration> = times(arrivals, per_second, length, seed).collect();
            prop_assert_eq!(all.len() as u64, count(Rate::per_second(per_second), length));
            prop_assert!(all.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert!(all.iter().all(|&at| at <= length));
            let again: Vec<Duration> = times(arrivals, per_second, length, seed).collect();
            prop_assert_eq!(all, again);
        }

        /// A Poisson process has a count in each second whose mean and variance both equal the rate, all along the run.
        #[test]
        fn poisson_mean_and_variance(seed: u64) {
            let (rate, seconds) = (50.0, 400u64);
            let mut counts = vec![0f64; 400];
            for at in times(Arrivals::Poisson, rate, Duration::from_secs(seconds), seed) {
                let second = usize::try_from(at.as_secs()).unwrap_or(usize::MAX).min(399);
                counts[second] += 1.0;
            }
            let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
            let variance = counts.iter().map(|c| (c - rate).powi(2)).sum::<f64>() / 400.0;
            // Six standard errors: sqrt(50/100) is 0.71 for a quarter's mean, 50*sqrt(2/400) is 3.5 for the variance.
            for quarter in counts.chunks(100) {
                prop_assert!((mean(quarter) - rate).abs() < 4.3, "mean {} in a quarter", mean(quarter));
            }
            prop_assert!((variance - rate).abs() < 21.5, "variance {variance}");
        }
    }

    #[test]
    fn constant_is_evenly_spaced_without_drift() {
        let length = Duration::from_hours(100);
        let mut all = times(Arrivals::Constant, 3.0, length, 1);
        assert_eq!(all.next(), Some(Duration::ZERO));
        assert_eq!(all.next(), Some(Duration::from_nanos(333_333_333)));
        assert_eq!(all.nth(1_079_996), Some(Duration::from_nanos(359_999_333_333_333)), "two before the end");
    }
}
