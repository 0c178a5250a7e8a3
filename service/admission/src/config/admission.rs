//! The section `admission`: the webhook listener and its limits.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::registration::{RawRegistration, Registration};
use super::{Checker, Error, Section, YamlError, yaml};
use service_core::config::quantity::{Size, written};
use service_own_certificates::{OwnCertificates, RawOwn};

/// Default size limit of a review. etcd limits an object to 1.5 MiB; a review contains two objects, escaped as JSON,
/// and some other fields.
const MAX_BODY_BYTES: u64 = 8 << 20;
/// Largest value of `maxBodyBytes`. A larger review could use more memory than the whole service should need.
const MAX_BODY_BYTES_MOST: u64 = 64 << 20;
/// Largest value of `maxHeldBytes`, far more than a webhook needs.
const MAX_HELD_BYTES_MOST: u64 = 4 << 30;
/// Default limit of open connections: forty times the 25 idle connections that one kube-apiserver keeps for a webhook.
const MAX_CONNECTIONS: usize = 1024;
/// Number of connections that one network address must leave to others: as many as one kube-apiserver keeps idle.
const CONNECTIONS_FOR_OTHERS: usize = 25;
/// Default limit of reviews that are being answered at one time. The limit is enough for two API servers: by default, a
/// kube-apiserver sends at most 200 mutating requests at one time.
const MAX_IN_FLIGHT: usize = 400;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    pub listen: SocketAddr,
    /// PEM file of the webhook's certificate chain; an empty path if `own` is set.
    pub certificate: PathBuf,
    /// PEM file of the webhook's private key; an empty path if `own` is set.
    pub key: PathBuf,
    /// Settings of certificates that the replicas of the webhook make; they replace the files `certificate` and `key`.
    pub own: Option<OwnCertificates>,
    /// Whether the webhook checks its own registration.
    pub registration: Option<Registration>,
    /// PEM file with the authorities of client certificates; if the file is set, every caller needs a certificate.
    pub client_ca: Option<PathBuf>,
    /// Accepted names in client certificates; an empty list accepts every name.
    pub client_names: Vec<String>,
    /// Largest accepted review, in bytes.
    pub max_body_bytes: usize,
    /// Memory that all callers and registries may use together, in bytes; `None` means half of the memory that this
    /// process may use.
    pub max_held_bytes: Option<usize>,
    /// Maximum number of reviews that are being answered at one time; further reviews get status 429.
    pub max_in_flight: usize,
    /// Maximum number of reviews from one peer that are being answered; a peer is a network address or a name in a
    /// client certificate.
    pub max_in_flight_per_peer: usize,
    /// Maximum number of open connections. If more clients connect, the service closes idle connections.
    pub max_connections: usize,
    /// Maximum number of open connections of one network address.
    pub max_connections_per_peer: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawAdmission {
    pub listen: SocketAddr,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub own_certificates: Option<RawOwn>,
    pub registration: Option<RawRegistration>,
    #[serde(rename = "clientCA")]
    pub client_ca: Option<PathBuf>,
    #[serde(default)]
    pub client_names: Vec<String>,
    pub max_body_bytes: Option<Size>,
    pub max_held_bytes: Option<Size>,
    pub max_in_flight: Option<usize>,
    pub max_in_flight_per_peer: Option<usize>,
    pub max_connections: Option<usize>,
    pub max_connections_per_peer: Option<usize>,
}

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawFile {
    admission: Option<RawAdmission>,
}

