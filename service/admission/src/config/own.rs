//! The section `admission.ownCertificates`: the webhook's certificates, made and renewed by the replicas themselves.
//!
//! This module owns the keys and defaults, and checks that the lifetimes leave time for every step of a rotation.

use std::time::Duration;

use serde::Deserialize;

use super::{Checker, Error};
use service_core::config::quantity::Span;

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

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawOwn {
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

impl Checker<'_> {
    pub(super) fn own_certificates(&self, raw: RawOwn) -> Result<OwnCertificates, Error> {
        let at = |key: &str| format!("admission.ownCertificates.{key}");
        if cfg!(not(feature = "own-certificates")) {
            let what = "is not in this build (feature own-certificates): use certificate and key";
            return Err(self.value("admission.ownCertificates", what));
        }
        let own = OwnCertificates {
            service: raw.service.unwrap_or_else(|| SERVICE.into()),
            namespace: raw.namespace,
            secret: raw.secret_name.unwrap_or_else(|| CERTIFICATES.into()),
            lease: raw.lease.unwrap_or_else(|| CERTIFICATES.into()),
            webhooks: raw.webhooks.unwrap_or_else(|| vec![WEBHOOK.into()]),
            authority_lifetime: self.positive(&at("authorityLifetime"), raw.authority_lifetime, AUTHORITY_LIFETIME)?,
            leaf_lifetime: self.positive(&at("leafLifetime"), raw.leaf_lifetime, LEAF_LIFETIME)?,
            settle: self.positive(&at("settle"), raw.settle, SETTLE)?,
            interval: self.positive(&at("interval"), raw.interval, INTERVAL)?,
        };
        let names = [("service", Some(&own.service)), ("namespace", own.namespace.as_ref())];
        let names = names.into_iter().chain([("secretName", Some(&own.secret)), ("lease", Some(&own.lease))]);
        for (key, text) in names {
            self.object_name(&at(key), text)?;
        }
        self.webhook_names(&at("webhooks"), &own.webhooks)?;
        if own.leaf_lifetime < LEAF_LIFETIME_MIN {
            return Err(self.value(at("leafLifetime"), "is shorter than 3s"));
        }
        if own.authority_lifetime < own.leaf_lifetime * LEAVES_PER_AUTHORITY {
            let what = "must be at least three times leafLifetime: a certificate has to end before its authority";
            return Err(self.value(at("authorityLifetime"), what));
        }
        if own.settle > own.leaf_lifetime / LEAVES_PER_AUTHORITY {
            return Err(self.value(at("settle"), "must be at most a third of leafLifetime"));
        }
        if own.interval > own.settle {
            return Err(self.value(at("interval"), "must not be longer than settle: everybody has to look once"));
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

#[cfg(all(test, feature = "own-certificates"))]
mod tests {
    use std::path::Path;

    use crate::config::Config;

    fn parsed(section: &str) -> Result<Config, String> {
        let text = format!("admission: {{listen: \"[::]:1\", {section}}}\n");
        Config::parse(&text, Path::new("/etc/service.yaml")).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_section_is_all_defaults_and_takes_the_place_of_files() {
        let admission = parsed("ownCertificates: {}").unwrap().admission.unwrap();
        assert_eq!(format!("{:?}", admission.own.unwrap()), format!("{:?}", super::OwnCertificates::default()));
        for (section, what) in [
            ("ownCertificates: {}, key: k, certificate: c", "takes the place of certificate and key"),
            ("certificate: c", "needs both certificate and key, or `ownCertificates: {}`"),
            ("ownCertificates: {secretNam: x}", "did you mean `secretName`?"),
            ("ownCertificates: {secretName: \"a/b\"}", "admission.ownCertificates.secretName: is no name"),
            ("ownCertificates: {webhooks: []}", "admission.ownCertificates.webhooks"),
        ] {
            let error = parsed(section).unwrap_err();
            assert!(error.contains(what), "{section}: {error}");
        }
    }

    #[test]
    fn lifetimes_leave_time_for_every_step() {
        let short = "authorityLifetime: 30s, leafLifetime: 10s, settle: 3s, interval: 1s";
        parsed(&format!("ownCertificates: {{{short}}}")).unwrap();
        for (from, to, what) in [
            ("30s", "29s", "three times leafLifetime"),
            ("settle: 3s", "settle: 4s", "a third of leafLifetime"),
            ("interval: 1s", "interval: 5s", "longer than settle"),
            ("settle: 3s", "settle: 0s", "longer than zero"),
        ] {
            let error = parsed(&format!("ownCertificates: {{{}}}", short.replace(from, to))).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
