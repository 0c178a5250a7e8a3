//! Who waits for events of which resource.
//!
//! Owns the wakers of all watches. A write only marks its resource; one task wakes the watches of all marked
//! resources, at most once a millisecond, so that under load each of them finds many events at once and a write
//! never pays for ten thousand watchers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::task::Waker;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::store::ResourceId;

#[derive(Debug, Default)]
pub(crate) struct Wakers {
    waiting: Mutex<HashMap<ResourceId, BTreeMap<u64, Waker>>>,
    marked: Mutex<BTreeSet<ResourceId>>,
    changed: Notify,
}

impl Wakers {
    /// Wakes `waker` when something happens to `resource`, once.
    pub fn wait(&self, resource: ResourceId, watch: u64, waker: &Waker) {
        self.waiting.lock().entry(resource).or_default().insert(watch, waker.clone());
    }

    pub fn forget(&self, resource: ResourceId, watch: u64) {
        if let Some(waiting) = self.waiting.lock().get_mut(&resource) {
            waiting.remove(&watch);
        }
    }

    /// Something happened to `resource`.
    pub fn mark(&self, resource: ResourceId) {
        if self.marked.lock().insert(resource) {
            self.changed.notify_one();
        }
    }

    /// Something happened to what everybody may see.
    pub fn mark_all(&self) {
        let all: Vec<ResourceId> = self.waiting.lock().keys().copied().collect();
        self.marked.lock().extend(all);
        self.changed.notify_one();
    }

    /// Waits until a resource is marked.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Wakes everybody who waits for a marked resource.
    pub fn wake(&self) {
        let marked = std::mem::take(&mut *self.marked.lock());
        for resource in marked {
            let woken = self.waiting.lock().get_mut(&resource).map(std::mem::take);
            for waker in woken.into_iter().flat_map(BTreeMap::into_values) {
                waker.wake();
            }
        }
    }
}
