//! One operation on one object, from the call to its effect. Keeps nothing between operations.

use std::sync::Arc;

use http::StatusCode;

use super::api::{Client, Metadata};
use super::engine::Shared;
use super::interval::Effect;
use super::namespaces::{self, Ready};
use super::plan::{Kind, Operation, Plan};
use super::writes::{self, Write};
use crate::wire::Failure;
use facts::Change;

/// Everything that an operation needs.
#[derive(Debug, Clone)]
pub(super) struct Operator {
    pub client: Arc<Client>,
    pub plan: Plan,
    pub shared: Arc<Shared>,
}

impl Operator {
    /// Does the operation. `ready` is the namespace of the object.
    pub(super) async fn run(&self, operation: Operation, ready: &Ready) -> Result<Effect, Failure> {
        match operation.kind {
            Kind::Create => self.create(operation.object, operation.revision, ready).await,
            kind @ (Kind::Update | Kind::Label | Kind::Annotate | Kind::Status) => {
                self.update(kind, operation.object, operation.revision, ready).await
            }
            Kind::Delete => self.delete(operation.object).await,
        }
    }

    async fn create(&self, object: u64, revision: u64, ready: &Ready) -> Result<Effect, Failure> {
        let (namespace, _) = self.plan.place(object);
        self.ensure(ready, &namespace).await?;
        let path = self.plan.resource().path_in(&namespace);
        let reply = self.client.create(&path, &self.plan.body(object, revision)).await?;
        if reply.status == StatusCode::CONFLICT {
            // The answer to an earlier create got lost, or an earlier run was killed. It is there: make it ours.
            let (patch, _) = self.plan.patch(Kind::Create, object, revision);
            let path = self.path(object);
            let reply = self.client.merge(&path, &patch).await?;
            if !reply.status.is_success() {
                return Err(reply.failure(&format!("PATCH {path}")));
            }
            self.note(|| writes::written(Change::Modified, self.plan.place(object), &reply));
            return Ok(Effect::Created);
        }
        if !reply.status.is_success() {
            return Err(reply.failure(&format!("POST {path}")));
        }
        self.note(|| writes::written(Change::Added, self.plan.place(object), &reply));
        Ok(Effect::Created)
    }

    async fn update(&self, kind: Kind, object: u64, revision: u64, ready: &Ready) -> Result<Effect, Failure> {
        let (patch, below) = self.plan.patch(kind, object, revision);
        let path = format!("{}{below}", self.path(object));
        match self.merge(&path, patch, self.plan.place(object)).await? {
            Some(_) => Ok(Effect::Updated),
            // Its creation failed: heal the population.
            None => self.create(object, revision, ready).await,
        }
    }

    async fn delete(&self, object: u64) -> Result<Effect, Failure> {
        let path = self.path(object);
        // An object with finalizers answers with itself and goes when they are done; nobody waits here.
        let reply = self.client.delete(&path).await?;
        if reply.status.is_success() {
            self.note(|| writes::deleted(self.plan.place(object), &reply));
        } else if reply.status != StatusCode::NOT_FOUND {
            return Err(reply.failure(&format!("DELETE {path}")));
        }
        Ok(Effect::Deleted)
    }

    /// Makes the namespace, where the objects are in one.
    async fn ensure(&self, ready: &Ready, namespace: &str) -> Result<(), Failure> {
        if !self.plan.is_namespaced() {
            return Ok(());
        }
        namespaces::ensure(&self.client, ready, namespace, self.plan.seed()).await
    }

    /// Adds to the record of writes, if there is one.
    fn note(&self, write: impl FnOnce() -> Option<Write>) {
        if let Some(record) = &self.shared.writes {
            let write = write();
            record.lock().note(write);
        }
    }

    /// Writes the canary, making it when it is not there.
    pub(super) async fn canary(&self, revision: u64) -> Result<(Effect, Metadata), Failure> {
        let (namespace, name) = self.plan.canary_place();
        let path = format!("{}/{name}", self.plan.resource().path_in(&namespace));
        let (object, patch) = self.plan.canary(revision);
        if let Some(written) = self.merge(&path, patch, self.plan.canary_place()).await? {
            return Ok((Effect::Updated, written));
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

    /// Deletes the canary and its namespace.
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

    /// The patched object's metadata, or `None` when there is no such object. A conflict is read again, once.
    async fn merge(
        &self,
        path: &str,
        mut patch: serde_json::Value,
        place: (String, String),
    ) -> Result<Option<Metadata>, Failure> {
        let mut reply = self.client.merge(path, &patch).await?;
        if reply.status == StatusCode::CONFLICT {
            let current = self.client.read(path).await?;
            if current.status.is_success() {
                patch["metadata"]["resourceVersion"] = current.metadata()?.resource_version.into();
            }
            reply = self.client.merge(path, &patch).await?;
        }
        match reply.status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => {
                self.note(|| writes::written(Change::Modified, place, &reply));
                reply.metadata().map(Some)
            }
            _ => Err(reply.failure(&format!("PATCH {path}"))),
        }
    }

    fn path(&self, object: u64) -> String {
        let (namespace, name) = self.plan.place(object);
        format!("{}/{name}", self.plan.resource().path_in(&namespace))
    }
}
