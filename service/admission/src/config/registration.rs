//! The section `admission.registration`: the webhook checks that it is registered, and that the API server calls it.

use std::time::Duration;

use serde::Deserialize;

use super::{Checker, Error};
use service_core::config::quantity::Span;

/// Default name of the webhook configuration to check; the manifests use it.
const WEBHOOK: &str = "longhaul-webhook";
/// Default name of the Lease in which the replicas record the time of their last call; the manifests contain this
/// Lease.
const LEASE: &str = "longhaul-webhook-calls";
/// Default of `quiet`: longer than a rollout of the webhook, but short enough that few objects stay without a review.
const QUIET: Duration = Duration::from_mins(5);
/// Default of `interval`: while the API server calls the webhook, each check costs one small request.
const INTERVAL: Duration = Duration::from_mins(1);

/// Settings of the check that the webhook is registered and called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// `MutatingWebhookConfiguration`s that should call this service.
    pub webhooks: Vec<String>,
    /// The namespace of the Lease; if absent, the namespace of the Pod.
    pub namespace: Option<String>,
    /// The Lease in which the replicas record the time of their last call.
    pub lease: String,
    /// Time after which a Pod that was created without a review is reported.
    pub quiet: Duration,
    /// Time between two checks of the registration.
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
