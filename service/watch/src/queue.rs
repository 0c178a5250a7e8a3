//! The reconcile queue: keys of objects that need work. Keys of one group of the queue are processed one at a time.
//!
//! This module owns the order and delay of keys, not the work on them. A waiting key is not added again, so the queue
//! is never longer than the number of objects. Groups without keys are dropped. The lock of the queue is held only for
//! single map operations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use serde::Deserialize;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::object::Key;

/// How keys of objects are grouped in the queue. Two keys of one group are never processed at the same time.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QueueKey {
    /// Each object is its own group.
    #[default]
    KindNsName,
    /// All objects of a namespace are one group.
    KindNs,
    /// All objects of the kind are one group.
    Kind,
    Global,
}

/// The part of a key that identifies its group; `None` if all keys are one group.
type Group = Option<(std::sync::Arc<str>, Option<std::sync::Arc<str>>)>;

pub struct Queue {
    by: QueueKey,
    state: Mutex<State>,
    wake: Notify,
    length: Gauge,
}

#[derive(Default)]
struct State {
    groups: BTreeMap<Group, Waiting>,
    ready: VecDeque<Group>,
    delayed: BTreeSet<(Instant, Key)>,
    delayed_until: BTreeMap<Key, Instant>,
    closed: bool,
}

#[derive(Default)]
struct Waiting {
    order: VecDeque<Key>,
    members: BTreeSet<Key>,
    busy: bool,
}

/// A key that is being processed. The key's group becomes free when the worker passes this value to [`Queue::done`].
pub struct Turn {
    group: Group,
    pub key: Key,
}

impl Queue {
    /// An empty queue; the gauge `length` shows the number of waiting keys.
    pub fn new(by: QueueKey, length: Gauge) -> Self {
        Self { by, state: Mutex::default(), wake: Notify::new(), length }
    }

    /// Adds a key unless the key is waiting already.
    pub fn add(&self, key: Key) {
        self.enqueue(&mut self.state.lock(), key);
    }

    /// Adds a key at the time `when`. If another time was planned for the key, `when` replaces it.
    pub fn add_at(&self, key: Key, when: Instant) {
        let mut state = self.state.lock();
        if let Some(old) = state.delayed_until.insert(key.clone(), when) {
            state.delayed.remove(&(old, key.clone()));
        }
        state.delayed.insert((when, key));
        drop(state);
        self.wake.notify_one();
    }

    /// Adds a key at the time `when`, unless an earlier time is planned for the key.
    pub fn add_by(&self, key: Key, when: Instant) {
        if self.state.lock().delayed_until.get(&key).is_none_or(|known| *known > when) {
            self.add_at(key, when);
        }
    }

    /// Waits for the next key; `None` after the queue was closed.
    pub async fn next(&self) -> Option<Turn> {
        loop {
            let appointment = {
                let mut state = self.state.lock();
                if state.closed {
                    // One permit wakes one worker; each passes it on.
                    self.wake.notify_one();
                    return None;
                }
                self.due(&mut state, Instant::now());
                if let Some(turn) = take(&mut state) {
                    self.show(&state);
                    if !state.ready.is_empty() {
                        self.wake.notify_one();
                    }
                    return Some(turn);
                }
                state.delayed.first().map(|(when, _)| *when)
            };
            match appointment {
                None => self.wake.notified().await,
                Some(when) => tokio::select! {
                    () = self.wake.notified() => {}
                    () = sleep_until(when) => {}
                },
            }
        }
    }

