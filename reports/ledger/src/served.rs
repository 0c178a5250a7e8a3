//! The times at which the subject served objects, by resource. These times show whether the objects that wait at the
//! end of a run are a queue or were overtaken.
//!
//! Keeps a bounded number of these times. The judge draws the conclusion.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Number of times remembered for one resource: more than the objects that a slow subject serves in a drain.
const TIMES_MAX: usize = 2048;
/// An object counts as queued only if at least this many objects were served while it waited.
const SERVED_MIN: u64 = 8;
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
}

impl Served {
    /// Notes that an object was served that had waited since `since_ms`.
    pub fn note(&mut self, resource: &Arc<str>, t_ms: u64, since_ms: u64) {
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
    }

    pub fn of(&self, resource: &str) -> Option<&OfResource> {
        self.by_resource.get(resource)
    }

    pub fn footprint(&self) -> usize {
        self.by_resource.values().map(|of| 1 + of.times_ms.len()).sum()
    }
}

impl OfResource {
    /// Whether an object that has waited since `since_ms` may still be in the subject's queue at `now_ms`: the subject
    /// served others steadily all that time, and the newest of them had waited at least half as long. The half is for an
    /// object whose write was refused once, and which then went to the end of the queue.
    pub fn has_queue(&self, since_ms: u64, now_ms: u64) -> bool {
        let waited_ms = now_ms.saturating_sub(since_ms);
        let from_ms = since_ms.max(self.times_ms.front().copied().unwrap_or(now_ms));
        let quarters = self.quarters(from_ms, now_ms);
        waited_ms <= 2 * now_ms.saturating_sub(self.newest_since_ms)
            && quarters.iter().sum::<u64>() >= SERVED_MIN
            && quarters.iter().all(|served| *served > 0)
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
