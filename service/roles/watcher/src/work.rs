//! The queue of objects for an action: the order of the objects, and the handling of failures.
//!
//! This module owns the queue and the state of each object in it. An object waits only once, however often it changes,
//! and its latest state is processed. The number of waiting objects is limited; while the limit is reached, the watch
//! waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use service_watch::{Backpressure, Change, Event, Key, Object, Queue, QueueKey};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::config;
use crate::meta::Meta;
use crate::metrics::Metrics;
use crate::problems::Problems;
use crate::visit::{Pending, Tools, Visited};
use crate::{finalize, reconcile};

/// Maximum number of waiting objects, with some 300 bytes each: one and a half times the number of objects in the
/// largest measured watch. The bytes of all waiting objects are limited too, because deleted objects are kept only in
/// this queue and may be larger.
const PENDING_MAX: usize = 75_000;
const PENDING_BYTES_MAX: usize = 24 << 20;
/// Delay between attempts of `finalize`, if the action's configuration sets no delays.
const ENDLESS: Duration = Duration::from_mins(1);

/// The kinds of actions on objects.
#[derive(Debug)]
pub enum Task {
    /// Sends the latest state of an object to the hook.
    Reconcile,
    /// Keeps the object until the hook has agreed to its deletion.
    Finalize(Box<str>),
}

#[derive(Debug, Default)]
struct Waiting {
    objects: BTreeMap<Key, Pending>,
    bytes: usize,
}

impl Waiting {
    /// Adds a waiting object or replaces its former state; returns whether there is room for more.
    fn put(&mut self, pending: Pending) -> bool {
        let key = &pending.object.key;
        let before = self.objects.get(key).map(bytes);
        let others = self.bytes - before.unwrap_or_default();
        let is_full = (before.is_none() && self.objects.len() >= PENDING_MAX)
            || (others > 0 && others + bytes(&pending) > PENDING_BYTES_MAX);
        if !is_full {
            self.bytes = others + bytes(&pending);
            self.objects.insert(key.clone(), pending);
        }
        !is_full
    }

    fn remove(&mut self, key: &Key) -> Option<Pending> {
        let removed = self.objects.remove(key)?;
        self.bytes -= bytes(&removed);
        Some(removed)
    }
}

/// Number of bytes of memory of a waiting object: its texts, its entries in maps and queues, and the struct itself.
fn bytes(pending: &Pending) -> usize {
    let object = &pending.object;
    let texts = object.key.namespace.len() + object.key.name.len() + object.uid.len() + object.version.len();
    size_of::<Pending>() + size_of::<Object<Meta>>() + texts + object.body.bytes()
}

pub struct Work {
    tools: Tools,
    task: Task,
    retries: Vec<Duration>,
    queue: Queue,
    /// A semaphore for one object at a time, if the queue key is `Global`.
    one_by_one: Option<Arc<Semaphore>>,
    pending: Mutex<Waiting>,
    freed: Notify,
    board: Arc<Problems>,
    metrics: Metrics,
    waiting: Gauge,
}

impl Work {
    pub fn new(
        tools: Tools,
        task: Task,
        settings: &config::Work,
        one_by_one: &Arc<Semaphore>,
        board: Arc<Problems>,
        metrics: Metrics,
    ) -> Self {
        let waiting = metrics.waiting(&tools.action);
        Self {
            task,
            retries: settings.retries.clone(),
            // The queue's own gauge counts ready groups; this one counts waiting objects.
            queue: Queue::new(settings.queue, Gauge::default()),
            one_by_one: (settings.queue == QueueKey::Global).then(|| Arc::clone(one_by_one)),
            pending: Mutex::default(),
            freed: Notify::new(),
            board,
            metrics,
            waiting,
            tools,
        }
    }

    pub fn task(&self) -> &Task {
        &self.task
    }

    pub fn due(self: &Arc<Self>, event: &Event<Meta>) -> Backpressure {
        if self.take(event) {
            return None;
        }
        let (work, event) = (Arc::clone(self), event.clone());
        let room = async move {
            loop {
                let freed = work.freed.notified();
                if work.take(&event) {
                    return;
                }
                freed.await;
            }
        };
        Some(room.boxed())
    }

    /// Drops an object from the queue, because it is gone or no longer matches the filter.
    pub fn forget(&self, key: &Key) {
        let mut pending = self.pending.lock();
        if pending.remove(key).is_none() {
            return;
        }
        self.show(&pending);
        drop(pending);
        self.freed.notify_one();
    }

    fn take(&self, event: &Event<Meta>) -> bool {
        let mut pending = self.pending.lock();
        let key = &event.object.key;
        let known = pending.objects.get(key);
        let is_same = |known: &&Pending| known.object.uid == event.object.uid;
        let known = known.filter(is_same);
        // A hook that did not get the creation yet sees the object for the first time.
        let first = event.change == Change::Modified && known.is_some_and(|known| known.change == Change::Added);
        let next = Pending {
            change: if first { Change::Added } else { event.change },
            object: Arc::clone(&event.object),
            approved: known.is_some_and(|known| known.approved),
            attempts: 0,
        };
        if !pending.put(next) {
            return false;
        }
        self.show(&pending);
        drop(pending);
        self.queue.add(key.clone());
        true
    }

