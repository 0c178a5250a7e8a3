//! [`Interval`]: counts and measurements of churn since the last call of `take`. Pure: no I/O.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::answers::Answers;
use crate::examples::{self, Examples};
use crate::histogram;

/// Counts and latencies since the last call of `take`. Histograms contain microseconds, from 1 us to 120 s with 3
/// significant digits.
///
/// Over a whole run these counts satisfy `planned == created + updated + deleted + refused + failed`. An exception are
/// objects that an update had to create because their creation had failed before. The first objects and canaries are
/// counted only in `objects_total`.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Operations whose planned time has come; each object of a deleted group counts.
    pub planned: u64,
    pub created: u64,
    pub updated: u64,
    /// Number of objects that were deleted, or found to be already deleted.
    pub deleted: u64,
    /// Operations that a webhook refused; `answers` shows which refusals are right.
    pub refused: u64,
    /// Operations that failed, or that could not begin because too many were in flight.
    pub failed: u64,
    /// Time from the planned time to the real start of the operation.
    pub lateness: Histogram<u64>,
    /// Time from the real start of the operation to its end.
    pub service: Histogram<u64>,
    /// Number of different objects that were created since the start, including the first objects and the canary.
    /// `take` does not reset this number.
    pub objects_total: u64,
    /// Texts of failures: at most five, all different.
    pub examples: Vec<String>,
    /// The answers of webhooks, if they are judged, including answers to the first objects and canaries.
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
    /// The sum of one interval over several sections; `None` without sections.
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

/// The effect of an operation on its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Created,
    Updated,
    Deleted,
    Refused,
}

/// Collects the counts and measurements of an interval. The worker writes into a recorder, and `take` swaps it for
/// another.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    interval: Interval,
    examples: Examples,
    /// Number of objects in deleted groups beyond the first of each group.
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

    /// Counts one operation with the same effect on many objects; each object counts as planned.
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

    /// Adds the text of a failure that belongs to no operation.
    pub(super) fn example(&mut self, sort: &'static str, text: impl FnOnce() -> String) {
        self.examples.note(sort, text);
    }

    pub(super) fn finish(self, (planned, overflow): (u64, u64), objects_total: u64) -> Interval {
        let failed = self.interval.failed + overflow;
        let planned = planned + self.more;
        Interval { planned, failed, objects_total, examples: self.examples.into_texts(), ..self.interval }
    }
}
