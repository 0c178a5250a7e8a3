//! [`Script`]: a script that is running. The script's worker makes the writes one after another.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::Error;
use super::config::{Collection, Config, Verb};
use super::objects::{Content, Look};
use super::plan::{self, Operation, Plan};
use crate::churn::api::{self, Client, Reply, query};
use crate::churn::companions;
use crate::churn::namespaces;
use crate::churn::resource::Resource;
use crate::churn::writes::{self, Record};
use crate::churn::{Api, Write, Writes};
use crate::failure::Failure;
use crate::open_loop::{Due, Engine, Workload};
use facts::Change;

/// How many of the objects of `objectsMany` are created at the same time, because their order does not matter. Named
/// objects are created one after another.
const FILL_AT_ONCE: usize = 32;
/// How long `recreate` waits for finalizers, and how often it checks.
const FINALIZERS_LIMIT: Duration = Duration::from_secs(15);
const FINALIZERS_POLL: Duration = Duration::from_millis(20);
/// The name of a namespace that every cluster has.
const ALWAYS_THERE: &str = "default";

/// Numbers of a script's writes since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of writes whose time has come.
    pub planned: u64,
    /// Number of objects that were created, except those before the start of the subject.
    pub created: u64,
    pub updated: u64,
    pub deleted: u64,
    /// Number of writes that were refused; the first refusal ends the script.
    pub failed: u64,
    /// Number of all objects that were created, including those before the start of the subject.
    pub objects_total: u64,
    /// Number of writes that were not needed or not possible, because another client had created or deleted the object
    /// first.
    pub others_first: u64,
}

/// A running script; dropping the value stops it, and the objects stay.
#[derive(Debug)]
pub struct Script {
    engine: Engine<Worker>,
    plan: Plan,
    shared: Arc<Shared>,
    /// The ids of faults for whose first hit a step of the script waits.
    awaited: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Shared {
    counts: Mutex<Counts>,
    refused: Mutex<Option<Error>>,
    /// Whether no further write begins, so that none waits for finalizers.
    is_over: AtomicBool,
    record: Option<Mutex<Record>>,
}

impl Script {
    /// Creates the objects that must exist before the subject starts. The script's steps wait for [`Script::begin`], or
    /// for the first hit of their fault.
    pub async fn start(plan: Plan, api: &Api) -> Result<Self, Error> {
        let client = Arc::new(Client::new(api)?);
        let record = plan.records_writes().then(Mutex::default);
        let shared = Arc::new(Shared { record, ..Shared::default() });
        let awaited = plan.config().steps.iter().filter_map(|step| Some(step.when.as_ref()?.hit.clone())).collect();
        let writer = Arc::new(Writer {
            client,
            plan: plan.clone(),
            shared: Arc::clone(&shared),
            number: AtomicU64::new(0),
            present: Mutex::default(),
        });
        let worker = Worker { writer, waiting: VecDeque::new(), under_way: JoinSet::new(), is_over: false };
        let engine = Engine::start("script", worker, Arc::default()).map_err(|error| no_thread(&error))?;
        let filled = engine.ask(Fill).await.unwrap_or_else(|| Err(Failure::invalid("its worker has ended".to_owned())));
        filled.map_err(|failure| Error::Fill { problem: failure.text })?;
        Ok(Self { engine, plan, shared, awaited })
    }

    /// Sets the time from which the steps' times count. Call this function only once.
    pub fn begin(&mut self, zero: Instant) {
        self.go(self.plan.timed(), zero);
    }

    /// Reports a hit of a fault: steps that wait for its first hit get their times after `at`. Later hits of the fault
    /// are ignored.
    pub fn hit(&mut self, id: &str, at: Instant) {
        if self.awaited.remove(id) {
            self.go(self.plan.after_hit(id), at);
        }
    }

    fn go(&mut self, writes: plan::Writes, at: Instant) {
        if let Err(error) = self.engine.go(writes, at) {
            *self.shared.refused.lock() = Some(no_thread(&error));
        }
    }

    /// The numbers of writes since the script's start.
    pub fn counts(&self) -> Counts {
        *self.shared.counts.lock()
    }

    /// Why the script ended early; `None` if it did not.
    pub fn refused(&self) -> Option<Error> {
        self.shared.refused.lock().clone()
    }

