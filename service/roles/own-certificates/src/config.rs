//! The section `admission.ownCertificates`: the replicas make and renew the webhook's certificates.
//!
//! This module owns the keys of the section and their defaults, and checks that the lifetimes leave time for every step
//! of a rotation.

use std::time::Duration;

use serde::Deserialize;

use service_core::config::quantity::Span;
use service_core::config::{Checker, Error};

const SERVICE: &str = "longhaul-webhook";
/// Default name of the Secret and the Lease; the manifests use this name.
const CERTIFICATES: &str = "longhaul-webhook-certificates";
/// Default name of the webhook configuration; the manifests use this name.
const WEBHOOK: &str = "longhaul-webhook";
/// Default lifetime of the authority, 30 days. The replicas replace the authority after 20 days, without manual work.
const AUTHORITY_LIFETIME: Duration = Duration::from_hours(30 * 24);
/// Default lifetime of the certificate, a week. The replicas renew the certificate after 112 hours, so an API server
/// may be away for a weekend.
const LEAF_LIFETIME: Duration = Duration::from_hours(7 * 24);
/// Default of `settle`, the time for servers and replicas to notice a change. One API server notices a changed webhook
/// configuration within seconds; several API servers under load need up to two minutes.
const SETTLE: Duration = Duration::from_mins(2);
/// Default of `interval`, the time between two checks of the certificates. Each replica sends two small requests per
/// interval, and uses a new certificate within one interval.
const INTERVAL: Duration = Duration::from_secs(5);
/// Shortest lifetime of a certificate; with a shorter lifetime, a certificate would expire before a replica has read
/// it.
const LEAF_LIFETIME_MIN: Duration = Duration::from_secs(3);
/// Smallest ratio of the authority's lifetime to the certificate's lifetime. When a third of its lifetime is left, an
/// authority still signs until its replacement does; a certificate must fit into this third.
const LEAVES_PER_AUTHORITY: u32 = 3;

/// Settings of the certificates that the replicas make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCertificates {
    /// The Service that the API server calls. The certificate contains the DNS names of the Service.
    pub service: String,
    /// The namespace of Service, Secret and Lease; if absent, the namespace of the Pod.
    pub namespace: Option<String>,
    pub secret: String,
    pub lease: String,
    /// The `MutatingWebhookConfiguration`s whose `caBundle` the replicas write.
    pub webhooks: Vec<String>,
    pub authority_lifetime: Duration,
    pub leaf_lifetime: Duration,
    /// Time that all API servers and replicas get to notice one step of a rotation before the next step.
    pub settle: Duration,
    /// Time between two reads of the Secret and the webhook configurations.
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
    /// The settings of a section without keys.
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
