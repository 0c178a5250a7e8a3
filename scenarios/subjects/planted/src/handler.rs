//! Handles each change of an object: writes to the API server if `--handler` says so, and reports the change once the
//! write has succeeded.
//!
//! The changes of one object wait in one queue, in order. A newer version of an object replaces a waiting older
//! version, and a full queue makes its watch wait. The handler does not know whether a change came from a list or a
//! watch.

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

/// Number of queues of one kind, so that a slow handler delays at most an eighth of the objects.
const QUEUES: usize = 8;
const QUEUE_LENGTH: usize = 64;
/// With the mistake `handlers-overtake`: default time of every second handler call of an object.
const OVERTAKEN: Duration = Duration::from_millis(1500);
/// Largest answer to a write, in bytes. The answer to a write is one object.
const ANSWER_BYTES_MAX: usize = 4 << 20;
const ANSWER_PATIENCE: Duration = Duration::from_secs(4);

#[derive(Debug, Clone)]
pub struct Observation {
    pub change: Change,
    /// The changed object.
    pub object: Object,
    /// The bytes of the watch's line, for the mistake that keeps them.
    #[expect(dead_code, reason = "kept, never read: that is the mistake")]
    pub raw: Option<Bytes>,
}

/// The values that all handler calls of one kind share.
pub struct Handler {
    pub scope: Scope,
    /// The action on each version before the client reports it.
    pub handling: Handling,
    /// Extra time of a handler call.
    pub delay: Duration,
    /// The connections for writes.
    pub wire: Wire,
    /// The queue of reports to the witness.
    pub lines: witness::Lines,
    /// How many kinds have been listed, and how many kinds there are.
    pub synced: (watch::Receiver<usize>, usize),
    /// Answers to writes that the cache takes as known state. Only a client with a mistake adds such answers.
    pub answers: Answers,
    pub mistakes: Mistakes,
}

/// Objects from answers to writes, until the cache takes them.
pub type Answers = Arc<Mutex<Vec<Object>>>;

/// The sending side of the queues of changes.
pub struct Queues {
    handler: Arc<Handler>,
    all: Vec<Arc<Queue>>,
    /// Handler calls that a mistake does not await. The field below is the number of handler calls per object.
    loose: JoinSet<()>,
    counts: BTreeMap<Arc<str>, u64>,
    _workers: JoinSet<()>,
}

/// The changes that wait for one worker.
struct Queue {
    waiting: Mutex<VecDeque<Observation>>,
    arrived: Notify,
    taken: Notify,
    /// Whether the queue is unbounded and keeps every version (a mistake).
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

    /// Another sending side of the same queues, for a second informer.
    pub fn twin(&self) -> Self {
        let (handler, all) = (self.handler.clone(), self.all.clone());
        let (loose, counts, workers) = (JoinSet::new(), BTreeMap::new(), JoinSet::new());
        Self { handler, all, loose, counts, _workers: workers }
    }

    /// Adds a change to the queue of its object. Waits while the queue is full.
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

    /// Adds a change to this queue. Returns the change if the queue is full.
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

    /// Repeats the write for a change until the write succeeds. Returns false if the client gave the write up.
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

    /// The write request for a version of an object. The request is `None` if the object already shows the write;
    /// otherwise each write would cause another write.
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

/// The body of a successful answer; a refusal is an error. The answer's body is read to its end, so that the connection
/// can be reused.
async fn finished(mut answer: Answer) -> Result<Bytes, Trouble> {
    if answer.status >= 300 {
        return Err(answer.refusal().await);
    }
    answer.collect(ANSWER_BYTES_MAX, Some(ANSWER_PATIENCE)).await
}
