//! The calls' counts and measurements since the last call of `take`. The worker writes, `take` swaps.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::oracle::Found;
use crate::examples::Examples;
use crate::failure::Failure;
use crate::histogram;

/// The outcomes of calls, as numbers that add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls whose planned time has come.
    pub planned: u64,
    /// Calls that were made.
    pub sent: u64,
    /// Calls dropped unsent, because too many were in flight or the worker was behind.
    pub overflow: u64,
    /// Successful answers to reads of counts and lists.
    pub read: u64,
    /// Counts that were set.
    pub set: u64,
    /// Permitted calls that were not answered with success.
    pub errors: u64,
    /// Counts that other clients set, past the subject.
    pub by_others: u64,
    /// Changes among them that the control plane refused: not the subject's fault.
    pub others_failed: u64,
    /// Calls without a right that were refused.
    pub turned_away: u64,
    /// Calls that were accepted although the caller has no right.
    pub let_in: u64,
    /// Calls without a right that got no answer: no connection came about, or the time was over.
    pub unanswered: u64,
    /// Answers with a count, or with its absence, that were compared with the commits.
    pub judged: u64,
    /// Answers among them with a value that was never committed.
    pub wrong: u64,
    /// Counts that were confirmed as set and never were.
    pub lost: u64,
    /// Answers that could not be judged.
    pub unjudged: u64,
    /// Calls cut off when the load was stopped and the drain time was over.
    pub abandoned: u64,
}

/// Counts and latencies since the last `take`. Histograms hold microseconds, 1 us to 120 s, 3 significant digits.
#[derive(Debug, Clone)]
pub struct Interval {
    /// The outcomes of calls.
    pub counts: Counts,
    /// From the planned time to the end of the answer: reads of counts and lists.
    pub read: Histogram<u64>,
    /// From the planned time to the end of the answer: counts that were set.
    pub set: Histogram<u64>,
    /// From the planned time to the real start: the generator's own lateness.
    pub lateness: Histogram<u64>,
    /// The age of the counts in the answers.
    pub staleness: Histogram<u64>,
    /// At most five distinct texts of failures and wrong answers.
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
