//! [`Interval`]: churn's counts and measurements since the last call of `take`. Pure.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::answers::Answers;
use crate::examples::{self, Examples};
use crate::histogram;

/// Counts and latencies since the last `take`. Histograms hold microseconds, 1 us to 120 s, 3 significant digits.
///
/// Over a whole run `planned == created + updated + deleted + refused + failed`, apart from objects that had to be created by an
/// update because their creation had failed. The fill and the canary are not counted here, except in `objects_total`.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Operations whose planned time has come; each object of a collection counts.
    pub planned: u64,
    /// Objects created.
    pub created: u64,
    /// Objects changed.
    pub updated: u64,
    /// Objects deleted, or found to be already deleted.
    pub deleted: u64,
    /// Operations that a webhook refused; `answers` shows which of them rightly.
    pub refused: u64,
    /// Operations that failed, or could not be begun because too many were in flight.
    pub failed: u64,
    /// From the planned time to the real start of the operation.
    pub lateness: Histogram<u64>,
    /// From the real start of the operation to its end.
    pub service: Histogram<u64>,
    /// Distinct objects that were ever created since the start, including fill and canary. Not reset by `take`.
    pub objects_total: u64,
    /// At most five distinct texts of failures.
    pub examples: Vec<String>,
    /// Webhooks' answers, including those to fill and canary, if they are judged.
    pub answers: Answers,
}

impl Default for Interval {
    fn default() -> Self {
        Self {
            planned: 0,
            created: 0,
            updated: 0,
            deleted: 0,
            refused: 0,
            failed: 0,
            lateness: histogram::empty(),
            service: histogram::empty(),
            objects_total: 0,
            examples: Vec::new(),
            answers: Answers::default(),
        }
    }
}

impl Interval {
    /// The sum of the same interval of several sections; none if there are none.
    pub fn of_all(sections: &[Self]) -> Option<Self> {
        let (first, others) = sections.split_first()?;
        let mut all = first.clone();
        for other in others {
            let objects_total = all.objects_total + other.objects_total;
            all.add(other);
            all.objects_total = objects_total;
        }
        Some(all)
    }

    /// Adds a later interval to this one, for totals.
    pub fn add(&mut self, later: &Self) {
        self.planned += later.planned;
        self.created += later.created;
        self.updated += later.updated;
        self.deleted += later.deleted;
        self.refused += later.refused;
        self.failed += later.failed;
        self.answers.add(&later.answers);
        histogram::add(&mut self.lateness, &later.lateness);
        histogram::add(&mut self.service, &later.service);
        self.objects_total = self.objects_total.max(later.objects_total);
        examples::merge(&mut self.examples, &later.examples);
    }
}

/// The effect of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Created,
    Updated,
    Deleted,
    /// A webhook refused it.
    Refused,
}

/// Collects an interval. The worker writes, `take` swaps.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    interval: Interval,
    examples: Examples,
    /// Objects of collections beyond the first.
    more: u64,
}

impl Recorder {
    pub(super) fn timed(&mut self, lateness: Duration, service: Duration) {
        histogram::record(&mut self.interval.lateness, lateness);
        histogram::record(&mut self.interval.service, service);
    }

    pub(super) fn done(&mut self, effect: Effect) {
        self.done_many(effect, 1);
    }

    /// One operation with the same effect on many objects; each counts as planned.
    pub(super) fn done_many(&mut self, effect: Effect, objects: u64) {
        *match effect {
            Effect::Created => &mut self.interval.created,
            Effect::Updated => &mut self.interval.updated,
            Effect::Deleted => &mut self.interval.deleted,
            Effect::Refused => &mut self.interval.refused,
        } += objects;
        self.more += objects - 1;
    }

    pub(super) fn failed(&mut self, sort: &'static str, text: impl FnOnce() -> String) {
        self.interval.failed += 1;
        self.examples.note(sort, text);
    }

    /// A failure that belongs to no operation.
    pub(super) fn example(&mut self, sort: &'static str, text: impl FnOnce() -> String) {
        self.examples.note(sort, text);
    }

    pub(super) fn finish(self, (planned, overflow): (u64, u64), objects_total: u64) -> Interval {
        let failed = self.interval.failed + overflow;
        let planned = planned + self.more;
        Interval { planned, failed, objects_total, examples: self.examples.into_texts(), ..self.interval }
    }
}
