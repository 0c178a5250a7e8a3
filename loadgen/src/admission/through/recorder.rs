//! Collects an interval. The worker writes, `take` swaps.

use std::time::Duration;

use crate::admission::oracle::Judgement;
use crate::admission::{Counts, Interval};
use crate::examples::Examples;
use crate::failure::{Class, Failure};
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
        let interval = &mut self.interval;
        histogram::record(&mut interval.service, moments.service());
        if judgement.allowed {
            interval.counts.allowed += 1;
            histogram::record(&mut interval.response_allowed, moments.response());
        } else {
            interval.counts.denied += 1;
            histogram::record(&mut interval.response_denied, moments.response());
        }
        if let Some(wrong) = judgement.wrong {
            interval.counts.wrong_verdicts += 1;
            interval.counts.wrong_allows += u64::from(wrong.allow);
            let sort = if wrong.allow { "wrong allow" } else { "wrong verdict" };
            self.examples.note(sort, || wrong.why);
        }
    }

    pub(super) fn failed(&mut self, moments: Moments, failure: Failure) {
        let interval = &mut self.interval;
        histogram::record(&mut interval.service, moments.service());
        histogram::record(&mut interval.response_error, moments.response());
        *match failure.class {
            Class::HttpError => &mut interval.counts.http_error,
            Class::Timeout => &mut interval.counts.timeout,
            Class::Connect => &mut interval.counts.connect,
            Class::Tls => &mut interval.counts.tls,
            Class::InvalidResponse => &mut interval.counts.invalid_response,
        } += 1;
        self.examples.note(failure.class.text(), || failure.text);
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
