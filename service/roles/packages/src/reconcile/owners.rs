//! The packages of policies, and the policies of packages, by the events of the two watches.
//!
//! This module owns an index of uids and keys, as large as the number of objects. The lock is held for single map
//! operations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::policies::Applied;
use service_watch::Key;
use service_watch::{Change, Event};

#[derive(Debug, Default)]
pub struct Owners {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The key of the package with a uid.
    packages: BTreeMap<Box<str>, Key>,
    /// The package uid in a policy's label.
    policies: BTreeMap<Key, Arc<str>>,
    /// The policies with a package uid.
    by_package: BTreeMap<Arc<str>, BTreeSet<Key>>,
}

impl Owners {
    /// Records an event of a package.
    pub fn package(&self, event: &Event) {
        let object = &event.object;
        let mut state = self.state.lock();
        match event.change {
            Change::Deleted => drop(state.packages.remove(&object.uid)),
            Change::Added | Change::Modified => drop(state.packages.insert(object.uid.clone(), object.key.clone())),
        }
    }

    /// Records an event of a policy; returns the uids of the affected packages: one or, after a change of its label,
    /// two.
    pub fn policy(&self, event: &Event<Applied>) -> BTreeSet<Arc<str>> {
        let object = &event.object;
        let mut state = self.state.lock();
        let uid: Arc<str> = (*object.body.package_uid).into();
        let mut concerned = BTreeSet::from([Arc::clone(&uid)]);
        let old = match event.change {
            Change::Deleted => state.policies.remove(&object.key),
            Change::Added | Change::Modified => state.policies.insert(object.key.clone(), Arc::clone(&uid)),
        };
        if let Some(old) = old {
            if let Some(keys) = state.by_package.get_mut(&old) {
                keys.remove(&object.key);
                if keys.is_empty() {
                    state.by_package.remove(&old);
                }
            }
            concerned.insert(old);
        }
        if event.change != Change::Deleted {
            state.by_package.entry(uid).or_default().insert(object.key.clone());
        }
        concerned
    }

    /// The key of the package with that uid.
    pub fn find(&self, uid: &str) -> Option<Key> {
        self.state.lock().packages.get(uid).cloned()
    }

    /// The policies that are labelled with that uid.
    pub fn policies(&self, uid: &str) -> Vec<Key> {
        self.state.lock().by_package.get(uid).map(|keys| keys.iter().cloned().collect()).unwrap_or_default()
    }

    /// Every uid that a policy is labelled with.
    pub fn labelled(&self) -> Vec<Arc<str>> {
        self.state.lock().by_package.keys().cloned().collect()
    }
}