    pub fn done(&self, turn: Turn) {
        let mut state = self.state.lock();
        let Some(group) = state.groups.get_mut(&turn.group) else { return };
        group.busy = false;
        if group.order.is_empty() {
            state.groups.remove(&turn.group);
        } else {
            state.ready.push_back(turn.group);
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Closes the queue: workers finish their present keys and get no more keys.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_one();
    }

    fn enqueue(&self, state: &mut State, key: Key) {
        let group = self.group(&key);
        let waiting = state.groups.entry(group.clone()).or_default();
        if !waiting.members.insert(key.clone()) {
            return;
        }
        waiting.order.push_back(key);
        if !waiting.busy && waiting.order.len() == 1 {
            state.ready.push_back(group);
        }
        self.show(state);
        self.wake.notify_one();
    }

    fn due(&self, state: &mut State, now: Instant) {
        while state.delayed.first().is_some_and(|(when, _)| *when <= now) {
            let Some((_, key)) = state.delayed.pop_first() else { break };
            state.delayed_until.remove(&key);
            self.enqueue(state, key);
        }
    }

    fn group(&self, key: &Key) -> Group {
        match self.by {
            QueueKey::KindNsName => Some((key.namespace.clone(), Some(key.name.clone()))),
            QueueKey::KindNs => Some((key.namespace.clone(), None)),
            // This process has one kind, so both mean one group.
            QueueKey::Kind | QueueKey::Global => None,
        }
    }

    fn show(&self, state: &State) {
        let waiting: usize = match self.by {
            // One key per group: the number of ready groups is the number of waiting keys, without a walk over all of
            // them.
            QueueKey::KindNsName => state.ready.len(),
            _ => state.groups.values().map(|group| group.order.len()).sum(),
        };
        self.length.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }
}

fn take(state: &mut State) -> Option<Turn> {
    let group = state.ready.pop_front()?;
    let waiting = state.groups.get_mut(&group)?;
    let key = waiting.order.pop_front()?;
    waiting.members.remove(&key);
    waiting.busy = true;
    Some(Turn { group, key })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(namespace: &str, name: &str) -> Key {
        Key { namespace: namespace.into(), name: name.into() }
    }

    async fn now(queue: &Queue) -> Option<Turn> {
        tokio::time::timeout(Duration::from_millis(1), queue.next()).await.ok().flatten()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_never_held_twice_and_work_that_arrives_meanwhile_is_not_lost() {
        let queue = Queue::new(QueueKey::KindNsName, Gauge::default());
        queue.add(key("a", "x"));
        queue.add(key("a", "x"));
        let held = now(&queue).await.unwrap();
        assert!(now(&queue).await.is_none(), "the same key was added twice and waits once");
        queue.add(key("a", "x"));
        queue.add(key("a", "y"));
        assert_eq!(&*now(&queue).await.unwrap().key.name, "y", "x is held");
        queue.done(held);
        let again = now(&queue).await.unwrap();
        assert_eq!(&*again.key.name, "x");
        queue.done(again);
        assert!(!queue.state.lock().groups.contains_key(&queue.group(&key("a", "x"))), "idle groups are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn groups_decide_what_is_in_order() {
        for (by, second) in [(QueueKey::KindNs, Some("b")), (QueueKey::Kind, None), (QueueKey::KindNsName, Some("a"))] {
            let queue = Queue::new(by, Gauge::default());
            for (namespace, name) in [("a", "x"), ("a", "y"), ("b", "x")] {
                queue.add(key(namespace, name));
            }
            let _first = now(&queue).await.unwrap();
            assert_eq!(now(&queue).await.map(|turn| turn.key.namespace.to_string()).as_deref(), second, "{by:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn appointments_are_kept_and_replaced() {
        let queue = Queue::new(QueueKey::KindNsName, Gauge::default());
        let start = Instant::now();
        queue.add_at(key("a", "x"), start + Duration::from_secs(3));
        queue.add_at(key("a", "x"), start + Duration::from_secs(9));
        queue.next().await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 9);
        assert!(queue.state.lock().delayed.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn closing_ends_every_worker() {
        let queue = std::sync::Arc::new(Queue::new(QueueKey::KindNsName, Gauge::default()));
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let queue = std::sync::Arc::clone(&queue);
            workers.spawn(async move { queue.next().await.is_none() });
        }
        tokio::task::yield_now().await;
        queue.close();
        while let Some(ended) = workers.join_next().await {
            assert!(ended.unwrap());
        }
    }
}
