//! Who waits for events of which resource.
//!
//! Owns the wakers of all watches. A write only marks its resource; one task wakes the watches of all marked
//! resources and then rests, longer after waking many ([`rest`]), so that under load each of them finds many events
//! at once and a write never pays for ten thousand watchers. One such round has one end ([`Wakers::reached`]): all
//! watches are given the events up to the same revision, so that they share one serialised batch and none of them makes a
//! second, smaller write for what was committed while the others were served.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::store::ResourceId;

const REST_MIN: Duration = Duration::from_millis(1);
const REST_MAX: Duration = Duration::from_millis(20);
const REST_FOR_EACH: Duration = Duration::from_micros(50);

#[derive(Debug, Default)]
pub(crate) struct Wakers {
    waiting: Mutex<HashMap<ResourceId, BTreeMap<u64, Waker>>>,
    marked: Mutex<BTreeSet<ResourceId>>,
    changed: Notify,
    reached: AtomicU64,
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

    /// The revision up to which watches are served now.
    pub fn reached(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    /// Watches may be served up to `revision`.
    pub fn reach(&self, revision: u64) {
        self.reached.store(revision, Ordering::Release);
    }

    /// Wakes everybody who waits for a marked resource; how many those were. `current` reads the store's revision.
    pub fn wake(&self, current: impl FnOnce() -> u64) -> usize {
        let mut count = 0;
        let marked = std::mem::take(&mut *self.marked.lock());
        // After taking the marks, so that it covers what they stand for; before waking, so that nobody wakes in vain.
        self.reach(current());
        for resource in marked {
            let woken = self.waiting.lock().get_mut(&resource).map(std::mem::take);
            for waker in woken.into_iter().flat_map(BTreeMap::into_values) {
                waker.wake();
                count += 1;
            }
        }
        count
    }
}

/// How long to rest after waking so many watches.
///
/// A write to a socket costs as much as a dozen events, so the fewer writes the cheaper an event. One watch is served
/// every millisecond; a hundred wait up to 5 ms for each other's events, and nobody waits longer than 20 ms. The first
/// event after a rest without events is sent at once.
pub(crate) fn rest(woken: usize) -> Duration {
    let woken = u32::try_from(woken).unwrap_or(u32::MAX);
    REST_FOR_EACH.saturating_mul(woken).clamp(REST_MIN, REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_watches_wait_a_millisecond_and_many_not_long() {
        assert_eq!(rest(0), REST_MIN);
        assert_eq!(rest(20), REST_MIN);
        assert_eq!(rest(100), Duration::from_millis(5));
        assert_eq!(rest(10_000), REST_MAX);
        assert_eq!(rest(usize::MAX), REST_MAX);
    }
}
