//! Collects the counts and measurements of an interval. The worker writes into a recorder, and `take` swaps it for
//! another.

use std::time::Duration;

use crate::admission::oracle::Judgement;
use crate::admission::{Counts, Interval};
use crate::examples::Examples;
use crate::failure::Failure;
use crate::histogram;
use crate::open_loop::Moments;

#[derive(Debug, Default)]
pub(super) struct Recorder {
    interval: Interval,
    examples: Examples,
}

impl Recorder {
    pub(super) fn sent(&mut self, lateness: Duration) {
        self.interval.counts.sent += 1;
        histogram::record(&mut self.interval.lateness, lateness);
    }

    pub(super) fn answered(&mut self, moments: Moments, judgement: Judgement) {
        self.interval.answered((moments.service(), moments.response()), judgement, &mut self.examples);
    }

    pub(super) fn failed(&mut self, moments: Moments, failure: Failure) {
        self.interval.failed((moments.service(), moments.response()), failure, &mut self.examples);
    }

    pub(super) fn overflow(&mut self) {
        self.interval.counts.overflow += 1;
    }

    pub(super) fn abandoned(&mut self, calls: u64) {
        self.interval.counts.abandoned += calls;
    }

    pub(super) fn finish(self, (planned, overflow): (u64, u64)) -> Interval {
        let overflow = overflow + self.interval.counts.overflow;
        let counts = Counts { planned, overflow, ..self.interval.counts };
        Interval { counts, examples: self.examples.into_texts(), ..self.interval }
    }
}
