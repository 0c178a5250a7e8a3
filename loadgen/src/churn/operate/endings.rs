//! The end of objects: deletion one by one or as a group, delay by a finalizer, and the end of their dependents.

use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::{Value, json};

use super::super::api::{self, query};
use super::super::interval::Effect;
use super::super::lifecycle::Propagation;
use super::super::operations::Operation;
use super::super::samples::Expect;
use super::super::writes;
use super::{Done, Operator};
use crate::failure::Failure;
use facts::Change;

/// How often each action at an object's end is tried, and the pause between tries.
const TRIES: u32 = 5;
const RETRY: Duration = Duration::from_millis(250);
/// The time in which the garbage collector must release dependents of a deleted object before the harness deletes them.
const ORPHANED: Duration = Duration::from_secs(1);

/// The work that remains after an object was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::churn) struct Rest {
    /// The time after which the object's finalizer is removed.
    pub held: Option<Duration>,
    /// Whether the object's dependents stay and must be deleted.
    pub orphans: bool,
}

impl Rest {
    pub(in crate::churn) fn is_none(self) -> bool {
        self.held.is_none() && !self.orphans
    }
}

impl Operator {
    pub(super) async fn delete(&self, operation: Operation) -> Result<Effect, Failure> {
        let path = self.path(operation.object);
        // The answer for an object with finalizers is the object itself; it is deleted when they are done, and nothing
        // here waits for that.
        let begun = Instant::now();
        let reply = match self.plan.propagation(operation) {
            Some(policy) => self.client.delete_with(&path, &api::options(Some(policy), false)).await?,
            None => self.client.delete(&path).await?,
        };
        if self.judge(self.plan.covers().delete, &format!("DELETE {path}"), Expect::Allowed, &reply, begun) {
            return Ok(Effect::Refused);
        }
        if reply.status.is_success() {
            self.note(|| writes::deleted(self.plan.place(operation.object), &reply));
        } else if reply.status != StatusCode::NOT_FOUND {
            return Err(reply.failure(&format!("DELETE {path}")));
        }
        Ok(Effect::Deleted)
    }

    /// Deletes a group of objects in one request.
    pub(super) async fn collect(&self, operation: Operation) -> Result<Done, Failure> {
        let path = self.collection(operation.object);
        let options = api::options(self.plan.propagation(operation), false);
        let reply = self.client.delete_collection(&path, &options).await?;
        if !reply.status.is_success() {
            return Err(reply.failure(&format!("DELETE {path}")));
        }
        let collected = writes::collected(&reply)?;
        let objects = collected.len() as u64;
        for object in collected.into_iter().filter(|object| !object.waits) {
            self.note(|| object.write());
        }
        Ok(Done { effect: Effect::Deleted, objects })
    }

    /// The URL path that selects the group of an object.
    pub(super) fn collection(&self, first: u64) -> String {
        let (namespace, _) = self.plan.place(first);
        let path = self.plan.resource().path_in(&namespace);
        format!("{path}?labelSelector={}", query(&self.plan.selector(first)))
    }

    /// The work that remains after this operation has deleted an object.
    pub(in crate::churn) fn rest(&self, operation: Operation, object: u64) -> Rest {
        let finalizers = self.plan.config().finalizers.as_ref();
        let held = finalizers.filter(|_| self.plan.holds(object)).map(|finalizers| finalizers.hold_for.0);
        let orphans = self.plan.propagation(operation) == Some(Propagation::Orphan);
        Rest { held, orphans: orphans && self.plan.child_resource().is_some() }
    }

    /// Does what remains to be done for a deleted object.
    pub(in crate::churn) async fn end(&self, object: u64, rest: Rest) -> Result<(), Failure> {
        let held = async {
            match rest.held {
                Some(hold) => {
                    tokio::time::sleep(hold).await;
                    self.release(object).await
                }
                None => Ok(()),
            }
        };
        let orphans = async {
            if rest.orphans {
                tokio::time::sleep(ORPHANED).await;
                return self.remove_children(object).await;
            }
            Ok(())
        };
        let (held, orphans) = tokio::join!(held, orphans);
        held.and(orphans)
    }

    /// Removes the harness's finalizer from an object; other finalizers stay.
    async fn release(&self, object: u64) -> Result<(), Failure> {
        let Some(finalizers) = &self.plan.config().finalizers else { return Ok(()) };
        let path = self.path(object);
        let mut last = Failure::invalid(format!("{path}: changed each time that its finalizer was to be taken away"));
        for attempt in 0..TRIES {
            tokio::time::sleep(RETRY * attempt).await;
            match self.try_release(&path, object, &finalizers.name).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// Tries to remove the finalizer; returns false if another client has written the object meanwhile.
    async fn try_release(&self, path: &str, object: u64, finalizer: &str) -> Result<bool, Failure> {
        let reply = self.client.read(path).await?;
        if reply.status == StatusCode::NOT_FOUND {
            return Ok(true);
        }
        if !reply.status.is_success() {
            return Err(reply.failure(&format!("GET {path}")));
        }
        let current: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let metadata = &current["metadata"];
        let all = metadata["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let left: Vec<&Value> = all.iter().filter(|name| *name != finalizer).collect();
        // The object is not deleted, so nothing must be released: it is a new object of the same name, or the deletion
        // was undone.
        if left.len() == all.len() || metadata["deletionTimestamp"].is_null() {
            return Ok(true);
        }
        let gone = left.is_empty();
        let patch = json!({"metadata": {"finalizers": left, "resourceVersion": metadata["resourceVersion"]}});
        let reply = self.client.merge(path, &patch).await?;
        match reply.status {
            StatusCode::CONFLICT => Ok(false),
            StatusCode::NOT_FOUND => Ok(true),
            status if status.is_success() => {
                let place = self.plan.place(object);
                // When the last finalizer is removed, the object is deleted.
                let change = if gone { Change::Deleted } else { Change::Modified };
                self.note(|| writes::written(change, place, &reply));
                Ok(true)
            }
            _ => Err(reply.failure(&format!("PATCH {path}"))),
        }
    }

    /// Deletes the dependents of an object that still exist.
    async fn remove_children(&self, object: u64) -> Result<(), Failure> {
        let Some(resource) = self.plan.child_resource() else { return Ok(()) };
        let (namespace, _) = self.plan.place(object);
        for (name, _) in self.plan.children(object) {
            let path = format!("{}/{name}", resource.path_in(&namespace));
            let reply = self.client.delete(&path).await?;
            if !reply.is(StatusCode::NOT_FOUND) {
                return Err(reply.failure(&format!("DELETE {path}")));
            }
        }
        Ok(())
    }
}
