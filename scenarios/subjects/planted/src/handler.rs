//! The handling of each change: optionally a write, and a report once that succeeded.
//!
//! Owns the queues. The changes of one object go through one queue in order. The next version replaces a waiting one,
//! and a full queue makes its watch wait. It must not know how a change was noticed.

mod copy;

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::args::{Handling, Scope};
use crate::backoff;
use crate::mistakes::{Mistake, Mistakes};
use crate::object::{MARK, Object};
use crate::store::Change;
use crate::wire::{Answer, Ask, Trouble, Wire};
use crate::witness;

/// Queues of one kind: a slow handler delays at most an eighth of the objects.
const QUEUES: usize = 8;
const QUEUE_LENGTH: usize = 64;
/// `handlers-overtake`: default time of every second handler of an object.
const OVERTAKEN: Duration = Duration::from_millis(1500);
/// Largest answer to a write, which is an object.
const ANSWER_BYTES_MAX: usize = 4 << 20;
const ANSWER_PATIENCE: Duration = Duration::from_secs(4);

#[derive(Debug, Clone)]
pub struct Observation {
    pub change: Change,
    /// The changed object.
    pub object: Object,
    /// The line of the change, for the mistake that keeps it.
    #[expect(dead_code, reason = "kept, never read: that is the mistake")]
    pub raw: Option<Bytes>,
}

/// The inputs of all handlers.
pub struct Handler {
    pub scope: Scope,
    /// The treatment of each version.
    pub handling: Handling,
    /// Extra time of a handler.
    pub delay: Duration,
    /// The connections for writes.
    pub wire: Wire,
    /// The queue of reports.
    pub lines: witness::Lines,
    /// Number of listed kinds, and of all kinds.
    pub synced: (watch::Receiver<usize>, usize),
    /// Answers to writes that the cache accepts as known; only a mistake fills it.
    pub answers: Answers,
    pub mistakes: Mistakes,
}

/// Objects in answers to writes, until the cache takes them.
pub type Answers = Arc<Mutex<Vec<Object>>>;

/// The input side of the queues.
pub struct Queues {
    handler: Arc<Handler>,
    all: Vec<Arc<Queue>>,
    /// Handlers that are not awaited, and their number per object.
    loose: JoinSet<()>,
    counts: BTreeMap<Arc<str>, u64>,
    _workers: JoinSet<()>,
}

/// The changes that wait for one worker.
struct Queue {
    waiting: Mutex<VecDeque<Observation>>,
    arrived: Notify,
    taken: Notify,
    /// Whether any number may wait, each version separately: a mistake.
    unbounded: bool,
}

impl Queues {
    pub fn answered(&self) -> Vec<Object> {
        std::mem::take(&mut self.handler.answers.lock())
    }

    pub fn start(handler: Handler) -> Self {
        let handler = Arc::new(handler);
        let mut workers = JoinSet::new();
        let all = (0..QUEUES).map(|_| Queue::start(&handler, &mut workers)).collect();
        let (loose, counts) = (JoinSet::new(), BTreeMap::new());
        Self { handler, all, loose, counts, _workers: workers }
    }

    /// Another input side of the same queues.
    pub fn twin(&self) -> Self {
        let (handler, all) = (self.handler.clone(), self.all.clone());
        let (loose, counts, workers) = (JoinSet::new(), BTreeMap::new(), JoinSet::new());
        Self { handler, all, loose, counts, _workers: workers }
    }

    /// Adds a change, and waits while its queue is full.
    pub async fn push(&mut self, observation: Observation) {
        if self.handler.mistakes.made(Mistake::HandlersOvertake) {
            return self.let_loose(observation);
        }
        let mut hasher = DefaultHasher::new();
        // The queue follows from the name: the end of one object comes before the beginning of its namesake.
        (&observation.object.namespace, &observation.object.name).hash(&mut hasher);
        let place = usize::try_from(hasher.finish() % QUEUES as u64).unwrap_or(0);
        self.all[place].push(observation).await;
    }

    fn let_loose(&mut self, observation: Observation) {
        while self.loose.try_join_next().is_some() {}
        let count = self.counts.entry(observation.object.uid.clone()).or_default();
        let slow = observation.change == Change::Modified && count.is_multiple_of(2);
        *count += u64::from(observation.change == Change::Modified);
        let delay = if slow { self.handler.delay.max(OVERTAKEN) } else { Duration::ZERO };
        let handler = self.handler.clone();
        self.loose.spawn(async move {
            sleep(delay).await;
            handler.report(&observation).await;
        });
    }
}

