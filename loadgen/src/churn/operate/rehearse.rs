//! Dry runs: one write of each kind in the plan is sent with `dryRun`, so that refusals of the control plane are
//! reported before the run depends on such writes.

use super::super::Error;
use super::super::api::{self, Reply};
use super::super::config::Mix;
use super::super::operations::Kind;
use super::Operator;
use crate::failure::Failure;

/// The message of a webhook that does not support dry runs. For such a webhook, only the real write shows the result.
pub(super) const CANNOT_REHEARSE: &str = "does not support dry run";
/// The number of the object that dry runs write: the first object.
const OBJECT: u64 = 0;
const REVISION: u64 = 1;

impl Operator {
    /// Tries every kind of write in a dry run. The first objects must exist, so their creation needs no dry run.
    pub(in crate::churn) async fn rehearse(&self) -> Result<(), Error> {
        let config = self.plan.config();
        let Mix { update, label, annotate, status, delete, delete_collection, .. } = config.mix;
        let patches = [
            ("an update", Kind::Update, update),
            ("a label", Kind::Label, label),
            ("an annotation", Kind::Annotate, annotate),
            ("a status", Kind::Status, status),
        ];
        for (what, kind, _) in patches.into_iter().filter(|(_, _, weight)| *weight > 0) {
            let (patch, below) = self.plan.patch(kind, OBJECT, REVISION);
            let path = format!("{}{below}", self.path(OBJECT));
            let reply = self.client.merge(&format!("{path}?dryRun=All"), &patch).await;
            judge(what, &format!("PATCH {path}"), reply)?;
        }
        if let Some(also) = &config.also {
            let path = self.path(OBJECT);
            let reply = self.write_as(also, &path, OBJECT, REVISION, "&dryRun=All").await;
            judge("a write of `also`", &format!("{path} as {}", also.field_manager), reply)?;
        }
        let policies = config.propagation.iter().copied().map(Some);
        let policies: Vec<_> = if config.propagation.is_empty() { vec![None] } else { policies.collect() };
        for policy in policies {
            let options = api::options(policy, true);
            if delete > 0 {
                let path = self.path(OBJECT);
                judge("a deletion", &format!("DELETE {path}"), self.client.delete_with(&path, &options).await)?;
            }
            if delete_collection > 0 {
                let path = self.collection(OBJECT);
                let reply = self.client.delete_collection(&path, &options).await;
                judge("the deletion of a collection", &format!("DELETE {path}"), reply)?;
            }
        }
        Ok(())
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
