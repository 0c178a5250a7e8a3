//! The worker of churn: owns the state of every existing object, and starts the operations on each object in order.
//!
//! An object has only one operation in flight, and a later operation waits for the end of the earlier operation.
//! Failures are counted and repaired. An object whose creation failed is created by its next update. An object whose
//! deletion failed is deleted later.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::Error;
use super::api::IN_FLIGHT_MAX;
use super::interval::Effect;
use super::namespaces::{self, Namespaces};
use super::operate::{Done, Operator};
use super::operations::{Kind, Operation};
use super::shared::{CanaryWrite, Shared};
use crate::failure::Failure;
use crate::open_loop::{Due, Moments, Workload};

mod bulk;
mod endings;

/// Maximum number of operations that may wait for an earlier operation on the same object.
const WAITING_MAX: usize = 16;
/// How often failed deletions are tried again, and how many of them at the same time.
const MEND_EVERY: Duration = Duration::from_secs(1);
const MEND_AT_ONCE: usize = 16;

#[derive(Debug)]
pub(super) enum Command {
    Fill(oneshot::Sender<Result<(), Error>>),
    Canary(oneshot::Sender<Result<CanaryWrite, Error>>),
    Empty(oneshot::Sender<Result<u64, Error>>),
}

#[derive(Debug, Default)]
struct Slot {
    busy: bool,
    /// Whether the object is deleted but still exists.
    ends: bool,
    waiting: VecDeque<(Option<Instant>, Operation)>,
}

struct Finished {
    operation: Operation,
    /// The times of the operation; `None` for operations that are not planned.
    timing: Option<Moments>,
    result: Result<Done, Failure>,
}

enum Event {
    Operation(Finished),
    Canary,
    Namespace(u64, Result<(), Failure>),
}

pub(super) struct Worker {
    operator: Operator,
    shared: Arc<Shared>,
    slots: BTreeMap<u64, Slot>,
    /// Objects whose deletion failed; no later operation uses them.
    doomed: BTreeSet<u64>,
    namespaces: Namespaces,
    tasks: JoinSet<Event>,
    /// Deletions of groups that wait for operations on their objects.
    collections: VecDeque<(Option<Instant>, Operation)>,
    /// The work that remains for deleted objects, as running tasks.
    endings: JoinSet<(u64, Result<(), Failure>)>,
    /// An operation was begun for every object with a number below this one.
    next: u64,
    canaries: u64,
}

impl Workload for Worker {
    type Operation = Operation;
    type Order = Command;
    const EVERY: Duration = MEND_EVERY;

    fn accept(&mut self, due: Due<Operation>) {
        self.begin(Some(due.planned), due.item);
    }

    /// At the deadline of a stop, operations that have not ended continue in the background, and are counted when they
    /// end.
    async fn ended(&mut self) -> bool {
        tokio::select! {
            biased;
            Some(event) = self.tasks.join_next() => self.handle(event),
            Some(rest) = self.endings.join_next() => self.rested(rest),
            else => return false,
        }
        true
    }

    async fn obey(&mut self, command: Command) {
        // The receiver may be gone.
        match command {
            Command::Fill(reply) => {
                let _ = reply.send(self.fill().await);
            }
            Command::Canary(reply) => self.canary(reply),
            Command::Empty(reply) => {
                while self.ended().await {}
                let _ = reply.send(self.empty().await);
            }
        }
    }

    /// Tries failed deletions again. These tries are not counted, because the planned operation was counted as failed.
    fn tick(&mut self) {
        for object in self.doomed.iter().copied().take(MEND_AT_ONCE).collect::<Vec<_>>() {
            let busy = self.slots.get(&object).is_some_and(|slot| slot.busy);
            if !busy && self.tasks.len() < IN_FLIGHT_MAX {
                self.begin(None, Operation { kind: Kind::Delete, object, revision: 0 });
            }
        }
    }
}

impl Worker {
    pub(super) fn new(operator: Operator, shared: Arc<Shared>) -> Self {
        Self {
            operator,
            shared,
            slots: BTreeMap::new(),
            doomed: BTreeSet::new(),
            namespaces: Namespaces::default(),
            tasks: JoinSet::new(),
            collections: VecDeque::new(),
            endings: JoinSet::new(),
            next: 0,
            canaries: 0,
        }
    }

