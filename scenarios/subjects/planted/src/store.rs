//! The cache: the objects that this client knows, and how lists and events change them.
//!
//! The cache keeps objects by uid, the objects' names, and the newest deletions. An older version of an object never
//! replaces a newer version. A new object with the name of a known object counts as a deletion and an addition. This
//! module does no I/O and reports nothing itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::list::Listing;
use crate::mistakes::{Mistake, Mistakes};
use crate::object::Object;
use crate::revision::Revision;

/// Maximum number of deletions that are remembered. Remembered deletions keep a late or repeated event from bringing
/// back a deleted object.
const BURIED_MAX: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Added,
    /// The object was known in another version.
    Modified,
    /// The object is gone.
    Deleted,
}

/// Which versions of a list are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Only versions that are not older than the known versions are accepted.
    Newer,
    /// All versions are accepted, even versions older than the known versions.
    Blind,
}

#[derive(Debug, Clone)]
pub struct Store {
    by_uid: BTreeMap<Arc<str>, Object>,
    by_name: BTreeMap<(Arc<str>, Arc<str>), Arc<str>>,
    buried: BTreeMap<Arc<str>, Revision>,
    burials: VecDeque<Arc<str>>,
    mistakes: Mistakes,
}

impl Change {
    /// The name of the change in a report to the witness.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

impl Store {
    pub fn new(mistakes: Mistakes) -> Self {
        let (by_uid, by_name, buried, burials) = Default::default();
        Self { by_uid, by_name, buried, burials, mistakes }
    }

    /// Applies an event with a version of an object.
    pub fn upsert(&mut self, object: Object, changes: &mut Vec<(Change, Object)>) {
        self.put(object, Trust::Newer, changes);
    }

    /// Applies a deletion event. The deletion of an unknown object is reported too, unless the deletion is an old one.
    pub fn delete(&mut self, object: Object, changes: &mut Vec<(Change, Object)>) {
        let key = (object.namespace.clone(), object.name.clone());
        if self.mistakes.made(Mistake::ReplacesByName) {
            if let Some(uid) = self.by_name.remove(&key) {
                self.by_uid.remove(&uid);
                changes.push((Change::Deleted, object));
            }
            return;
        }
        let known = self.by_uid.get(&object.uid);
        let old_news = self.buried.contains_key(&object.uid)
            || known.is_some_and(|known| object.revision.older_than(&known.revision));
        if old_news && !self.mistakes.made(Mistake::BelievesEveryEvent) {
            return;
        }
        self.by_uid.remove(&object.uid);
        if self.by_name.get(&key) == Some(&object.uid) {
            self.by_name.remove(&key);
        }
        self.bury(&object);
        changes.push((Change::Deleted, object));
    }

    /// Applies a whole list: known objects that the list does not contain count as deleted. A deletion that only a list
    /// shows is reported with the last known version.
    pub fn replace(&mut self, listing: &Listing, trust: Trust, changes: &mut Vec<(Change, Object)>) {
        if trust == Trust::Blind {
            self.buried.clear();
            self.burials.clear();
        }
        if listing.complete {
            if self.mistakes.made(Mistake::ReplacesByName) {
                let names: BTreeSet<_> = listing.items.iter().map(|item| (&item.namespace, &item.name)).collect();
                self.retain(|known| names.contains(&(&known.namespace, &known.name)), changes);
            } else {
                let uids: BTreeSet<_> = listing.items.iter().map(|item| &item.uid).collect();
                self.retain(|known| uids.contains(&known.uid), changes);
            }
        }
        for item in &listing.items {
            self.put(item.clone(), trust, changes);
        }
    }

    /// Deletes all known objects for which `there` returns false.
    pub fn retain(&mut self, there: impl Fn(&Object) -> bool, changes: &mut Vec<(Change, Object)>) {
        let gone: Vec<Object> = self.by_uid.values().filter(|known| !there(known)).cloned().collect();
        for object in gone {
            let key = (object.namespace.clone(), object.name.clone());
            self.by_uid.remove(&object.uid);
            if self.by_name.get(&key) == Some(&object.uid) {
                self.by_name.remove(&key);
            }
            self.bury(&object);
            changes.push((Change::Deleted, object));
        }
    }

    /// Marks versions as known without reporting them (for a client with a mistake).
    pub fn know(&mut self, objects: Vec<Object>) {
        for object in objects {
            self.put(object, Trust::Newer, &mut Vec::new());
        }
    }

    /// Empties the cache without reporting deletions (for a client with a mistake).
    pub fn forget(&mut self) {
        *self = Self::new(self.mistakes.clone());
    }

    fn put(&mut self, object: Object, trust: Trust, changes: &mut Vec<(Change, Object)>) {
        let key = (object.namespace.clone(), object.name.clone());
        let namesake = self.by_name.get(&key).filter(|uid| **uid != object.uid).cloned();
        if let Some(before) = namesake {
            let swapped = self.by_uid.get(&before).cloned();
            if self.mistakes.made(Mistake::ReplacesByName) {
                self.by_uid.remove(&before);
                changes.push((Change::Modified, object.clone()));
                self.keep(key, object);
                return;
            }
            let Some(swapped) = swapped else { return self.put_own(key, object, trust, changes) };
            if trust == Trust::Newer && object.revision.older_than(&swapped.revision) {
                return;
            }
            self.by_uid.remove(&before);
            self.bury(&swapped);
            changes.push((Change::Deleted, swapped));
        }
        self.put_own(key, object, trust, changes);
    }

    fn put_own(
        &mut self,
        key: (Arc<str>, Arc<str>),
        object: Object,
        trust: Trust,
        changes: &mut Vec<(Change, Object)>,
    ) {
        let believes = self.mistakes.made(Mistake::BelievesEveryEvent);
        if self.buried.contains_key(&object.uid) && !believes {
            return;
        }
        let change = match self.by_uid.get(&object.uid) {
            Some(known) if known.revision == object.revision => return,
            Some(known) if trust == Trust::Newer && object.revision.older_than(&known.revision) && !believes => return,
            Some(_) => Change::Modified,
            None => Change::Added,
        };
        changes.push((change, object.clone()));
        self.keep(key, object);
    }

    fn keep(&mut self, key: (Arc<str>, Arc<str>), object: Object) {
        self.by_name.insert(key, object.uid.clone());
        self.by_uid.insert(object.uid.clone(), object);
    }

    fn bury(&mut self, object: &Object) {
        // Real clients with this mistake had no such memory: repeated events were new to them.
        if self.mistakes.any(&[Mistake::ResumesFromLastListedItem, Mistake::AcceptsOlderList]) {
            return;
        }
        if self.buried.insert(object.uid.clone(), object.revision.clone()).is_none() {
            self.burials.push_back(object.uid.clone());
        }
        if self.burials.len() > BURIED_MAX
            && let Some(oldest) = self.burials.pop_front()
        {
            self.buried.remove(&oldest);
        }
    }
}
