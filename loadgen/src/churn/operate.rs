//! One operation of churn on one object, from the call to its effect. This module keeps no state between operations.

use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;

use super::answers::{Verdict, verdict};
use super::api::{Client, Metadata, Reply};
use super::interval::Effect;
use super::namespaces::{self, Ready};
use super::operations::{Kind, Operation};
use super::plan::Plan;
use super::samples::Expect;
use super::shared::Shared;
use super::writes::{self, Write};
use crate::failure::Failure;
use facts::Change;

mod denied;
mod endings;
mod others;
mod rehearse;

pub(super) use endings::Rest;

/// The result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    pub effect: Effect,
    /// The number of affected objects: an object and its new dependents, or all objects of a group.
    pub objects: u64,
}

/// The result of a patch.
enum Merged {
    Written(Metadata),
    /// A webhook refused the patch.
    Refused(Failure),
    /// The object does not exist.
    Absent,
}

impl From<Effect> for Done {
    fn from(effect: Effect) -> Self {
        Self { effect, objects: 1 }
    }
}

/// The client, the plan and the recorders that all operations use.
#[derive(Debug, Clone)]
pub(super) struct Operator {
    pub client: Arc<Client>,
    pub plan: Plan,
    pub shared: Arc<Shared>,
}

impl Operator {
    /// Runs the operation; `ready` is the state of the object's namespace.
    pub(super) async fn run(&self, operation: Operation, ready: &Ready) -> Result<Done, Failure> {
        let Operation { kind, object, revision } = operation;
        match kind {
            Kind::Create => self.create(object, revision, ready).await,
            Kind::Update | Kind::Label | Kind::Annotate | Kind::Status => {
                self.update(kind, object, revision, ready).await
            }
            Kind::Also => self.also(object, revision, ready).await,
            Kind::Delete => self.delete(operation).await.map(Done::from),
            Kind::Collect => self.collect(operation).await,
            Kind::Denied => self.denied(object, revision, ready).await,
        }
    }

    async fn create(&self, object: u64, revision: u64, ready: &Ready) -> Result<Done, Failure> {
        let (namespace, _) = self.plan.place(object);
        self.ensure(ready, &namespace).await?;
        let path = self.plan.resource().path_in(&namespace);
        let body = self.plan.body(object, revision);
        let begun = Instant::now();
        let reply = self.client.create(&path, &body).await?;
        if self.judge(self.plan.covers().create, &format!("POST {path}"), Expect::Allowed, &reply, begun) {
            return Ok(Effect::Refused.into());
        }
        if reply.status == StatusCode::CONFLICT {
            // The answer to an earlier create was lost, or an earlier run was killed. The object exists: give it our
            // contents.
            let (patch, _) = self.plan.patch(Kind::Create, object, revision);
            let path = self.path(object);
            let reply = self.client.merge(&path, &patch).await?;
            if !reply.status.is_success() {
                return Err(reply.failure(&format!("PATCH {path}")));
            }
            self.note(|| writes::written(Change::Modified, self.plan.place(object), &reply));
            return self.with_children(object, &reply).await;
        }
        if !reply.status.is_success() {
            return Err(reply.failure(&format!("POST {path}")));
        }
        self.note(|| writes::written(Change::Added, self.plan.place(object), &reply));
        self.with_children(object, &reply).await
    }

    /// Creates the dependents of an object that was just created.
    async fn with_children(&self, object: u64, parent: &Reply) -> Result<Done, Failure> {
        let mut objects = 1;
        let Some(resource) = self.plan.child_resource() else { return Ok(Effect::Created.into()) };
        let (namespace, name) = self.plan.place(object);
        let owner = self.plan.owner(&name, &parent.metadata()?.uid);
        let path = resource.path_in(&namespace);
        for (_, mut child) in self.plan.children(object) {
            child["metadata"]["ownerReferences"] = owner.clone();
            let reply = self.client.create(&path, &child).await?;
            if !reply.is(StatusCode::CONFLICT) {
                return Err(reply.failure(&format!("POST {path}")));
            }
            objects += 1;
        }
        Ok(Done { effect: Effect::Created, objects })
    }

