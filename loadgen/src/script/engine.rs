//! [`Script`]: a script under way. Owns the task that makes the writes, one after the other.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use super::Error;
use super::config::{Collection, Verb};
use super::objects::{Content, Look};
use super::plan::{Due, Plan};
use crate::churn::api::{self, Client, Reply, query};
use crate::churn::namespaces;
use crate::churn::resource::Resource;
use crate::churn::writes::{self, Record};
use crate::churn::{Api, Write, Writes};
use crate::wire::Failure;
use facts::Change;

/// Concurrency of making many objects: their order says nothing. Those that are named are made one after the other.
const FILL_AT_ONCE: usize = 32;
/// So long `recreate` waits for finalizers, and so often it looks.
const FINALIZERS_LIMIT: Duration = Duration::from_secs(15);
const FINALIZERS_POLL: Duration = Duration::from_millis(20);
/// The namespace that every cluster has.
const ALWAYS_THERE: &str = "default";

/// What a script has written so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Writes whose time has come.
    pub planned: u64,
    /// Objects created, those before the start of the subject not counted.
    pub created: u64,
    /// Objects changed.
    pub updated: u64,
    /// Objects deleted.
    pub deleted: u64,
    /// Writes that were refused: the first one ends the script.
    pub failed: u64,
    /// Objects ever created, those before the start of the subject too.
    pub objects_total: u64,
}

/// A script under way. Dropping it stops it; the objects stay.
#[derive(Debug)]
pub struct Script {
    /// Closed to stop the task.
    commands: Option<mpsc::Sender<Command>>,
    task: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    /// Faults of which a step waits for the first hit, and that have not been told yet.
    awaited: BTreeSet<String>,
}

#[derive(Debug)]
enum Command {
    Begin(Instant),
    Hit { id: String, at: Instant },
}

#[derive(Debug, Default)]
struct Shared {
    counts: Mutex<Counts>,
    refused: Mutex<Option<Error>>,
    record: Option<Mutex<Record>>,
}

impl Script {
    /// Makes the objects that exist before the subject starts. The steps wait for [`Script::begin`], or for their fault.
    pub async fn start(plan: Plan, api: &Api) -> Result<Self, Error> {
        let client = Arc::new(Client::new(api)?);
        let record = plan.records_writes().then(Mutex::default);
        let shared = Arc::new(Shared { record, ..Shared::default() });
        let writer = Writer { client, plan, shared: Arc::clone(&shared), number: 0 };
        writer.fill().await.map_err(|failure| Error::Fill { problem: failure.text })?;
        let steps = &writer.plan.config().steps;
        let awaited: BTreeSet<String> =
            steps.iter().filter_map(|step| step.when.as_ref().map(|when| when.hit.clone())).collect();
        // One place for the beginning and one for each fault, each told once: the queue never fills up.
        let (commands, queue) = mpsc::channel(awaited.len() + 1);
        let task = tokio::spawn(writer.run(queue));
        Ok(Self { commands: Some(commands), task: Some(task), shared, awaited })
    }

    /// The times of the steps count from here. Once.
    pub fn begin(&self, zero: Instant) {
        self.tell(Command::Begin(zero));
    }

    /// A fault was hit: steps that wait for its first hit are due so long after `at`. Later hits are ignored.
    pub fn hit(&mut self, id: &str, at: Instant) {
        if let Some(id) = self.awaited.take(id) {
            self.tell(Command::Hit { id, at });
        }
    }

    fn tell(&self, command: Command) {
        // The task ends before its handle only when a step was refused, which is told by `refused`.
        if let Some(commands) = &self.commands {
            let _ = commands.try_send(command);
        }
    }

    /// What was written since the start.
    pub fn counts(&self) -> Counts {
        *self.shared.counts.lock()
    }

    /// Why the script ended before its end, if it did.
    pub fn refused(&self) -> Option<Error> {
        self.shared.refused.lock().clone()
    }

    /// The writes that succeeded since the last call, of the script's own resource. None when the plan does not record them.
    pub fn take_writes(&self) -> Option<Writes> {
        self.shared.record.as_ref().map(|record| record.lock().take())
    }

