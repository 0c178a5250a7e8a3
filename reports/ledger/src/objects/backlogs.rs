//! The backlog at the end of a run: objects that still wait for an observation, and whether objects that began to wait
//! later were served first.

use std::collections::{BTreeMap, BTreeSet};

use record::Backlog;

use super::Objects;

/// Minimum difference of waiting times, in milliseconds, for an object to count as overtaken. Parallel workers may swap
/// objects whose waiting began within a shorter time.
const OVERTAKEN_MS: u64 = 5000;

impl Objects {
    /// The backlog of each resource; see `Ledger::backlogs`.
    pub fn backlogs(&self, from_ms: u64, to_ms: u64) -> Vec<Backlog> {
        let mut backlogs: BTreeMap<&str, Backlog> = BTreeMap::new();
        let mut counted = BTreeSet::new();
        // In the order of commits, so that the first object that was overtaken is the oldest.
        for uid in self.open.values().filter(|uid| counted.insert(uid.as_str())) {
            let Some(object) = self.by_uid.get(uid) else { continue };
            let Some(since_ms) = object.waits_since_ms().filter(|since_ms| *since_ms <= from_ms) else { continue };
            let name = &object.full_name;
            let served = self.served.of(&name.resource);
            let backlog = backlogs.entry(&name.resource).or_insert_with(|| Backlog {
                resource: name.resource.to_string(),
                from_ms,
                to_ms,
                served: served.map_or([0; 4], |served| served.quarters(from_ms, to_ms)),
                served_total: served.map_or(0, |served| served.total),
                ..Backlog::default()
            });
            backlog.waiting += 1;
            if served.is_some_and(|served| since_ms.saturating_add(OVERTAKEN_MS) < served.newest_since_ms) {
                backlog.passed += 1;
                backlog.first_passed.get_or_insert_with(|| name.shown());
            }
        }
        backlogs.into_values().collect()
    }
}