    async fn update(&self, kind: Kind, object: u64, revision: u64, ready: &Ready) -> Result<Done, Failure> {
        let (patch, below) = self.plan.patch(kind, object, revision);
        let path = format!("{}{below}", self.path(object));
        let is_judged = self.plan.covers().update && below.is_empty();
        match self.merge(&path, patch, self.plan.place(object), is_judged).await? {
            Merged::Written(_) => Ok(Effect::Updated.into()),
            Merged::Refused(_) => Ok(Effect::Refused.into()),
            // Its creation failed: heal the population.
            Merged::Absent => self.create(object, revision, ready).await,
        }
    }

    /// Creates the namespace of the objects, if they have one.
    async fn ensure(&self, ready: &Ready, namespace: &str) -> Result<(), Failure> {
        if !self.plan.is_namespaced() {
            return Ok(());
        }
        let with = &self.plan.config().with;
        namespaces::ensure(&self.client, ready, namespace, &self.plan.tag(), with).await
    }

    /// Adds a write to the record, if writes are recorded.
    fn note(&self, write: impl FnOnce() -> Option<Write>) {
        if let Some(record) = &self.shared.writes {
            let write = write();
            record.lock().note(write);
        }
    }

    /// Writes the canary, and creates it if it does not exist.
    pub(super) async fn canary(&self, revision: u64) -> Result<(Effect, Metadata), Failure> {
        let (namespace, name) = self.plan.canary_place();
        let path = format!("{}/{name}", self.plan.resource().path_in(&namespace));
        let (object, patch) = self.plan.canary(revision);
        match self.merge(&path, patch, self.plan.canary_place(), false).await? {
            Merged::Written(written) => return Ok((Effect::Updated, written)),
            Merged::Refused(failure) => return Err(failure),
            Merged::Absent => {}
        }
        self.ensure(&Ready::default(), &namespace).await?;
        let path = self.plan.resource().path_in(&namespace);
        let reply = self.client.create(&path, &object).await?;
        if !reply.status.is_success() {
            return Err(reply.failure(&format!("POST {path}")));
        }
        self.note(|| writes::written(Change::Added, self.plan.canary_place(), &reply));
        Ok((Effect::Created, reply.metadata()?))
    }

    pub(super) async fn remove_canary(&self) -> Result<(), Failure> {
        let (namespace, name) = self.plan.canary_place();
        let path = format!("{}/{name}", self.plan.resource().path_in(&namespace));
        let reply = self.client.delete(&path).await?;
        if !reply.is(StatusCode::NOT_FOUND) {
            return Err(reply.failure(&format!("DELETE {path}")));
        }
        if reply.status.is_success() {
            self.note(|| writes::deleted(self.plan.canary_place(), &reply));
        }
        Ok(())
    }

    /// Counts the webhooks' answer to a write for which they are called, and returns whether they refused the write.
    fn judge(&self, covered: bool, what: &str, expect: Expect, reply: &Reply, begun: Instant) -> bool {
        if !covered {
            return false;
        }
        let said = verdict(reply);
        let is_made = expect == Expect::Allowed && self.plan.config().made;
        let expect = (!is_made).then_some(expect);
        self.shared.heard.lock().note(|| what.to_owned(), expect, &said, begun.elapsed());
        matches!(said, Verdict::Denied(_))
    }

    /// Patches an object. After a conflict, the operator reads the object and tries once more.
    async fn merge(
        &self,
        path: &str,
        mut patch: serde_json::Value,
        place: (String, String),
        is_judged: bool,
    ) -> Result<Merged, Failure> {
        let mut begun = Instant::now();
        let mut reply = self.client.merge(path, &patch).await?;
        if reply.status == StatusCode::CONFLICT {
            let current = self.client.read(path).await?;
            if current.status.is_success() {
                patch["metadata"]["resourceVersion"] = current.metadata()?.resource_version.into();
            }
            begun = Instant::now();
            reply = self.client.merge(path, &patch).await?;
        }
        if self.judge(is_judged, &format!("PATCH {path}"), Expect::Allowed, &reply, begun) {
            return Ok(Merged::Refused(reply.failure(&format!("PATCH {path}"))));
        }
        match reply.status {
            StatusCode::NOT_FOUND => Ok(Merged::Absent),
            status if status.is_success() => {
                self.note(|| writes::written(Change::Modified, place, &reply));
                reply.metadata().map(Merged::Written)
            }
            _ => Err(reply.failure(&format!("PATCH {path}"))),
        }
    }

    fn path(&self, object: u64) -> String {
        let (namespace, name) = self.plan.place(object);
        format!("{}/{name}", self.plan.resource().path_in(&namespace))
    }
}
