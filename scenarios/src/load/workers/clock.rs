//! The offset of a worker's clock from the coordinator's, with its uncertainty. Does no I/O.

use std::time::Duration;

/// Maximum number of pings. The ping with the quickest answer gives the offset.
pub(crate) const ROUNDS_MAX: u64 = 200;
/// Number of pings after which a good enough result ends the comparison of clocks.
pub(crate) const ROUNDS_LEAST: u64 = 20;
/// Maximum difference between the starts of two workers. At 1,000 requests per second, five requests are planned within
/// this time.
pub(crate) const UNCERTAINTY_MAX: Duration = Duration::from_millis(5);

/// The result of the pings so far. All times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Offset {
    best: Option<(u64, i128)>,
    rounds: u64,
}

impl Offset {
    /// Adds a ping sent at `sent` with a pong received at `came`, both on the coordinator's clock. The worker's clock
    /// showed `clock` between sending and receiving.
    pub(crate) fn round(&mut self, sent: u64, came: u64, clock: u64) {
        self.rounds += 1;
        let way = came.saturating_sub(sent);
        if self.best.is_none_or(|(best, _)| way < best) {
            let middle = i128::from(sent) + i128::from(way / 2);
            self.best = Some((way, i128::from(clock) - middle));
        }
    }

    /// Half of the quickest round trip, because the worker read its clock at an unknown moment of the round trip.
    pub(crate) fn uncertainty(&self) -> Option<Duration> {
        self.best.map(|(way, _)| Duration::from_nanos(way / 2))
    }

    /// Whether no further pings are needed.
    pub(crate) fn is_settled(&self) -> bool {
        let good = self.uncertainty().is_some_and(|uncertainty| uncertainty <= UNCERTAINTY_MAX);
        self.rounds >= ROUNDS_MAX || (self.rounds >= ROUNDS_LEAST && good)
    }

    /// The time of the worker's clock at a time of the coordinator's clock.
    pub(crate) fn theirs(&self, ours: u64) -> Option<u64> {
        let (_, offset) = self.best?;
        u64::try_from(i128::from(ours) + offset).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The true offset is within the stated uncertainty, for any delay in both directions.
        #[test]
        fn the_truth_is_within_the_uncertainty(
            offset in -1_000_000_000i64..1_000_000_000,
            rounds in prop::collection::vec((0u64..5_000_000, 0u64..5_000_000), 1..40),
        ) {
            let mut estimate = Offset::default();
            let mut now = 2_000_000_000u64;
            for (there, back) in rounds {
                let clock = u64::try_from(i128::from(now + there) + i128::from(offset)).unwrap();
                estimate.round(now, now + there + back, clock);
                now += there + back + 1000;
            }
            let theirs = i128::from(estimate.theirs(now).unwrap());
            let off = (theirs - i128::from(now) - i128::from(offset)).unsigned_abs();
            prop_assert!(off <= estimate.uncertainty().unwrap().as_nanos() + 1, "{off} ns");
        }
    }

    #[test]
    fn it_settles_when_it_is_good_or_hopeless() {
        let mut good = Offset::default();
        (0..ROUNDS_LEAST).for_each(|i| good.round(i, i + 1000, 0));
        assert!(good.is_settled());
        let mut bad = Offset::default();
        (0..ROUNDS_MAX - 1).for_each(|i| bad.round(i, i + 1_000_000_000, 0));
        assert!(!bad.is_settled());
        bad.round(0, 1_000_000_000, 0);
        assert!(bad.is_settled() && bad.uncertainty().unwrap() > UNCERTAINTY_MAX);
    }
}
