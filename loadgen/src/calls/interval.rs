//! Counts and measurements of the calls since the last call of `take`. The worker writes into a recorder, and `take`
//! swaps it for another.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::oracle::Found;
use crate::examples::Examples;
use crate::failure::Failure;
use crate::histogram;

/// The numbers of calls by outcome, which can be added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of calls whose planned time has come.
    pub planned: u64,
    /// Number of calls that were made.
    pub sent: u64,
    /// Number of calls that were not made, because too many were in flight or the worker was late.
    pub overflow: u64,
    /// Successful answers to reads of counts and lists.
    pub read: u64,
    pub set: u64,
    /// Permitted calls that got no successful answer.
    pub errors: u64,
    /// Replica counts that other clients set directly in the control plane.
    pub by_others: u64,
    /// Changes by other clients that the control plane refused; the subject is not at fault.
    pub others_failed: u64,
    /// Number of calls of unauthorised callers that were refused.
    pub turned_away: u64,
    /// Number of calls of unauthorised callers that were accepted.
    pub let_in: u64,
    /// Calls of unauthorised callers without an answer: no connection could be made, or the timeout passed.
    pub unanswered: u64,
    /// Answers that were compared with the commits: with a count, or denying that the Deployment exists.
    pub judged: u64,
    /// Answers among `judged` with a count that was never committed.
    pub wrong: u64,
    /// Replica counts that the subject confirmed as set, but that were never committed.
    pub lost: u64,
    /// Answers that could not be judged.
    pub unjudged: u64,
    /// Calls that were cut off because the load was stopped and the drain time was over.
    pub abandoned: u64,
}

/// Counts and latencies since the last call of `take`. Histograms contain microseconds, from 1 us to 120 s with 3
/// significant digits.
#[derive(Debug, Clone)]
pub struct Interval {
    /// The numbers of calls by outcome.
    pub counts: Counts,
    /// Time from the planned time to the end of the answer, for reads of counts and lists.
    pub read: Histogram<u64>,
    /// Time from the planned time to the end of the answer, for counts that were set.
    pub set: Histogram<u64>,
    /// Time from the planned time to the real start of the call, which is the lateness of the generator.
    pub lateness: Histogram<u64>,
    /// The age of the counts in the answers: how long before the call another count replaced them.
    pub staleness: Histogram<u64>,
    /// Texts of failures and wrong answers: at most five, all different.
    pub examples: Vec<String>,
}

impl Default for Interval {
    fn default() -> Self {
        let empty = histogram::empty;
        Self {
            counts: Counts::default(),
            read: empty(),
            set: empty(),
            lateness: empty(),
            staleness: empty(),
            examples: Vec::new(),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) interval: Interval,
    examples: Examples,
}

impl Recorder {
    pub(super) fn counts(&mut self) -> &mut Counts {
        &mut self.interval.counts
    }

    pub(super) fn sent(&mut self, lateness: Duration) {
        self.interval.counts.sent += 1;
        histogram::record(&mut self.interval.lateness, lateness);
    }

    pub(super) fn read(&mut self, response: Duration) {
        self.interval.counts.read += 1;
        histogram::record(&mut self.interval.read, response);
    }

    pub(super) fn set(&mut self, response: Duration) {
        self.interval.counts.set += 1;
        histogram::record(&mut self.interval.set, response);
    }

    pub(super) fn failed(&mut self, failure: &Failure) {
        self.interval.counts.errors += 1;
        self.examples.note(failure.class.text(), || failure.text.clone());
    }

    pub(super) fn others_failed(&mut self, why: &str) {
        self.interval.counts.others_failed += 1;
        self.examples.note("past the subject", || why.to_owned());
    }

    pub(super) fn let_in(&mut self, who: &str, how: &str) {
        self.interval.counts.let_in += 1;
        self.examples.note("let in", || format!("{who}: {how}"));
    }

    pub(super) fn found(&mut self, found: Found) {
        match found {
            Found::Right(age) => {
                self.interval.counts.judged += 1;
                histogram::record(&mut self.interval.staleness, age);
            }
            Found::Wrong(why) => {
                self.interval.counts.judged += 1;
                self.interval.counts.wrong += 1;
                self.examples.note("wrong", || why);
            }
            Found::Stored => {}
            Found::Lost(why) => {
                self.interval.counts.lost += 1;
                self.examples.note("lost", || why);
            }
            Found::Unknown => self.interval.counts.unjudged += 1,
        }
    }

    pub(super) fn finish(self, (planned, overflow): (u64, u64)) -> Interval {
        let overflow = overflow + self.interval.counts.overflow;
        let counts = Counts { planned, overflow, ..self.interval.counts };
        Interval { counts, examples: self.examples.into_texts(), ..self.interval }
    }
}
