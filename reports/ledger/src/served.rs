//! Times at which objects were served, by resource: they show whether objects left at the end are a queue or were
//! overtaken.
//!
//! Owns the bounded memory of these times. It does not decide whether the rest is a queue.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Times remembered for one resource: more than a subject with a backlog serves in a drain.
const TIMES_MAX: usize = 2048;
/// Resources kept apart. A scenario judges fewer.
const RESOURCES_MAX: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Served {
    by_resource: BTreeMap<Arc<str>, OfResource>,
}

#[derive(Debug, Default)]
pub(super) struct OfResource {
    pub total: u64,
    /// The latest start of a wait among the objects that were served.
    pub newest_since_ms: u64,
    times_ms: VecDeque<u64>,
}

impl Served {
    /// An object that had waited since `since_ms` was served.
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
    /// The number of objects served in each quarter of the given time.
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