impl Section for Admission {
    const KEYS: &'static [&'static str] = &["admission"];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, check: &service_core::config::Checker<'_>) -> Result<Option<Self>, Error> {
        raw.admission.map(|raw| Checker(*check).admission(raw)).transpose()
    }

    /// Adds to the shown configuration the defaults that depend on other keys, and sections that are absent by default.
    fn show(&self, shown: &mut Map<String, Value>) {
        let Some(Value::Object(section)) = shown.get_mut("admission") else { return };
        section.insert("maxInFlightPerPeer".into(), json!(self.max_in_flight_per_peer));
        section.insert("maxConnectionsPerPeer".into(), json!(self.max_connections_per_peer));
        if let Some(own) = &self.own {
            section.remove("certificate");
            section.remove("key");
            let shown = json!({
                "service": own.service, "secretName": own.secret, "lease": own.lease, "webhooks": own.webhooks,
                "authorityLifetime": written(own.authority_lifetime), "leafLifetime": written(own.leaf_lifetime),
                "settle": written(own.settle), "interval": written(own.interval),
            });
            section.insert("ownCertificates".into(), shown);
        }
        if let Some(registration) = &self.registration {
            let shown = json!({
                "webhooks": registration.webhooks, "lease": registration.lease,
                "quiet": written(registration.quiet), "interval": written(registration.interval),
            });
            section.insert("registration".into(), shown);
        }
    }
}

impl Checker<'_> {
    fn admission(&self, raw: RawAdmission) -> Result<Admission, Error> {
        let max_body_bytes = raw.max_body_bytes.map_or(MAX_BODY_BYTES, |size| size.0);
        let most = MAX_BODY_BYTES_MOST;
        let max_body_bytes = self.within("admission.maxBodyBytes", max_body_bytes, 1024, most)?;
        let held = |size: Size| {
            self.within("admission.maxHeldBytes", size.0, service_core::share::LEAST as u64, MAX_HELD_BYTES_MOST)
        };
        let max_held_bytes = raw.max_held_bytes.map(held).transpose()?;
        let in_flight = raw.max_in_flight.unwrap_or(MAX_IN_FLIGHT);
        let in_flight = self.within("admission.maxInFlight", in_flight as u64, 1, 100_000)?;
        // A quarter is always left to others, so that no peer can shut out all others.
        let per_peer = raw.max_in_flight_per_peer.unwrap_or(in_flight - in_flight / 4);
        let per_peer = self.within("admission.maxInFlightPerPeer", per_peer as u64, 1, in_flight as u64)?;
        let connections = raw.max_connections.unwrap_or(MAX_CONNECTIONS);
        let connections = self.within("admission.maxConnections", connections as u64, 4, 10_000)?;
        let of_peer = connections - CONNECTIONS_FOR_OTHERS.min(connections / 4);
        let of_peer = raw.max_connections_per_peer.unwrap_or(of_peer);
        let of_peer = self.within("admission.maxConnectionsPerPeer", of_peer as u64, 1, connections as u64)?;
        if !raw.client_names.is_empty() && raw.client_ca.is_none() {
            return Err(self.value("admission.clientCA", "is needed beside clientNames"));
        }
        let own = raw.own_certificates.map(|raw| OwnCertificates::check(raw, self)).transpose()?;
        let (certificate, key) = match (raw.certificate, raw.key, &own) {
            (Some(certificate), Some(key), None) => (self.folder.join(certificate), self.folder.join(key)),
            (None, None, Some(_)) => (PathBuf::new(), PathBuf::new()),
            (_, _, Some(_)) => {
                return Err(self.value(
                    "admission.ownCertificates",
                    "takes the place of certificate and key: remove one or the other",
                ));
            }
            (_, _, None) => {
                let what = "needs both certificate and key, or `ownCertificates: {}` instead of them";
                return Err(self.value("admission", what));
            }
        };
        Ok(Admission {
            listen: raw.listen,
            certificate,
            key,
            own,
            registration: raw.registration.map(|raw| self.registration(raw)).transpose()?,
            client_ca: raw.client_ca.map(|path| self.folder.join(path)),
            client_names: raw.client_names,
            max_body_bytes,
            max_held_bytes,
            max_in_flight: in_flight,
            max_in_flight_per_peer: per_peer,
            max_connections: connections,
            max_connections_per_peer: of_peer,
        })
    }
}

#[cfg(all(test, feature = "own-certificates"))]
mod tests;
