//! The section `admission.registration`: the webhook checks its own registration, and whether it is called.

use std::time::Duration;

use serde::Deserialize;

use super::{Checker, Error};
use service_core::config::quantity::Span;

/// The webhook configuration in the manifests.
const WEBHOOK: &str = "longhaul-webhook";
/// The Lease of the manifests in which the replicas share the time of their last call.
const LEASE: &str = "longhaul-webhook-calls";
/// Longer than a rollout, shorter than the time until many objects are unpinned.
const QUIET: Duration = Duration::from_mins(5);
/// Costs one small request a minute while the webhook is called.
const INTERVAL: Duration = Duration::from_mins(1);

/// Settings of the check of the webhook's own registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// `MutatingWebhookConfiguration`s that should call this service.
    pub webhooks: Vec<String>,
    /// The namespace of the Lease; if absent, the pod's.
    pub namespace: Option<String>,
    /// The Lease in which the replicas share the time of their last call.
    pub lease: String,
    /// Age of a Pod created without a review at which it is reported.
    pub quiet: Duration,
    /// Interval of the check.
    pub interval: Duration,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawRegistration {
    pub webhooks: Option<Vec<String>>,
    pub namespace: Option<String>,
    pub lease: Option<String>,
    pub quiet: Option<Span>,
    pub interval: Option<Span>,
}

impl Checker<'_> {
    pub(super) fn registration(&self, raw: RawRegistration) -> Result<Registration, Error> {
        let at = |key: &str| format!("admission.registration.{key}");
        let registration = Registration {
            webhooks: raw.webhooks.unwrap_or_else(|| vec![WEBHOOK.into()]),
            namespace: raw.namespace,
            lease: raw.lease.unwrap_or_else(|| LEASE.into()),
            quiet: self.positive(&at("quiet"), raw.quiet, QUIET)?,
            interval: self.positive(&at("interval"), raw.interval, INTERVAL)?,
        };
        self.webhook_names(&at("webhooks"), &registration.webhooks)?;
        for (key, text) in [("lease", Some(&registration.lease)), ("namespace", registration.namespace.as_ref())] {
            self.object_name(&at(key), text)?;
        }
        if registration.interval > registration.quiet {
            return Err(self.value(at("interval"), "must not be longer than quiet"));
        }
        Ok(registration)
    }
}
