//! The worker: owns the known state of every existing object, and starts the operations on each object in order.
//!
//! An object has only one request in flight. A later request on the object waits for the end of the earlier one, and
//! its response time still counts from its planned time.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::Shared;
use super::operate::Operator;
use super::oracle::{self, Outcome, State};
use super::plan::{Operation, Step};
use crate::churn::api::Reply;
use crate::churn::writes;
use crate::failure::Failure;
use crate::open_loop::{Due, Moments, Workload};
use facts::Change;

/// Maximum number of operations that may wait for an earlier operation on the same object.
const WAITING_MAX: usize = 16;
/// Number of deletions at the same time during the clean-up, and its time limit.
const CLEAN_AT_ONCE: usize = 32;
const CLEAN_LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
struct Slot {
    busy: bool,
    made: u32,
    waiting: VecDeque<(Instant, Operation)>,
    state: Option<State>,
}

struct Finished {
    operation: Operation,
    moments: Moments,
    result: Result<Reply, Failure>,
}

pub(super) struct Worker {
    operator: Operator,
    shared: Arc<Shared>,
    slots: BTreeMap<u64, Slot>,
    tasks: JoinSet<Finished>,
    in_flight_max: usize,
}

impl Workload for Worker {
    type Operation = Operation;
    type Order = Infallible;

    /// Starts the request, or lets it wait for the current request on its object.
    fn accept(&mut self, due: Due<Operation>) {
        let (lateness, Due { planned, item: operation }) = (due.lateness(), due);
        let slot = self.slots.entry(operation.object).or_default();
        slot.made = operation.made;
        if slot.busy && slot.waiting.len() < WAITING_MAX {
            slot.waiting.push_back((planned, operation));
        } else if slot.busy || self.tasks.len() >= self.in_flight_max {
            self.shared.recorder.lock().overflow();
            return;
        } else {
            slot.busy = true;
            self.spawn(planned, operation);
        }
        self.shared.recorder.lock().sent(lateness);
    }

    async fn ended(&mut self) -> bool {
        let Some(finished) = self.tasks.join_next().await else { return false };
        self.handle(finished);
        true
    }

    async fn obey(&mut self, order: Infallible) {
        match order {}
    }

    async fn abandon(&mut self) {
        self.shared.recorder.lock().abandoned(self.tasks.len() as u64);
        self.tasks.shutdown().await;
    }

    async fn stopped(&mut self) {
        let _ = tokio::time::timeout(CLEAN_LIMIT, self.clean()).await;
    }
}

impl Worker {
    pub(super) fn new(operator: Operator, shared: Arc<Shared>, in_flight_max: usize) -> Self {
        Self { operator, shared, slots: BTreeMap::new(), tasks: JoinSet::new(), in_flight_max }
    }

    fn spawn(&mut self, planned: Instant, operation: Operation) {
        let operator = self.operator.clone();
        self.tasks.spawn(async move {
            let request = operator.request(operation);
            let (moments, result) = Moments::of(planned, operator.send(&request)).await;
            Finished { operation, moments, result }
        });
    }

    fn handle(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        match finished {
            Ok(finished) => self.finish(finished),
            Err(error) => tracing::error!(%error, "a request of the load panicked"),
        }
    }

    fn finish(&mut self, Finished { operation, moments, result }: Finished) {
        let slot = self.slots.entry(operation.object).or_default();
        let judged = result.and_then(|reply| {
            note(&self.operator, &self.shared, operation, &reply);
            oracle::judge(&self.operator, operation, slot.state.as_ref(), &reply)
        });
        {
            let mut recorder = self.shared.recorder.lock();
            match judged {
                Ok(Outcome { judgement, state }) => {
                    if !judgement.allowed && operation.step == Step::Create {
                        slot.state = Some(State::Absent);
                    } else if state.is_some() {
                        slot.state = state;
                    }
                    recorder.answered(moments, judgement);
                }
                Err(failure) => {
                    // An object without an answer may be stored or not; the clean-up finds out.
                    if operation.step == Step::Create && failure.class == crate::failure::Class::HttpError {
                        slot.state = Some(State::Absent);
                    }
                    recorder.failed(moments, failure);
                }
            }
        }
        slot.busy = false;
        if let Some((planned, next)) = slot.waiting.pop_front() {
            slot.busy = true;
            self.spawn(planned, next);
        } else if operation.step == Step::DryRun || self.is_over(operation) {
            self.slots.remove(&operation.object);
        }
    }

    /// Whether no later operation of the plan chooses the object.
    fn is_over(&self, operation: Operation) -> bool {
        let absent = self.slots.get(&operation.object).is_some_and(|slot| slot.state == Some(State::Absent));
        let denied = self.operator.stock.made(operation.made).expected.is_deny();
        absent && (denied || operation.step == Step::Delete)
    }

    /// Deletes the objects that still exist at the end.
    async fn clean(&mut self) {
        let slots = std::mem::take(&mut self.slots);
        let mut left = slots.into_iter().filter(|(_, slot)| slot.state != Some(State::Absent));
        let mut tasks = JoinSet::new();
        loop {
            while tasks.len() < CLEAN_AT_ONCE {
                let Some((object, slot)) = left.next() else { break };
                let operation = Operation { object, made: slot.made, step: Step::Delete };
                let operator = self.operator.clone();
                tasks.spawn(async move { (operation, operator.send(&operator.request(operation)).await) });
            }
            match tasks.join_next().await {
                Some(Ok((operation, Ok(reply)))) => note(&self.operator, &self.shared, operation, &reply),
                // The object may stay: the run does not judge the harness's own clean-up.
                Some(_) => {}
                None => break,
            }
        }
        for name in &self.operator.stock.namespaces {
            let _ = self.operator.client.delete(&format!("/api/v1/namespaces/{name}")).await;
        }
    }
}

/// Keeps the write that a successful answer confirms, to compare it with the watch.
fn note(operator: &Operator, shared: &Shared, operation: Operation, reply: &Reply) {
    let kind = operator.kind(operation);
    let change = match operation.step {
        Step::DryRun | Step::Scale { subresource: true, .. } => return,
        Step::Create => Change::Added,
        Step::Delete => Change::Deleted,
        _ => Change::Modified,
    };
    if !reply.status.is_success() || kind.pod_spec().is_none() {
        return;
    }
    let place = operator.place(operation);
    let write =
        if change == Change::Deleted { writes::deleted(place, reply) } else { writes::written(change, place, reply) };
    shared.writes.lock().entry(kind.plural()).or_default().note(write);
}
