//! The watches that wait for events, by resource.
//!
//! Owns the wakers of all watches. A write only marks its resource. One task wakes the watches of all marked resources
//! and then pauses, longer after waking many watches or after many commits ([`rest`]). Under load, each watch then gets
//! many events at once, and a write does not wait until ten thousand watchers are woken. All watches that are woken
//! together get the events up to the same revision ([`Wakers::reached`]). These watches therefore share one serialised
//! batch, and later commits cause no second, smaller write.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::ResourceId;

const REST_MIN: Duration = Duration::from_millis(1);
const REST_MAX: Duration = Duration::from_millis(20);
const REST_FOR_EACH: Duration = Duration::from_micros(50);
/// The time by which each commit since the previous waking lengthens the pause, so that at many thousand commits a
/// second, watches are woken less often.
const REST_FOR_COMMIT: Duration = Duration::from_micros(25);
const REST_FOR_COMMITS_MAX: Duration = Duration::from_millis(4);

#[derive(Debug, Default)]
pub struct Wakers {
    waiting: Mutex<HashMap<ResourceId, BTreeMap<u64, Waker>>>,
    marked: Mutex<BTreeSet<ResourceId>>,
    changed: Notify,
    reached: AtomicU64,
}

impl Wakers {
    /// Registers `waker` to be woken once, after the next event of `resource`.
    pub fn wait(&self, resource: ResourceId, watch: u64, waker: &Waker) {
        self.waiting.lock().entry(resource).or_default().insert(watch, waker.clone());
    }

    pub fn forget(&self, resource: ResourceId, watch: u64) {
        if let Some(waiting) = self.waiting.lock().get_mut(&resource) {
            waiting.remove(&watch);
        }
    }

    /// Marks `resource` as having a new event.
    pub fn mark(&self, resource: ResourceId) {
        if self.marked.lock().insert(resource) {
            self.changed.notify_one();
        }
    }

    /// Marks all resources after a change that concerns every watch.
    pub fn mark_all(&self) {
        let all: Vec<ResourceId> = self.waiting.lock().keys().copied().collect();
        self.marked.lock().extend(all);
        self.changed.notify_one();
    }

    /// Waits until a resource is marked.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The revision up to which watches may get events now.
    #[inline]
    pub fn reached(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    /// Allows watches to get events up to `revision`.
    pub fn reach(&self, revision: u64) {
        self.reached.store(revision, Ordering::Release);
    }

    /// Wakes every watch of a marked resource. `current` reads the store's revision.
    pub fn wake(&self, current: impl FnOnce() -> u64) -> Round {
        let mut woken = 0;
        let marked = std::mem::take(&mut *self.marked.lock());
        // Read after taking the marks, so that it covers their events; set before waking, so that no watch wakes in
        // vain.
        let (before, now) = (self.reached(), current());
        self.reach(now);
        for resource in marked {
            let waiting = self.waiting.lock().get_mut(&resource).map(std::mem::take);
            for waker in waiting.into_iter().flat_map(BTreeMap::into_values) {
                waker.wake();
                woken += 1;
            }
        }
        // A restore goes back, and counts as no commit.
        Round { woken, commits: now.saturating_sub(before) }
    }
}

/// The counts of one waking of watches.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// Number of watches that were woken.
    pub woken: usize,
    /// Number of commits of all resources since the previous waking.
    pub commits: u64,
}

/// The pause after watches were woken.
///
/// A socket write costs as much as a dozen events, and waking a task as much as several events, so waking watches less
/// often makes events cheaper. A single watch gets its events every millisecond, and every 2 ms at twenty thousand
/// commits a second. With a hundred watches and few commits, each waits up to 5 ms. No watch waits longer than 20 ms.
/// The first event after a pause without events is sent at once.
pub fn rest(round: Round) -> Duration {
    let woken = REST_FOR_EACH.saturating_mul(u32::try_from(round.woken).unwrap_or(u32::MAX));
    let commits = REST_FOR_COMMIT.saturating_mul(u32::try_from(round.commits).unwrap_or(u32::MAX));
    (woken.max(REST_MIN) + commits.min(REST_FOR_COMMITS_MAX)).min(REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_watches_wait_a_millisecond_and_many_not_long() {
        let rest = |woken| rest(Round { woken, commits: 0 });
        assert_eq!(rest(0), REST_MIN);
        assert_eq!(rest(20), REST_MIN);
        assert_eq!(rest(100), Duration::from_millis(5));
        assert_eq!(rest(10_000), REST_MAX);
        assert_eq!(rest(usize::MAX), REST_MAX);
    }

    /// At a steady rate of commits, the pause settles to a fixed length, although each pause depends on the commits
    /// during the previous pause.
    #[test]
    fn many_commits_come_in_larger_rounds() {
        let settled = |per_ms: u64| {
            let mut last = Duration::ZERO;
            for _ in 0..50 {
                let commits = u64::try_from(last.as_micros()).unwrap() * per_ms / 1000;
                last = rest(Round { woken: 1, commits });
            }
            last.as_micros()
        };
        assert_eq!(settled(0), 1000);
        assert!((1000..1100).contains(&settled(1)), "{}", settled(1));
        assert!((1900..=2000).contains(&settled(20)), "{}", settled(20));
        assert_eq!(settled(1000), 5000);
        assert_eq!(rest(Round { woken: usize::MAX, commits: u64::MAX }), REST_MAX);
    }

    #[test]
    fn a_round_knows_its_commits() {
        let wakers = Wakers::default();
        assert_eq!(wakers.wake(|| 7).commits, 7);
        assert_eq!(wakers.wake(|| 10).commits, 3);
        assert_eq!(wakers.wake(|| 4).commits, 0, "a restore");
        assert_eq!(wakers.wake(|| 5).commits, 1);
    }
}