impl Queue {
    fn start(handler: &Arc<Handler>, workers: &mut JoinSet<()>) -> Arc<Self> {
        let handler = handler.clone();
        let unbounded = handler.mistakes.made(Mistake::UnboundedQueue);
        let (waiting, arrived, taken) = Default::default();
        let queue = Arc::new(Self { waiting, arrived, taken, unbounded });
        let its = queue.clone();
        workers.spawn(async move {
            loop {
                let next = its.waiting.lock().pop_front();
                let Some(observation) = next else {
                    its.arrived.notified().await;
                    continue;
                };
                its.taken.notify_one();
                handler.handle(observation).await;
            }
        });
        queue
    }

    async fn push(&self, observation: Observation) {
        let mut observation = observation;
        while let Some(refused) = self.put(observation) {
            observation = refused;
            self.taken.notified().await;
        }
        self.arrived.notify_one();
    }

    /// Adds a change. Returns it if the queue is full.
    fn put(&self, observation: Observation) -> Option<Observation> {
        let mut waiting = self.waiting.lock();
        if self.unbounded {
            waiting.push_back(observation);
            return None;
        }
        let full = waiting.len() >= QUEUE_LENGTH;
        let before = waiting.iter_mut().rev().find(|before| before.object.uid == observation.object.uid);
        match before {
            // A handler needs the present state of an object; versions in between are of no use to it.
            Some(before) if before.change != Change::Deleted && observation.change == Change::Modified => {
                before.object = observation.object;
            }
            _ if full => return Some(observation),
            _ => waiting.push_back(observation),
        }
        None
    }
}

impl Handler {
    async fn handle(&self, observation: Observation) {
        if self.mistakes.made(Mistake::OneBadKindBlocksAll) {
            let (mut synced, all) = self.synced.clone();
            // The sender lives as long as the process.
            let _ = synced.wait_for(|listed| *listed >= all).await;
        }
        if !self.delay.is_zero() {
            sleep(self.delay).await;
        }
        if !self.write_until_done(&observation).await {
            return;
        }
        self.report(&observation).await;
    }

    /// Writes until it succeeds; returns false if it was given up.
    async fn write_until_done(&self, observation: &Observation) -> bool {
        let mut failures = 0;
        loop {
            let trouble = match self.try_write(observation).await {
                Ok(()) => return true,
                Err(trouble) => trouble,
            };
            // The object is gone, or another one has its name: its deletion will follow.
            if matches!(trouble.code(), Some(404 | 409 | 422)) {
                return true;
            }
            if self.mistakes.made(Mistake::CacheBeforeCallback) {
                return false;
            }
            failures += 1;
            let asked = trouble.refusal().map_or(Duration::ZERO, |refusal| refusal.retry_after);
            sleep(backoff::pause(failures, rand::random()).max(asked)).await;
        }
    }

    /// The write for a version; `None` if it was done already, because the write would otherwise cause the next one.
    fn write(&self, observation: &Observation) -> Option<Ask> {
        let Observation { change, object, .. } = observation;
        if *change == Change::Deleted {
            return None;
        }
        let path = self.scope.object_path(&object.namespace, &object.name);
        match self.handling {
            Handling::None | Handling::Copy => None,
            Handling::Status if object.observed == object.generation => None,
            Handling::Status => {
                let body =
                    json!({"metadata": {"uid": &*object.uid}, "status": {"observedGeneration": object.generation}});
                Some(Ask::merge_patch(format!("{path}/status"), body.to_string()))
            }
            Handling::Annotation if object.marked => None,
            Handling::Annotation => {
                let body = json!({"metadata": {"uid": &*object.uid, "annotations": {MARK: "yes"}}});
                Some(Ask::merge_patch(path, body.to_string()))
            }
        }
    }

    async fn try_write(&self, observation: &Observation) -> Result<(), Trouble> {
        if self.handling == Handling::Copy {
            let Observation { change, object, .. } = observation;
            return copy::keep(&self.wire, &self.scope, object, *change).await;
        }
        let Some(ask) = self.write(observation) else { return Ok(()) };
        let answer = finished(self.wire.send(&ask).await?).await?;
        if self.mistakes.made(Mistake::CachesItsOwnWrites) {
            self.answers.lock().extend(Object::parse(&answer));
        }
        Ok(())
    }

    async fn report(&self, observation: &Observation) {
        let Observation { change, object, .. } = observation;
        let line = json!({
            "resource": self.scope.resource, "namespace": &*object.namespace, "name": &*object.name,
            "uid": &*object.uid, "resourceVersion": object.revision.as_str(), "change": change.as_str(),
        });
        // The witness's task lives as long as the process.
        let _ = self.lines.send(line.to_string()).await;
    }
}

/// The body of an answer; a refusal is an error. It is read to its end, so that the connection can be reused.
async fn finished(mut answer: Answer) -> Result<Bytes, Trouble> {
    if answer.status >= 300 {
        return Err(answer.refusal().await);
    }
    answer.collect(ANSWER_BYTES_MAX, Some(ANSWER_PATIENCE)).await
}