    /// Begins no further write, and waits so long for the one under way.
    pub async fn stop(&mut self, drain: Duration) {
        self.commands = None;
        if let Some(mut task) = self.task.take()
            && tokio::time::timeout(drain, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// Makes the writes. Owned by the task.
struct Writer {
    client: Arc<Client>,
    plan: Plan,
    shared: Arc<Shared>,
    /// Every write has its own number, which its content begins with.
    number: u64,
}

/// What is due: the time, the order among equals, and the write.
type Queue = BinaryHeap<Reverse<(Instant, usize, u32, Duration)>>;

impl Writer {
    async fn fill(&self) -> Result<(), Failure> {
        let namespace = &self.plan.config().namespace;
        if namespace != ALWAYS_THERE {
            let tag = self.plan.seed().to_string();
            namespaces::ensure(&self.client, &namespaces::Ready::default(), namespace, &tag).await?;
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
        Ok(())
    }

    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut queue = Queue::new();
        loop {
            let next = queue.peek().map(|Reverse((at, ..))| tokio::time::Instant::from_std(*at));
            tokio::select! {
                biased;
                command = commands.recv() => match command {
                    Some(command) => self.enqueue(&command, &mut queue),
                    None => return,
                },
                () = sleep_until(next) => {
                    let Some(Reverse((at, step, round, after))) = queue.pop() else { continue };
                    let due = Due { after, step, round };
                    if let Err(error) = self.make(due).await {
                        *self.shared.refused.lock() = Some(error);
                        return;
                    }
                    if let Some(next) = self.plan.next(due) {
                        queue.push(Reverse((at + self.plan.spread(due), step, next.round, next.after)));
                    }
                }
            }
        }
    }

    fn enqueue(&self, command: &Command, queue: &mut Queue) {
        let (zero, due): (Instant, Vec<Due>) = match command {
            Command::Begin(zero) => (*zero, self.plan.timed().collect()),
            Command::Hit { id, at } => (*at, self.plan.after_hit(id).collect()),
        };
        queue.extend(due.into_iter().map(|due| Reverse((zero + due.after, due.step, due.round, due.after))));
    }

    /// One repetition of one step.
    async fn make(&mut self, due: Due) -> Result<(), Error> {
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
            for call in calls {
                self.number += 1;
                let text = step.text.as_deref().unwrap_or_default();
                let bytes = step.size.map_or(0, |size| size.0);
                // The numbers of the first objects come before.
                let number = self.number + u64::from(u32::MAX);
                let content = Content { labels: &step.labels, seed: self.plan.seed(), number, text, bytes };
                let look = Look { resource: &resource, template: template.as_ref() };
                let target = Target { look, name: &name, judged };
                self.write(*call, target, content).await.map_err(|failure| refused(&names.join(", "), failure))?;
            }
        }
        Ok(())
    }

    /// Makes an object. Its deleted namesake may still be there, for as long as somebody has a finalizer on it.
    async fn create(&self, collection: &str, verb: Verb, object: &serde_json::Value) -> Result<Reply, Failure> {
        let limit = Instant::now() + FINALIZERS_LIMIT;
        loop {
            let reply = self.client.create(collection, object).await?;
            let waits = verb == Verb::Recreate && reply.status == http::StatusCode::CONFLICT && Instant::now() < limit;
            if !waits {
                return Ok(reply);
            }
            tokio::time::sleep(FINALIZERS_POLL).await;
        }
    }

    async fn write(&self, verb: Verb, target: Target<'_>, content: Content<'_>) -> Result<(), Failure> {
        let Target { look, name, judged } = target;
        let namespace = &self.plan.config().namespace;
        let collection = look.resource.path_in(namespace);
        let path = format!("{collection}/{name}");
        self.shared.counts.lock().planned += 1;
        let (method, reply) = match verb {
            Verb::Create | Verb::Recreate => {
                ("POST", self.create(&collection, verb, &look.create(namespace, name, content)).await)
            }
            Verb::Update => ("PATCH", self.client.merge(&path, &look.update(namespace, name, content)).await),
            Verb::Delete | Verb::DeleteCollection => ("DELETE", self.client.delete(&path).await),
        };
        let outcome = reply.and_then(|reply| accepted(&reply, method, &path).map(|()| reply));
        let reply = outcome.inspect_err(|_| self.shared.counts.lock().failed += 1)?;
        let place = (self.plan.place(), name.to_owned());
        if judged {
            self.shared.note(|| match verb {
                Verb::Create | Verb::Recreate => writes::written(Change::Added, place, &reply),
                Verb::Update => writes::written(Change::Modified, place, &reply),
                Verb::Delete | Verb::DeleteCollection => writes::deleted(place, &reply),
            });
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
        Ok(())
    }

    /// Deletes what carries some labels. Nothing that does is a mistake in the script, and shows nothing.
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

/// Which object is written.
#[derive(Clone, Copy)]
struct Target<'a> {
    look: Look<'a>,
    name: &'a str,
    /// It is of the script's own resource.
    judged: bool,
}

impl Shared {
    fn note(&self, write: impl FnOnce() -> Option<Write>) {
        if let Some(record) = &self.record {
            let write = write();
            record.lock().note(write);
        }
    }
}

fn accepted(reply: &Reply, method: &str, path: &str) -> Result<(), Failure> {
    if reply.status.is_success() { Ok(()) } else { Err(reply.failure(&format!("{method} {path}"))) }
}

/// Never, without a time.
async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