    pub async fn run(self: Arc<Self>) {
        while let Some(turn) = self.queue.next().await {
            let pending = self.pending.lock().objects.get(&turn.key).cloned();
            if let Some(pending) = pending {
                let alone = match &self.one_by_one {
                    // The semaphore is never closed.
                    Some(all) => all.acquire().await.ok(),
                    None => None,
                };
                self.visit(&turn.key, pending).await;
                drop(alone);
            }
            self.queue.done(turn);
        }
    }

    /// Closes the queue; workers finish their present objects.
    pub fn close(&self) {
        self.queue.close();
    }

    async fn visit(&self, key: &Key, mut pending: Pending) {
        let visited = match &self.task {
            Task::Reconcile => reconcile::visit(&self.tools, &pending).await,
            Task::Finalize(finalizer) => finalize::visit(&self.tools, finalizer, &mut pending).await,
        };
        let action = &self.tools.action;
        match visited {
            Visited::Done(outcome) => {
                self.metrics.call(action, outcome);
                self.board.taken(action);
                self.settle(key, &pending, None);
            }
            Visited::Never(why) => {
                self.metrics.call(action, "refused");
                self.board.failed(action, why.clone());
                tracing::error!(name: crate::events::WATCHER_REFUSED, action = &**action, object = %key, why, "a hook refuses an object for good");
                self.settle(key, &pending, None);
            }
            Visited::Later(why, asked) => {
                self.metrics.call(action, "failed");
                self.board.failed(action, why.clone());
                let wait = self.wait(pending.attempts).map(|wait| asked.map_or(wait, |asked| wait.max(asked)));
                pending.attempts += 1;
                let attempts = pending.attempts;
                if wait.is_some() {
                    tracing::warn!(name: crate::events::WATCHER_FAILED, action = &**action, object = %key, attempts, why, "a hook did not take an object; it is tried again");
                } else {
                    self.metrics.call(action, "given-up");
                    tracing::error!(name: crate::events::WATCHER_GAVE_UP, action = &**action, object = %key, attempts, why, "an object is given up until it changes");
                }
                self.settle(key, &pending, wait);
            }
        }
    }

    /// The delay before the next attempt after `before` failures in a row; `None` if no attempt is left.
    fn wait(&self, before: usize) -> Option<Duration> {
        let wait = self.retries.get(before).copied();
        match self.task {
            Task::Reconcile => wait,
            // Never given up: the finalizer would keep the object for ever.
            Task::Finalize(_) => Some(wait.or(self.retries.last().copied()).unwrap_or(ENDLESS)),
        }
    }

    /// Drops the object after its processing, or sets the time of its next processing. A change that came during the
    /// processing is already queued separately.
    fn settle(&self, key: &Key, visited: &Pending, wait: Option<Duration>) {
        let mut pending = self.pending.lock();
        let Some(known) = pending.objects.get_mut(key) else { return };
        if known.object.uid == visited.object.uid {
            known.approved = visited.approved;
        }
        if !Arc::ptr_eq(&known.object, &visited.object) {
            return;
        }
        if let Some(wait) = wait {
            known.attempts = visited.attempts;
            drop(pending);
            return self.queue.add_at(key.clone(), Instant::now() + wait);
        }
        pending.remove(key);
        self.show(&pending);
        drop(pending);
        self.freed.notify_one();
    }

    fn show(&self, pending: &Waiting) {
        self.waiting.set(i64::try_from(pending.objects.len()).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::object;

    fn pending(number: usize, note: usize) -> Pending {
        let note = "x".repeat(note);
        let text = format!(
            r#"{{"metadata":{{"name":"a-{number}","uid":"u","resourceVersion":"5","annotations":{{"other":"{note}"}}}}}}"#
        );
        Pending { change: Change::Deleted, object: Arc::new(object(&text)), approved: false, attempts: 0 }
    }

    /// The limit in bytes allows the usual number of small objects, but fewer large objects. An object that leaves the
    /// queue frees all its bytes.
    #[test]
    fn what_waits_has_a_bound_in_bytes() {
        for (note, least, most) in [(0, PENDING_MAX / 2, PENDING_MAX), (2000, 5_000, 15_000)] {
            let mut waiting = Waiting::default();
            let taken = (0..=PENDING_MAX).take_while(|number| waiting.put(pending(*number, note))).count();
            assert!((least..=most).contains(&taken) && waiting.bytes <= PENDING_BYTES_MAX, "{taken} of {note} bytes");
            assert!(!waiting.put(pending(PENDING_MAX + 1, note)));
            assert!(waiting.put(pending(0, note)), "its latest state takes its place");
            for number in 0..taken {
                assert!(waiting.remove(&pending(number, 0).object.key).is_some());
            }
            assert_eq!((waiting.bytes, waiting.objects.len()), (0, 0));
        }
    }
}
