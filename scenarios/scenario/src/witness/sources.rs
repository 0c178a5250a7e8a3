//! Merges the reports of several Pods of one subject about the same objects.
//!
//! A version that another Pod has already reported proves nothing new and is dropped. A version older than an earlier
//! version from the same Pod is a mistake of the subject and is kept.

use std::collections::{BTreeMap, HashMap, VecDeque};

use facts::{Change, Observation, Uid};

/// Maximum number of Pods that are remembered. After this number of Pods, the first Pods no longer exist.
const SOURCES_MAX: usize = 64;
/// Maximum number of deleted objects that are remembered.
const DELETED_MAX: usize = 100_000;

/// The last report of one Pod about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Newest {
    revision: u64,
    deleted: bool,
}

#[derive(Debug, Default)]
pub(super) struct Sources {
    newest: HashMap<Uid, Newest>,
    each: BTreeMap<String, HashMap<Uid, Newest>>,
    /// The names of the Pods, ordered by their first report.
    order: VecDeque<String>,
    deleted: VecDeque<Uid>,
}

impl Sources {
    /// Whether this observation is new and has to be sent to the run.
    pub(super) fn passes(&mut self, source: &str, observation: &Observation) -> bool {
        // Revisions of a real API server are numbers (Kubernetes API concepts, "Resource versions").
        let Ok(revision) = observation.revision.as_str().parse::<u64>() else { return true };
        let now = Newest { revision, deleted: observation.change == Change::Deleted };
        let own = self.own(source).insert(observation.uid.clone(), now);
        if own.is_some_and(|own| now.goes_back_behind(own)) {
            return true;
        }
        let newest = self.newest.get(&observation.uid).copied();
        if newest.is_some_and(|newest| !now.is_new_after(newest)) {
            return false;
        }
        self.newest.insert(observation.uid.clone(), now);
        if now.deleted {
            self.forget(observation.uid.clone());
        }
        true
    }

    fn own(&mut self, source: &str) -> &mut HashMap<Uid, Newest> {
        if !self.each.contains_key(source) {
            self.order.push_back(source.to_owned());
            if self.order.len() > SOURCES_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.each.remove(&oldest);
            }
        }
        self.each.entry(source.to_owned()).or_default()
    }

    /// Remembers a deleted object, and forgets the oldest if there are more than [`DELETED_MAX`].
    fn forget(&mut self, deleted: Uid) {
        self.deleted.push_back(deleted);
        if self.deleted.len() > DELETED_MAX
            && let Some(oldest) = self.deleted.pop_front()
        {
            self.newest.remove(&oldest);
            for each in self.each.values_mut() {
                each.remove(&oldest);
            }
        }
    }
}

impl Newest {
    fn goes_back_behind(self, own: Self) -> bool {
        !self.deleted && (own.deleted || self.revision < own.revision)
    }

    /// Whether this report is newer than `newest`. A deletion that a client finds by a list has the object's last known
    /// revision, so a report with an equal revision can be newer.
    fn is_new_after(self, newest: Self) -> bool {
        !newest.deleted && (self.deleted || self.revision > newest.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saw(revision: &str, change: Change) -> Observation {
        Observation { t_ms: 0, uid: "u".into(), revision: revision.into(), change }
    }

    #[test]
    fn the_first_to_report_counts_and_the_second_adds_nothing() {
        let mut sources = Sources::default();
        let mut passes = |source, revision, change| sources.passes(source, &saw(revision, change));
        assert!(passes("old", "5", Change::Added) && passes("old", "7", Change::Modified));
        // The new Pod lists, and is ahead from then on; the old one drains behind it.
        assert!(!passes("new", "7", Change::Added));
        assert!(passes("new", "9", Change::Modified) && !passes("old", "8", Change::Modified));
        assert!(passes("new", "11", Change::Deleted) && !passes("old", "11", Change::Deleted));
        assert!(!passes("third", "9", Change::Added), "it was late itself, and nobody else");
    }

    #[test]
    fn what_goes_back_behind_its_own_reports_is_passed_on() {
        let mut sources = Sources::default();
        let mut passes = |source, revision, change| sources.passes(source, &saw(revision, change));
        assert!(passes("one", "5", Change::Added) && passes("one", "7", Change::Modified));
        assert!(passes("one", "6", Change::Modified), "regressed");
        assert!(passes("one", "8", Change::Deleted) && passes("one", "8", Change::Modified), "resurrected");
    }
}
