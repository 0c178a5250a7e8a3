//! The section `admission.ownCertificates`: the webhook's certificates, made and renewed by the replicas themselves.
//!
//! This module owns the keys and defaults, and checks that the lifetimes leave time for every step of a rotation.

use std::time::Duration;

use serde::Deserialize;

use service_core::config::quantity::Span;
use service_core::config::{Checker, Error};

const SERVICE: &str = "longhaul-webhook";
/// Secret and Lease in the manifests.
const CERTIFICATES: &str = "longhaul-webhook-certificates";
/// The webhook configuration in the manifests.
const WEBHOOK: &str = "longhaul-webhook";
/// Renewed after 20 days, without any action of a person.
const AUTHORITY_LIFETIME: Duration = Duration::from_hours(30 * 24);
/// Renewed after 112 hours, so that a weekend without an API server ends no certificate.
const LEAF_LIFETIME: Duration = Duration::from_hours(7 * 24);
/// A single API server learns of a changed webhook configuration within seconds; several of them, under load, within
/// this.
const SETTLE: Duration = Duration::from_mins(2);
/// Costs two small requests of each replica; all replicas use a new certificate within this time.
const INTERVAL: Duration = Duration::from_secs(5);
/// A shorter certificate would end before any replica had read it.
const LEAF_LIFETIME_MIN: Duration = Duration::from_secs(3);
/// An authority is replaced when a third of its life is left, and signs until then: a certificate must fit into that
/// third.
const LEAVES_PER_AUTHORITY: u32 = 3;

/// Settings of the certificates that the replicas make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCertificates {
    /// The Service that the API server calls; the certificate has its names.
    pub service: String,
    /// The namespace of Service, Secret and Lease; if absent, the pod's.
    pub namespace: Option<String>,
    /// The Secret that holds the certificates.
    pub secret: String,
    /// The Lease that selects the replica that makes them.
    pub lease: String,
    /// `MutatingWebhookConfiguration`s whose `caBundle` is written.
    pub webhooks: Vec<String>,
    pub authority_lifetime: Duration,
    pub leaf_lifetime: Duration,
    /// Time for all API servers and replicas to see one step of a rotation before the next one.
    pub settle: Duration,
    /// Interval at which Secret and webhook configurations are read.
    pub interval: Duration,
}

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RawOwn {
    pub service: Option<String>,
    pub namespace: Option<String>,
    pub secret_name: Option<String>,
    pub lease: Option<String>,
    pub webhooks: Option<Vec<String>>,
    pub authority_lifetime: Option<Span>,
    pub leaf_lifetime: Option<Span>,
    pub settle: Option<Span>,
    pub interval: Option<Span>,
}

impl OwnCertificates {
    /// Checks the written settings.
    pub fn check(raw: RawOwn, check: &Checker<'_>) -> Result<Self, Error> {
        let at = |key: &str| format!("admission.ownCertificates.{key}");
        if cfg!(not(feature = "rotation")) {
            let what = "is not in this build (feature own-certificates): use certificate and key";
            return Err(check.value("admission.ownCertificates", what));
        }
        let own = Self {
            service: raw.service.unwrap_or_else(|| SERVICE.into()),
            namespace: raw.namespace,
            secret: raw.secret_name.unwrap_or_else(|| CERTIFICATES.into()),
            lease: raw.lease.unwrap_or_else(|| CERTIFICATES.into()),
            webhooks: raw.webhooks.unwrap_or_else(|| vec![WEBHOOK.into()]),
            authority_lifetime: check.positive(&at("authorityLifetime"), raw.authority_lifetime, AUTHORITY_LIFETIME)?,
            leaf_lifetime: check.positive(&at("leafLifetime"), raw.leaf_lifetime, LEAF_LIFETIME)?,
            settle: check.positive(&at("settle"), raw.settle, SETTLE)?,
            interval: check.positive(&at("interval"), raw.interval, INTERVAL)?,
        };
        let names = [("service", Some(&own.service)), ("namespace", own.namespace.as_ref())];
        let names = names.into_iter().chain([("secretName", Some(&own.secret)), ("lease", Some(&own.lease))]);
        for (key, text) in names {
            check.object_name(&at(key), text)?;
        }
        check.webhook_names(&at("webhooks"), &own.webhooks)?;
        if own.leaf_lifetime < LEAF_LIFETIME_MIN {
            return Err(check.value(at("leafLifetime"), "is shorter than 3s"));
        }
        if own.authority_lifetime < own.leaf_lifetime * LEAVES_PER_AUTHORITY {
            let what = "must be at least three times leafLifetime: a certificate has to end before its authority";
            return Err(check.value(at("authorityLifetime"), what));
        }
        if own.settle > own.leaf_lifetime / LEAVES_PER_AUTHORITY {
            return Err(check.value(at("settle"), "must be at most a third of leafLifetime"));
        }
        if own.interval > own.settle {
            return Err(check.value(at("interval"), "must not be longer than settle: everybody has to look once"));
        }
        Ok(own)
    }
}

impl Default for OwnCertificates {
    /// The settings of an empty section.
    fn default() -> Self {
        Self {
            service: SERVICE.into(),
            namespace: None,
            secret: CERTIFICATES.into(),
            lease: CERTIFICATES.into(),
            webhooks: vec![WEBHOOK.into()],
            authority_lifetime: AUTHORITY_LIFETIME,
            leaf_lifetime: LEAF_LIFETIME,
            settle: SETTLE,
            interval: INTERVAL,
        }
    }
}
