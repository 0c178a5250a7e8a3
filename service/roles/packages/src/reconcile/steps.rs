//! The steps of one reconciliation: finalizer, status, policies, and their removal.
//!
//! This module owns the order of these steps. Each step is idempotent, so an interrupted reconciliation is simply
//! repeated.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::api::{Error, Existing};
use super::policies::{self, Policy};
use super::status::Report;
use super::{FINALIZER, Reconciler};
use service_watch::{Key, Object};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    pub generation: i64,
    /// Number of policies that were written or removed.
    pub writes: usize,
}

impl Reconciler {
    /// Applies the spec of the package to the cluster. `seen` states whether this process has reconciled the package
    /// before. If the package is finished and all its policies are in place, the first reconciliation sends no request.
    pub(super) async fn apply(&self, object: &mut Object, seen: bool) -> Result<Done, Error> {
        let wanted = match &object.body.allow {
            Ok(allow) => policies::for_package(object, allow),
            Err(what) => return Err(Error::Spec(what.to_string())),
        };
        let generation = object.body.generation;
        let fresh = object.body.status.observed_generation != Some(generation);
        if !object.body.finalizers.iter().any(|finalizer| &**finalizer == FINALIZER) {
            self.api.add_finalizer(object, FINALIZER).await?;
        }
        if fresh && !matches!(&*object.body.status.phase, "Pending" | "Retrying") {
            let message = "reconciliation has begun";
            self.api.status(object, Report { phase: "Pending", message, ..Report::default() }).await?;
        }
        let count = wanted.len();
        let writes =
            if !seen && !fresh && self.in_place(object, &wanted) { 0 } else { self.policies(object, wanted).await? };
        let message = format!("{count} network policies are in place");
        let observed = Some(generation);
        let report = Report { phase: "Ready", observed, message: &message, policies: Some(count), retries: 0 };
        self.api.status(object, report).await?;
        Ok(Done { generation, writes })
    }

    /// Removes the policies of a package that is being deleted, then this service's finalizer.
    pub(super) async fn remove(&self, object: &mut Object) -> Result<Done, Error> {
        if !matches!(&*object.body.status.phase, "Removing" | "RemovalFailed") {
            let message = "the package is being removed";
            match self.api.status(object, Report { phase: "Removing", message, ..Report::default() }).await {
                Ok(()) | Err(Error::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        self.api.remove_policies(&object.key.namespace, &object.uid).await?;
        match self.api.remove_finalizer(object, FINALIZER).await {
            Ok(()) | Err(Error::Gone) => Ok(Done { generation: object.body.generation, writes: 0 }),
            Err(error) => Err(error),
        }
    }

    /// Whether the watch shows exactly the policies in `wanted`, unchanged. The watch may be behind this service's own
    /// writes, so `false` only means that the API server must be asked.
    pub(super) fn in_place(&self, object: &Object, wanted: &[Policy]) -> bool {
        let here = |policy: &Policy| {
            let key = Key { namespace: Arc::clone(&object.key.namespace), name: policy.name.as_str().into() };
            self.policies.object(&key).is_some_and(|known| known.body.digest == policy.digest)
        };
        self.owners.policies(&object.uid).len() == wanted.len() && wanted.iter().all(here)
    }

    /// Lists the package's policies once, then writes only policies that differ; returns the number of writes.
    async fn policies(&self, object: &Object, wanted: Vec<Policy>) -> Result<usize, Error> {
        let existing = self.api.list_policies(&object.key.namespace, &object.uid).await?;
        let mut orphans: BTreeMap<Arc<str>, Existing> =
            existing.into_iter().map(|policy| (Arc::clone(&policy.object.key.name), policy)).collect();
        let mut writes = 0;
        for policy in wanted {
            match orphans.remove(policy.name.as_str()) {
                Some(known) if known.object.body.digest == policy.digest => continue,
                Some(known) => self.api.update_policy(known.whole, &policy).await?,
                None => self.api.create_policy(&policy).await?,
            }
            writes += 1;
        }
        for orphan in orphans.into_values() {
            self.api.delete_policy(&orphan.object).await?;
            writes += 1;
        }
        Ok(writes)
    }
}