    /// The successful writes to the script's own resource since the last call; `None` if the plan does not record
    /// writes.
    pub fn take_writes(&self) -> Option<Writes> {
        self.shared.record.as_ref().map(|record| record.lock().take())
    }

    /// Begins no further write, and waits `drain` for the write that is in flight.
    pub async fn stop(&mut self, drain: Duration) {
        // None means that the worker has ended: its panic has been printed.
        let _ = self.engine.stop(drain).await;
    }
}

fn no_thread(error: &std::io::Error) -> Error {
    Error::Api { problem: format!("start the script's threads: {error}") }
}

/// The order to create the objects that exist before the script's first step.
struct Fill(oneshot::Sender<Result<(), Failure>>);

/// The worker of a script, which begins each step when the previous step has ended.
struct Worker {
    writer: Arc<Writer>,
    /// Writes that wait for the end of an earlier one, at most as many as the plan has.
    waiting: VecDeque<Operation>,
    /// The repetition of a step that is in flight, at most one.
    under_way: JoinSet<Result<(), Error>>,
    /// Whether the script was stopped or a step was refused.
    is_over: bool,
}

impl Worker {
    fn next(&mut self) {
        if self.under_way.is_empty()
            && let Some(operation) = self.waiting.pop_front()
        {
            let writer = Arc::clone(&self.writer);
            self.under_way.spawn(async move { writer.make(operation).await });
        }
    }
}

impl Workload for Worker {
    type Operation = Operation;
    type Order = Fill;
    const KEEPS_ALL: bool = true;

    fn accept(&mut self, due: Due<Operation>) {
        if !self.is_over {
            self.waiting.push_back(due.item);
            self.next();
        }
    }

    async fn ended(&mut self) -> bool {
        let Some(made) = self.under_way.join_next().await else { return false };
        match made {
            Ok(Ok(())) => self.next(),
            Ok(Err(refused)) => {
                *self.writer.shared.refused.lock() = Some(refused);
                self.close();
            }
            Err(error) => tracing::error!(%error, "a step of the script panicked"),
        }
        true
    }

    async fn obey(&mut self, Fill(reply): Fill) {
        // The receiver may be gone.
        let _ = reply.send(self.writer.fill().await);
    }

    fn close(&mut self) {
        self.is_over = true;
        self.writer.shared.is_over.store(true, Ordering::Relaxed);
        self.waiting.clear();
    }

