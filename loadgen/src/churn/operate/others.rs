//! Writes of another writer, which has its own field manager. This writer uses server-side apply, or reads an object
//! and replaces it.

use http::StatusCode;
use serde_json::{Value, json};

use super::super::api::{Reply, query};
use super::super::interval::Effect;
use super::super::lifecycle::{Also, By};
use super::super::namespaces::Ready;
use super::super::operations::Kind;
use super::super::writes;
use super::{Done, Operator};
use crate::failure::Failure;
use facts::Change;

/// How often a replacement is tried if other clients write between the read and the replacement.
const TRIES: usize = 4;

impl Operator {
    pub(super) async fn also(&self, object: u64, revision: u64, ready: &Ready) -> Result<Done, Failure> {
        let Some(also) = self.plan.config().also.clone() else { return Ok(Effect::Updated.into()) };
        let path = self.path(object);
        for _ in 0..TRIES {
            let reply = self.write_as(&also, &path, object, revision, "").await?;
            match reply.status {
                // Its creation failed: heal the population.
                StatusCode::NOT_FOUND => return self.create(object, revision, ready).await,
                StatusCode::CONFLICT => {}
                status if status.is_success() => {
                    self.note(|| writes::written(Change::Modified, self.plan.place(object), &reply));
                    return Ok(Effect::Updated.into());
                }
                _ => return Err(reply.failure(&format!("{} {path} as {}", also.by.method(), also.field_manager))),
            }
        }
        Err(Failure::invalid(format!("{path}: others were faster {TRIES} times than {}", also.field_manager)))
    }

    /// One write of the other writer, with `more` added to its query. If the object does not exist, returns the answer
    /// to the read.
    pub(super) async fn write_as(
        &self,
        also: &Also,
        path: &str,
        object: u64,
        revision: u64,
        more: &str,
    ) -> Result<Reply, Failure> {
        let reply = self.client.read(path).await?;
        if !reply.status.is_success() {
            return Ok(reply);
        }
        let (change, _) = self.plan.patch(Kind::Also, object, revision);
        let manager = query(&also.field_manager);
        let mut current: Value = serde_json::from_slice(&reply.body)
            .map_err(|error| Failure::invalid(format!("GET {path}: the answer is no object: {error}")))?;
        match also.by {
            By::Apply => {
                let (namespace, name) = self.plan.place(object);
                let mut applied = json!({
                    "apiVersion": self.plan.resource().api_version(), "kind": self.plan.resource().kind,
                    // An apply creates a missing object, unless the apply names a uid.
                    "metadata": {"name": name, "uid": current["metadata"]["uid"]},
                });
                if !namespace.is_empty() {
                    applied["metadata"]["namespace"] = namespace.into();
                }
                json_patch::merge(&mut applied, &change);
                self.client.apply(&format!("{path}?fieldManager={manager}&force=true{more}"), &applied).await
            }
            By::Update => {
                json_patch::merge(&mut current, &change);
                self.client.replace(&format!("{path}?fieldManager={manager}{more}"), &current).await
            }
        }
    }
}

impl By {
    fn method(self) -> &'static str {
        match self {
            Self::Apply => "PATCH",
            Self::Update => "PUT",
        }
    }
}
