//! The steps of one visit: finalizer, status, policies, and the way back.
//!
//! Owns their order. Each step is idempotent, so a visit that broke off is simply repeated.

use std::collections::BTreeMap;

use super::api::{Error, Existing};
use super::policies::{self, Policy};
use super::status::Report;
use super::{FINALIZER, Reconciler};
use crate::watch::object::Object;

impl Reconciler {
    /// Brings the cluster to what the spec says; answers the generation that was done.
    pub(super) async fn apply(&self, object: &mut Object) -> Result<i64, Error> {
        let wanted = match &object.allow {
            Ok(allow) => policies::for_package(object, allow),
            Err(what) => return Err(Error::Spec(what.to_string())),
        };
        let fresh = object.status.observed_generation != Some(object.generation);
        if !object.finalizers.iter().any(|finalizer| &**finalizer == FINALIZER) {
            self.api.add_finalizer(object, FINALIZER).await?;
        }
        if fresh && !matches!(&*object.status.phase, "Pending" | "Retrying") {
            let message = "reconciliation has begun";
            self.api.status(object, Report { phase: "Pending", message, ..Report::default() }).await?;
        }
        let count = wanted.len();
        self.policies(object, wanted).await?;
        let message = format!("{count} network policies are in place");
        let observed = Some(object.generation);
        let report = Report { phase: "Ready", observed, message: &message, policies: Some(count), retries: 0 };
        self.api.status(object, report).await?;
        Ok(object.generation)
    }

    /// Removes what belongs to a package that is being deleted, then lets it go.
    pub(super) async fn remove(&self, object: &mut Object) -> Result<(), Error> {
        if !matches!(&*object.status.phase, "Removing" | "RemovalFailed") {
            let message = "the package is being removed";
            match self.api.status(object, Report { phase: "Removing", message, ..Report::default() }).await {
                Ok(()) | Err(Error::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        self.api.remove_policies(&object.key.namespace, &object.uid).await?;
        match self.api.remove_finalizer(object, FINALIZER).await {
            Ok(()) | Err(Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// One list, then only the writes that make a difference.
    async fn policies(&self, object: &Object, wanted: Vec<Policy>) -> Result<(), Error> {
        let existing = self.api.list_policies(&object.key.namespace, &object.uid).await?;
        let mut orphans: BTreeMap<String, Existing> =
            existing.into_iter().map(|policy| (policy.name.clone(), policy)).collect();
        for policy in wanted {
            match orphans.remove(&policy.name) {
                Some(existing) if existing.generation == policy.generation => {}
                Some(_) => self.api.update_policy(&policy).await?,
                None => self.api.create_policy(&policy).await?,
            }
        }
        for name in orphans.into_keys() {
            self.api.delete_policy(&object.key.namespace, &name).await?;
        }
        Ok(())
    }
}
