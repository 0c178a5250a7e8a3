//! Objects of churn that the webhooks must refuse. Such objects are really sent to the API server, and deleted if the
//! webhooks allow them.

use std::time::Instant;

use http::StatusCode;

use super::super::answers::{Verdict, verdict};
use super::super::interval::Effect;
use super::super::namespaces::Ready;
use super::super::samples::Expect;
use super::super::{Error, writes};
use super::{Done, Operator};
use crate::failure::Failure;
use facts::Change;

impl Operator {
    /// Sends an object that must be refused, into the namespace of an existing object.
    pub(super) async fn denied(&self, beside: u64, revision: u64, ready: &Ready) -> Result<Done, Failure> {
        let Some((name, called, object)) = self.plan.denied(beside, revision) else {
            return Ok(Effect::Refused.into());
        };
        let (namespace, _) = self.plan.place(beside);
        self.ensure(ready, &namespace).await?;
        let path = self.plan.resource().path_in(&namespace);
        let what = format!("POST {path} ({called})");
        let begun = Instant::now();
        let reply = self.client.create(&path, &object).await?;
        if self.judge(true, &what, Expect::Denied, &reply, begun) {
            return Ok(Effect::Refused.into());
        }
        if !reply.status.is_success() {
            return Err(reply.failure(&what));
        }
        let place = (namespace, name);
        self.note(|| writes::written(Change::Added, place.clone(), &reply));
        let path = format!("{path}/{}", place.1);
        let gone = self.client.delete(&path).await?;
        if !gone.is(StatusCode::NOT_FOUND) {
            return Err(gone.failure(&format!("DELETE {path}")));
        }
        if gone.status.is_success() {
            self.note(|| writes::deleted(place, &gone));
        }
        // The object was allowed, which is counted, and is deleted again.
        Ok(Effect::Refused.into())
    }

    /// Checks that the API server itself accepts the objects that webhooks must refuse, because otherwise it calls no
    /// webhook.
    pub(in crate::churn) async fn rehearse_denials(&self) -> Result<(), Error> {
        let what = "an object that says `expect: denied`";
        for revision in 0..self.plan.denied_samples() {
            let Some((_, called, object)) = self.plan.denied(0, revision) else { continue };
            let (namespace, _) = self.plan.place(0);
            let path = self.plan.resource().path_in(&namespace);
            let reply = self.client.create(&format!("{path}?dryRun=All"), &object).await;
            let reply = reply.map_err(|failure| Error::Refused { what, problem: failure.text })?;
            if verdict(&reply) == Verdict::Nothing && !reply.message().contains(super::rehearse::CANNOT_REHEARSE) {
                let problem = format!(
                    "the API server itself refuses {called}, so no webhook would be asked about it: {}; write one that the definition \
                     allows",
                    reply.message()
                );
                return Err(Error::Refused { what, problem });
            }
        }
        Ok(())
    }
}
