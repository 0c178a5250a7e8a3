//! The times at which the subject served objects, by resource. These times show whether the objects that wait at the
//! end of a run are a queue or were overtaken.
//!
//! Keeps a bounded number of these times. The judge draws the conclusion.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Number of serving times that are remembered for one resource: more than the objects that a slow subject serves in a
/// drain.
const TIMES_MAX: usize = 2048;
/// Number of first observations of new objects that are remembered for one resource.
const FIRSTS_MAX: usize = 512;
/// Maximum number of resources whose serving times are kept. Scenarios judge fewer resources.
const RESOURCES_MAX: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Served {
    by_resource: BTreeMap<Arc<str>, OfResource>,
}

#[derive(Debug, Default)]
pub(super) struct OfResource {
    pub total: u64,
    /// The latest time at which one of the served objects began to wait.
    pub newest_since_ms: u64,
    times_ms: VecDeque<u64>,
    /// The first observations of the latest new objects, in the order of these observations.
    firsts: VecDeque<First>,
}

/// The first observation of a new object.
#[derive(Debug, Clone, Copy)]
struct First {
    t_ms: u64,
    since_ms: u64,
}

impl Served {
    /// Notes that an object was served that had waited since `since_ms`. `is_new`: the object was created in the run, and no
    /// version of it had been observed before.
    pub fn note(&mut self, resource: &Arc<str>, t_ms: u64, since_ms: u64, is_new: bool) {
        if self.by_resource.len() >= RESOURCES_MAX && !self.by_resource.contains_key(resource) {
            return;
        }
        let of = self.by_resource.entry(resource.clone()).or_default();
        of.total += 1;
        of.newest_since_ms = of.newest_since_ms.max(since_ms);
        if of.times_ms.len() == TIMES_MAX {
            of.times_ms.pop_front();
        }
        of.times_ms.push_back(t_ms);
        if is_new {
            if of.firsts.len() == FIRSTS_MAX {
                of.firsts.pop_front();
            }
            of.firsts.push_back(First { t_ms, since_ms });
        }
    }

    pub fn of(&self, resource: &str) -> Option<&OfResource> {
        self.by_resource.get(resource)
    }

    pub fn footprint(&self) -> usize {
        self.by_resource.values().map(|of| 1 + of.times_ms.len() + of.firsts.len()).sum()
    }
}

impl OfResource {
    /// Whether an object that has waited since `since_ms` may still be in the subject's queue at `now_ms`. Each of the
    /// following facts shows a queue.
    ///
    /// - The subject first observed an object that is at least as old in the last quarter of this time, or soon after it.
    ///   A priority queue, as in controller-runtime, serves new objects at once while the objects of the first list still
    ///   wait.
    /// - The subject served objects in the first half of this time. New objects that it first observed in the second
    ///   half had all been created in the first half or before. Only new objects show how long the queue is: an object
    ///   that is in the queue already gets a further version just before its turn. The second half leaves time for an
    ///   object that a refused write sent to the end of the queue again.
    /// - After a slow start, the subject served no object in the first half, but still new ones in the last quarter. A
    ///   quick subject would have served all of them at its start.
    pub fn has_queue(&self, since_ms: u64, now_ms: u64) -> bool {
        let long_ms = now_ms.saturating_sub(since_ms);
        let (middle_ms, last_quarter_ms) = (since_ms + long_ms / 2, now_ms.saturating_sub(long_ms / 4));
        let works_off = || {
            self.times_ms.iter().all(|t_ms| *t_ms >= middle_ms)
                && self.firsts.back().is_some_and(|first| first.t_ms >= last_quarter_ms)
        };
        let soon_ms = last_quarter_ms..=now_ms.saturating_add(long_ms / 2);
        let is_old = |first: &First| first.since_ms <= since_ms && soon_ms.contains(&first.t_ms);
        if self.firsts.iter().any(is_old) {
            return true;
        }
        let mut late = self.firsts.iter().rev().take_while(|first| first.t_ms >= middle_ms).peekable();
        late.peek().is_some()
            && late.all(|first| first.since_ms <= middle_ms)
            && (self.times_ms.iter().any(|t_ms| (since_ms..middle_ms).contains(t_ms)) || works_off())
    }

    /// The number of objects served in each quarter of a time range.
    pub fn quarters(&self, from_ms: u64, to_ms: u64) -> [u64; 4] {
        let long_ms = to_ms.saturating_sub(from_ms).max(1);
        let mut quarters = [0; 4];
        for t_ms in self.times_ms.iter().filter(|t_ms| (from_ms..=to_ms).contains(*t_ms)) {
            let quarter = usize::try_from((t_ms - from_ms) * 4 / long_ms).unwrap_or(3).min(3);
            quarters[quarter] += 1;
        }
        quarters
    }
}