    /// Starts the operation, or lets it wait for the current operation on its object.
    fn begin(&mut self, planned: Option<Instant>, operation: Operation) {
        if operation.kind == Kind::Collect {
            return self.collect(planned, operation);
        }
        self.next = self.next.max(operation.object + 1);
        let slot = self.slots.entry(operation.object).or_default();
        if slot.busy && slot.waiting.len() < WAITING_MAX {
            slot.waiting.push_back((planned, operation));
            return;
        }
        if slot.busy || self.tasks.len() >= IN_FLIGHT_MAX {
            let text = format!("{IN_FLIGHT_MAX} operations are under way: the API is slower than the planned rate");
            self.shared.recorder.lock().failed("not begun", || text);
            // The object stays unchanged, so a delete must be repeated later.
            if operation.kind == Kind::Delete {
                self.doomed.insert(operation.object);
            }
            return;
        }
        slot.busy = true;
        self.spawn(planned, operation);
    }

    fn spawn(&mut self, planned: Option<Instant>, operation: Operation) {
        let operator = self.operator.clone();
        let ready = self.namespaces.need(operator.plan.namespace_of(operation.object));
        self.tasks.spawn(async move {
            let work = operator.run(operation, &ready);
            let (moments, result) = Moments::of(planned.unwrap_or_else(Instant::now), work).await;
            let timing = planned.map(|_| moments);
            Event::Operation(Finished { operation, timing, result })
        });
    }

    fn handle(&mut self, event: Result<Event, tokio::task::JoinError>) {
        match event {
            Ok(Event::Operation(finished)) => self.finish(finished),
            Ok(Event::Namespace(number, Err(failure))) => {
                // Not an operation of the plan, so not counted. Remembered again, so that the clean-up deletes it.
                tracing::warn!(reason = failure.text, "a namespace of the churn could not be deleted");
                self.namespaces.need(number);
            }
            Ok(Event::Canary | Event::Namespace(_, Ok(()))) => {}
            Err(error) => tracing::error!(%error, "an operation of the churn panicked"),
        }
    }

    fn finish(&mut self, Finished { operation, timing, result }: Finished) {
        if let Ok(Done { effect: Effect::Created, objects }) = result {
            self.shared.objects_total.fetch_add(objects, Ordering::Relaxed);
        }
        let effect = result.as_ref().ok().map(|done| done.effect);
        if let Some(timing) = timing {
            let mut recorder = self.shared.recorder.lock();
            recorder.timed(timing.lateness(), timing.service());
            match result {
                Ok(Done { effect: Effect::Deleted, objects }) => recorder.done_many(Effect::Deleted, objects.max(1)),
                Ok(Done { effect, .. }) => recorder.done(effect),
                Err(failure) => recorder.failed(failure.class.text(), || failure.text),
            }
        }
        if operation.kind == Kind::Collect {
            self.collected(operation, effect.is_some());
        } else {
            self.finish_one(operation, effect);
        }
        self.begin_collections();
    }

    fn finish_one(&mut self, operation: Operation, effect: Option<Effect>) {
        let object = operation.object;
        if operation.kind == Kind::Delete && effect != Some(Effect::Deleted) {
            self.doomed.insert(object);
        }
        let Some(slot) = self.slots.get_mut(&object) else { return };
        slot.busy = false;
        if let Some((planned, next)) = slot.waiting.pop_front() {
            slot.busy = true;
            self.spawn(planned, next);
        } else if effect == Some(Effect::Deleted) {
            self.begin_end(operation, object);
        }
    }

    /// Deletes the namespace if its last object was deleted and no new object will come.
    fn retire(&mut self, namespace: u64) {
        let each = self.operator.plan.objects_per_namespace();
        let objects = namespace * each..(namespace + 1) * each;
        // Cluster-wide objects have no namespace.
        if !self.operator.plan.is_namespaced()
            || self.next < objects.end
            || self.slots.range(objects).next().is_some()
            || !self.namespaces.forget(namespace)
        {
            return;
        }
        let operator = self.operator.clone();
        self.tasks.spawn(async move {
            let name = operator.plan.namespace_name(namespace);
            Event::Namespace(namespace, namespaces::delete(&operator.client, &name).await)
        });
    }

    fn canary(&mut self, reply: oneshot::Sender<Result<CanaryWrite, Error>>) {
        self.canaries += 1;
        let (operator, shared, revision) = (self.operator.clone(), Arc::clone(&self.shared), self.canaries);
        self.tasks.spawn(async move {
            let outcome = operator.canary(revision).await;
            if let Ok((Effect::Created, _)) = outcome {
                shared.objects_total.fetch_add(1, Ordering::Relaxed);
            }
            let (namespace, name) = operator.plan.canary_place();
            let written = outcome
                .map(|(_, metadata)| CanaryWrite {
                    namespace,
                    name,
                    uid: metadata.uid,
                    resource_version: metadata.resource_version,
                })
                .map_err(|failure| Error::Canary { problem: failure.text });
            let _ = reply.send(written);
            Event::Canary
        });
    }
}
