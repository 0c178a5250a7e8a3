//! The reference: what the subject does without any disturbance, and what of it is the same in every play.
//!
//! Owns the mask: values that differ between references say nothing about a trial. Does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::audit::{Audit, Changes, Write, is_ignored};
use super::copies::copies;
use super::normal::{self, Leaves};
use super::points::{Point, points};

/// The expected behaviour of the subject.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reference {
    pub(crate) plays: usize,
    /// The resource of the objects that the hunt itself creates, changes and deletes.
    pub(crate) load: String,
    /// Objects that every play has at its end, with the values that every play has.
    pub(crate) objects: BTreeMap<String, Leaves>,
    /// Objects that only some plays have at their end.
    pub(crate) loose: BTreeSet<String>,
    /// Fields whose values differ between plays, by object.
    pub(crate) masked: BTreeSet<(String, String)>,
    /// Labels and annotations that say from which version of its parent a child was made, by resource.
    pub(crate) copies: BTreeSet<(String, String)>,
    /// The highest numbers of each resource in a play.
    pub(crate) highest: BTreeMap<String, Changes>,
    /// The highest number of objects of each resource at the end of a play.
    pub(crate) ends: BTreeMap<String, usize>,
    pub(crate) points: Vec<Point>,
    /// Number of signatures of writes that only some plays have.
    pub(crate) unsteady: usize,
    /// The watched resources, sorted.
    pub(crate) watched: Vec<String>,
    /// The first writes of one play, for people.
    pub(crate) writes: Vec<Write>,
}

/// Maximum number of writes for people.
const WRITES_MAX: usize = 200;

impl Reference {
    /// Derives the reference from at least two plays.
    pub(crate) fn of(audits: &[Audit]) -> Self {
        let plays: Vec<BTreeMap<String, Leaves>> = audits.iter().map(|audit| normal::objects(&audit.objects)).collect();
        let (points, unsteady) = points(audits);
        let mut reference = Self { plays: audits.len(), copies: copies(audits), points, unsteady, ..Self::default() };
        let first = audits.first().map(|audit| audit.writes.as_slice()).unwrap_or_default();
        reference.writes.extend(first.iter().take(WRITES_MAX).cloned());
        let keys: BTreeSet<&String> = plays.iter().flat_map(BTreeMap::keys).collect();
        for key in keys {
            let same: Vec<&Leaves> = plays.iter().filter_map(|play| play.get(key)).collect();
            if same.len() < plays.len() {
                reference.loose.insert(key.clone());
                continue;
            }
            let (agreed, differing) = agree(&same);
            reference.masked.extend(differing.into_iter().map(|path| (key.clone(), path)));
            reference.objects.insert(key.clone(), agreed);
        }
        for audit in audits {
            for (resource, changes) in audit.changes.iter().filter(|(resource, _)| !is_ignored(resource)) {
                let highest = reference.highest.entry(resource.clone()).or_default();
                highest.created = highest.created.max(changes.created);
                highest.deleted = highest.deleted.max(changes.deleted);
                highest.most = highest.most.max(changes.most);
            }
            reference.watched.extend(audit.watched.iter().filter(|resource| !is_ignored(resource)).cloned());
        }
        for play in &plays {
            for (resource, count) in by_resource(play) {
                let most = reference.ends.entry(resource).or_default();
                *most = count.max(*most);
            }
        }
        reference.watched.sort_unstable();
        reference.watched.dedup();
        reference
    }

    /// Whether nothing is left to compare: the plays differ in everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.highest.is_empty()
    }
}

/// The number of objects of each resource.
pub(crate) fn by_resource(play: &BTreeMap<String, Leaves>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for key in play.keys() {
        *counts.entry(normal::resource_of(key).to_owned()).or_default() += 1;
    }
    counts
}

/// The leaves that are equal in all plays, and the paths of the others.
fn agree(same: &[&Leaves]) -> (Leaves, BTreeSet<String>) {
    let paths: BTreeSet<&String> = same.iter().flat_map(|leaves| leaves.keys()).collect();
    let (mut agreed, mut differing) = (Leaves::new(), BTreeSet::new());
    for path in paths {
        let values: Vec<Option<&Value>> = same.iter().map(|leaves| leaves.get(path)).collect();
        match values.first() {
            Some(Some(first)) if values.iter().all(|value| *value == Some(first)) => {
                agreed.insert(path.clone(), (*first).clone());
            }
            _ => _ = differing.insert(path.clone()),
        }
    }
    (agreed, differing)
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::super::audit::Object;
    use super::*;

    /// A play with one Cache and its numbers.
    pub(crate) fn play(status: &Value, created: u64) -> Audit {
        let cache = json!({"metadata": {"name": "a", "namespace": "n"}, "status": status});
        let changes = Changes { created, deleted: 1, most: 2 };
        Audit {
            objects: vec![Object { resource: "caches.x".to_owned(), object: cache }],
            changes: BTreeMap::from([("pods".to_owned(), changes), ("events".to_owned(), changes)]),
            watched: vec!["pods".to_owned(), "caches.x".to_owned()],
            ..Audit::default()
        }
    }

    /// Values that flip are masked, and the rest is expected.
    #[test]
    fn what_flips_is_masked() {
        let plays = [
            play(&json!({"ready": 1, "token": "a"}), 2),
            play(&json!({"ready": 1, "token": "b"}), 3),
            play(&json!({"ready": 1, "more": true, "token": "c"}), 2),
        ];
        let reference = Reference::of(&plays);
        let expected = &reference.objects["caches.x n/a"];
        assert_eq!(expected.get("status.ready"), Some(&json!(1)));
        let masked: Vec<&str> = reference.masked.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!(masked, ["status.more", "status.token"]);
        assert_eq!(reference.highest["pods"].created, 3);
        assert!(!reference.highest.contains_key("events"));
        assert_eq!(reference.watched, ["caches.x", "pods"]);
        assert!(!reference.is_empty());
    }

    /// An object that only some plays have is expected in none.
    #[test]
    fn an_object_of_some_plays_is_loose() {
        let (mut one, other) = (play(&json!({}), 1), play(&json!({}), 1));
        one.objects[0].object["metadata"]["name"] = "b".into();
        let reference = Reference::of(&[one, other]);
        assert!(reference.objects.is_empty());
        assert_eq!(reference.loose.len(), 2);
        assert_eq!(reference.ends["caches.x"], 1);
    }
}
