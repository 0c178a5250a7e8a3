//! An index of the policies of each package and the package of each policy, from the events of two watches.
//!
//! The index contains only one uid and one key for each package and policy. The lock of the index is held only for
//! single map operations.

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
    /// The key of each package, by uid.
    packages: BTreeMap<Box<str>, Key>,
    /// The package uid in the label of each policy.
    policies: BTreeMap<Key, Arc<str>>,
    /// The policies, by the package uid in their label.
    by_package: BTreeMap<Arc<str>, BTreeSet<Key>>,
}

impl Owners {
    pub fn package(&self, event: &Event) {
        let object = &event.object;
        let mut state = self.state.lock();
        match event.change {
            Change::Deleted => drop(state.packages.remove(&object.uid)),
            Change::Added | Change::Modified => drop(state.packages.insert(object.uid.clone(), object.key.clone())),
        }
    }

    /// Records an event of a policy; returns the uids of the affected packages. A change of the policy's label affects
    /// its former and its new package.
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

    pub fn find(&self, uid: &str) -> Option<Key> {
        self.state.lock().packages.get(uid).cloned()
    }

    pub fn policies(&self, uid: &str) -> Vec<Key> {
        self.state.lock().by_package.get(uid).map(|keys| keys.iter().cloned().collect()).unwrap_or_default()
    }

    /// Every uid in a label of a policy.
    pub fn labelled(&self) -> Vec<Arc<str>> {
        self.state.lock().by_package.keys().cloned().collect()
    }
}
