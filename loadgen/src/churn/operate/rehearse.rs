//! Dry runs: one write of each kind in the plan is sent with `dryRun`, so that refusals of the control plane are
//! reported before the run depends on such writes.

use serde_json::Value;

use super::super::Error;
use super::super::api::{self, Reply};
use super::super::config::Mix;
use super::super::operations::Kind;
use super::Operator;
use crate::failure::Failure;

/// The message of a webhook that does not support dry runs. For such a webhook, only the real write shows the result.
pub(super) const CANNOT_REHEARSE: &str = "does not support dry run";
const REVISION: u64 = 1;

impl Operator {
    /// Tries every kind of write on an existing object in a dry run. Creation needs no dry run.
    pub(in crate::churn) async fn rehearse(&self, object: u64) -> Result<(), Error> {
        let config = self.plan.config();
        let Mix { update, label, annotate, status, delete, delete_collection, .. } = config.mix;
        let patches = [
            ("an update", Kind::Update, update),
            ("a label", Kind::Label, label),
            ("an annotation", Kind::Annotate, annotate),
            ("a status", Kind::Status, status),
        ];
        for (what, kind, _) in patches.into_iter().filter(|(_, _, weight)| *weight > 0) {
            let (patch, below) = self.plan.patch(kind, object, REVISION);
            let path = format!("{}{below}", self.path(object));
            let reply = self.client.merge(&format!("{path}?dryRun=All"), &patch).await;
            judge(what, &format!("PATCH {path}"), reply)?;
        }
        if let Some(also) = &config.also {
            let path = self.path(object);
            let reply = self.write_as(also, &path, object, REVISION, "&dryRun=All").await;
            judge("a write of `also`", &format!("{path} as {}", also.field_manager), reply)?;
        }
        let policies = config.propagation.iter().copied().map(Some);
        let policies: Vec<_> = if config.propagation.is_empty() { vec![None] } else { policies.collect() };
        for policy in policies {
            let options = api::options(policy, true);
            if delete > 0 {
                let path = self.path(object);
                judge("a deletion", &format!("DELETE {path}"), self.client.delete_with(&path, &options).await)?;
            }
            if delete_collection > 0 {
                let path = self.collection(object);
                let reply = self.client.delete_collection(&path, &options).await;
                judge("the deletion of a collection", &format!("DELETE {path}"), reply)?;
            }
        }
        Ok(())
    }

    /// The fields of a generated template whose change alone is refused in a dry run. Empty if the change of all fields
    /// together is accepted.
    pub(in crate::churn) async fn refused_changes(&self, object: u64) -> Result<Vec<String>, Error> {
        let path = format!("{}?dryRun=All", self.path(object));
        let (whole, _) = self.plan.patch(Kind::Update, object, REVISION);
        let is_refused = async |patch: &Value| {
            let reply = self.client.merge(&path, patch).await;
            let reply = reply.map_err(|failure| Error::Refused { what: "an update", problem: failure.text })?;
            let cannot = reply.message().contains(CANNOT_REHEARSE);
            Ok::<bool, Error>(!reply.status.is_success() && !cannot)
        };
        let mut refused = Vec::new();
        if is_refused(&whole).await? {
            for pointer in self.plan.varies(object) {
                if is_refused(&self.plan.patch_of(object, REVISION, &pointer)).await? {
                    refused.push(pointer);
                }
            }
        }
        Ok(refused)
    }
}

fn judge(what: &'static str, call: &str, reply: Result<Reply, Failure>) -> Result<(), Error> {
    let refused = |problem| Err(Error::Refused { what, problem });
    match reply {
        Ok(reply) if reply.status.is_success() => Ok(()),
        Ok(reply) => match reply.failure(call).text {
            text if text.contains(CANNOT_REHEARSE) => Ok(()),
            text => refused(text),
        },
        Err(failure) => refused(failure.text),
    }
}