    async fn abandon(&mut self) {
        self.under_way.shutdown().await;
    }
}

struct Writer {
    client: Arc<Client>,
    plan: Plan,
    shared: Arc<Shared>,
    /// The number of the next write; the write's contents begin with this number.
    number: AtomicU64,
    /// The paths of the named objects that the script created and did not delete.
    present: Mutex<BTreeSet<String>>,
}

impl Writer {
    async fn fill(&self) -> Result<(), Failure> {
        let Config { namespace, with, .. } = self.plan.config();
        let tag = self.plan.seed().to_string();
        if namespace == ALWAYS_THERE {
            companions::make(&self.client, with, Some(namespace), &tag).await?;
        } else {
            namespaces::ensure(&self.client, &namespaces::Ready::default(), namespace, &tag, with).await?;
        }
        let mut tasks = JoinSet::new();
        for (number, name) in self.plan.first_objects().enumerate() {
            let at_once = if number <= self.plan.named_objects() { 1 } else { FILL_AT_ONCE };
            while tasks.len() >= at_once
                && let Some(done) = tasks.join_next().await
            {
                done.map_err(|error| Failure::invalid(error.to_string()))??;
            }
            let (client, plan, shared) = (Arc::clone(&self.client), self.plan.clone(), Arc::clone(&self.shared));
            tasks.spawn(async move {
                let labels = &plan.config().labels;
                let content = Content { labels, seed: plan.seed(), number: number as u64, text: "first", bytes: 0 };
                let look = Look { resource: plan.resource(), template: plan.template() };
                let object = look.create(&plan.config().namespace, &name, content);
                let path = plan.resource().path_in(&plan.config().namespace);
                let reply = client.create(&path, &object).await?;
                accepted(&reply, "POST", &path)?;
                shared.note(|| writes::written(Change::Added, (plan.place(), name), &reply));
                shared.counts.lock().objects_total += 1;
                Ok::<(), Failure>(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(|error| Failure::invalid(error.to_string()))??;
        }
        let collection = self.plan.resource().path_in(&self.plan.config().namespace);
        let named = self.plan.config().objects.iter().map(|name| format!("{collection}/{name}"));
        self.present.lock().extend(named);
        Ok(())
    }

    async fn make(&self, due: Operation) -> Result<(), Error> {
        let step = self.plan.config().steps[due.step].clone();
        let Some((verb, names)) = step.verb() else { return Ok(()) };
        let (resource, template, judged) = match &step.resource {
            Some(text) => (Resource::parse(text)?, None, false),
            None => (self.plan.resource().clone(), self.plan.template().cloned(), true),
        };
        let refused = |what: &str, failure: Failure| {
            let what = format!("{}: {what}", verb.as_str());
            Error::Refused { step: due.step + 1, what, problem: failure.text }
        };
        if let Some(Collection { selector }) = &step.delete_collection {
            let deleted = self.delete_collection(&resource, selector, judged).await;
            return deleted.map_err(|failure| refused(selector, failure));
        }
        for name in self.plan.names(due) {
            let calls: &[Verb] = if verb == Verb::Recreate { &[Verb::Delete, Verb::Recreate] } else { &[verb] };
            let mut deleted = None;
            for call in calls {
                let text = step.text.as_deref().unwrap_or_default();
                let bytes = step.size.map_or(0, |size| size.0);
                // The first objects have the numbers before.
                let number = self.number.fetch_add(1, Ordering::Relaxed) + 1 + u64::from(u32::MAX);
                let content = Content { labels: &step.labels, seed: self.plan.seed(), number, text, bytes };
                let look = Look { resource: &resource, template: template.as_ref() };
                let target = Target { look, name: &name, set: &step.set, judged, deleted: deleted.take() };
                let written = self.write(*call, target, content).await;
                deleted = written.map_err(|failure| refused(&names.join(", "), failure))?;
            }
        }
        Ok(())
    }

    /// Creates an object. For `recreate`, waits while a finalizer holds the deleted object. `None` if another client created an
    /// object of the same name first, or if the finalizers stay: that is an act of the subject, which a judge decides, and no failure of the script.
    async fn create(
        &self,
        verb: Verb,
        collection: &str,
        target: &Target<'_>,
        object: &Value,
    ) -> Result<Option<Reply>, Failure> {
        let limit = Instant::now() + FINALIZERS_LIMIT;
        loop {
            let reply = self.client.create(collection, object).await?;
            if verb != Verb::Recreate || reply.status != http::StatusCode::CONFLICT {
                return Ok(Some(reply));
            }
            let existing = self.client.read(&format!("{collection}/{}", target.name)).await?;
            if existing.metadata().is_ok_and(|metadata| target.deleted.as_ref() != Some(&metadata.uid)) {
                return Ok(None);
            }
            // Its finalizers may never go, which is a fact about the subject as well.
            if Instant::now() >= limit || self.shared.is_over.load(Ordering::Relaxed) {
                return Ok(None);
            }
            tokio::time::sleep(FINALIZERS_POLL).await;
        }
    }

    /// Makes a write. Returns the uid of the object that the write deleted.
    async fn write(&self, verb: Verb, target: Target<'_>, content: Content<'_>) -> Result<Option<String>, Failure> {
        let Target { look, name, set, judged, .. } = target;
        let namespace = &self.plan.config().namespace;
        let collection = look.resource.path_in(namespace);
        let path = format!("{collection}/{name}");
        self.shared.counts.lock().planned += 1;
        let (method, reply) = match verb {
            Verb::Create | Verb::Recreate => {
                let mut object = look.create(namespace, name, content);
                json_patch::merge(&mut object, &Value::Object(set.clone()));
                ("POST", self.create(verb, &collection, &target, &object).await)
            }
            Verb::Update => {
                let mut patch = look.update(namespace, name, content);
                set_in(&mut patch, set);
                ("PATCH", self.client.merge(&path, &patch).await.map(Some))
            }
            Verb::Delete | Verb::DeleteCollection => ("DELETE", self.client.delete(&path).await.map(Some)),
        };
        // An object of the script that is not there was deleted by another client: a judge decides whether that was right.
        let is_gone =
            |reply: &Reply| reply.status == http::StatusCode::NOT_FOUND && self.present.lock().contains(&path);
        let outcome = reply.and_then(|reply| match reply.filter(|reply| !is_gone(reply)) {
            Some(reply) => accepted(&reply, method, &path).map(|()| Some(reply)),
            None => Ok(None),
        });
        let Some(reply) = outcome.inspect_err(|_| self.shared.counts.lock().failed += 1)? else {
            self.shared.counts.lock().others_first += 1;
            return Ok(None);
        };
        match verb {
            Verb::Create | Verb::Recreate => _ = self.present.lock().insert(path),
            Verb::Delete => _ = self.present.lock().remove(&path),
            Verb::Update | Verb::DeleteCollection => {}
        }
        let place = (self.plan.place(), name.to_owned());
        let write = match verb {
            Verb::Create | Verb::Recreate => writes::written(Change::Added, place, &reply),
            Verb::Update => writes::written(Change::Modified, place, &reply),
            Verb::Delete | Verb::DeleteCollection => writes::deleted(place, &reply),
        };
        let deleted = write.as_ref().filter(|_| verb == Verb::Delete).and_then(|write| write.uid.clone());
        if judged {
            self.shared.note(|| write);
        }
        let mut counts = self.shared.counts.lock();
        match verb {
            Verb::Create | Verb::Recreate => {
                counts.created += 1;
                counts.objects_total += 1;
            }
            Verb::Update => counts.updated += 1,
            Verb::Delete | Verb::DeleteCollection => counts.deleted += 1,
        }
        Ok(deleted)
    }

    /// Deletes objects by their labels. If no object matches, that is an error, because the script would prove no bug.
    async fn delete_collection(&self, resource: &Resource, selector: &str, judged: bool) -> Result<(), Failure> {
        let path = resource.path_in(&self.plan.config().namespace);
        let reply = self
            .client
            .delete_collection(&format!("{path}?labelSelector={}", query(selector)), &api::options(None, false))
            .await;
        let outcome = reply.and_then(|reply| accepted(&reply, "DELETE", &path).map(|()| reply));
        let objects = outcome.and_then(|reply| writes::collected(&reply)).and_then(|objects| match objects.len() {
            0 => {
                Err(Failure::invalid(format!("DELETE {path}: no object carries `{selector}`, so nothing was deleted")))
            }
            _ => Ok(objects),
        });
        let mut counts = self.shared.counts.lock();
        counts.planned += objects.as_ref().map_or(1, |objects| objects.len() as u64);
        let objects = objects.inspect_err(|_| counts.failed += 1)?;
        counts.deleted += objects.len() as u64;
        drop(counts);
        for object in objects.into_iter().filter(|object| judged && !object.waits) {
            self.shared.note(|| object.write());
        }
        Ok(())
    }
}

/// The object to which a write goes.
struct Target<'a> {
    look: Look<'a>,
    name: &'a str,
    /// A merge patch of the contents.
    set: &'a Map<String, Value>,
    /// Whether the object belongs to the script's own resource.
    judged: bool,
    /// The uid of the object that a recreation has just deleted.
    deleted: Option<String>,
}

impl Shared {
    fn note(&self, write: impl FnOnce() -> Option<Write>) {
        if let Some(record) = &self.record {
            let write = write();
            record.lock().note(write);
        }
    }
}

/// Adds the fields that a step sets to a merge patch. A null stays, because it removes the field.
fn set_in(patch: &mut Value, set: &Map<String, Value>) {
    for (key, value) in set {
        match value {
            Value::Object(below) if patch[key].is_object() => set_in(&mut patch[key], below),
            _ => patch[key] = value.clone(),
        }
    }
}

fn accepted(reply: &Reply, method: &str, path: &str) -> Result<(), Failure> {
    if reply.status.is_success() { Ok(()) } else { Err(reply.failure(&format!("{method} {path}"))) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A step's fields are added to those that its update changes, and a null removes a field.
    #[test]
    fn set_fields_are_part_of_a_patch() {
        let mut patch = json!({"spec": {"replicas": 3, "size": 1}, "metadata": {"annotations": {"a": "b"}}});
        let set = json!({"spec": {"replicas": 0, "image": null}, "status": {"x": 1}});
        set_in(&mut patch, set.as_object().unwrap());
        let spec = json!({"replicas": 0, "size": 1, "image": null});
        let wanted = json!({"spec": spec, "metadata": {"annotations": {"a": "b"}}, "status": {"x": 1}});
        assert_eq!(patch, wanted);
    }
}
