//! Validators in other processes: their addresses, connection settings, and the format of their answers.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use service_contract::link::{self, Files};
use service_core::config::quantity::Span;
use service_core::wire::Protocol;

use super::super::{Checker, Error, Transport};

/// Maximum number of instances (addresses) of one validator.
const INSTANCES_MAX: usize = 32;
const WEIGHT_MAX: u64 = 1000;
/// Default time limit for the answer of one instance: as long as a lookup at a registry.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Default limit of open requests to a validator: the number of streams of one HTTP/2 connection.
const MAX_IN_FLIGHT: u64 = 200;
/// Default limit of requests that wait: twice the limit of open requests.
const QUEUE: u64 = 400;
/// Default time for which a provider's answer is reused, the same as Gatekeeper's.
const TTL: Duration = Duration::from_mins(3);

/// A validator in another process, called by the protocol of docs/contract.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    pub way: Way,
    /// The validator's name in the other process.
    pub validator: String,
    /// Whether the other process receives the pull secrets of Pods.
    pub pass_credentials: bool,
}

/// A provider for Gatekeeper's external data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    pub way: Way,
    pub form: Form,
    /// Longest time for which a provider's answer is reused.
    pub ttl: Duration,
}

/// The connection settings of a validator in another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Addresses of the instances, each with its weight.
    pub instances: Vec<(String, u32)>,
    /// Files with trusted authorities and this client's certificate.
    pub files: Files,
    pub protocol: Protocol,
    pub max_in_flight: usize,
    pub queue: usize,
    /// Time limit of a request to one instance.
    pub timeout: Duration,
}

/// The format of a provider's `value`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The format of this project's provider: a `verdict` with its class.
    #[default]
    Longhaul,
    Ratify,
    /// The format of cosign-gatekeeper-provider: the image with `_valid` appended.
    CosignGatekeeperProvider,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::config) struct RawRemote {
    instances: Vec<RawInstance>,
    #[serde(rename = "caFile")]
    ca_file: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    transport: Option<Transport>,
    max_in_flight: Option<u64>,
    queue: Option<u64>,
    timeout: Option<Span>,
    validator: Option<String>,
    #[serde(default)]
    pass_credentials: bool,
    answers: Option<Form>,
    ttl: Option<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawInstance {
    url: String,
    weight: Option<u64>,
}

impl Way {
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let identity = self.files.identity.iter().flat_map(|(certificate, key)| [certificate, key]);
        self.files.ca.iter().chain(identity)
    }
}

impl Checker<'_> {
    pub(super) fn remote(
        &self,
        key: &dyn Fn(&str) -> String,
        name: &str,
        raw: Option<RawRemote>,
    ) -> Result<Remote, Error> {
        let raw = self.settings(key, raw)?;
        if raw.answers.is_some() || raw.ttl.is_some() {
            let what = "has no effect with `type: remote`, which speaks the contract: remove answers and ttl";
            return Err(self.value(key("remote"), what));
        }
        let (validator, pass_credentials) = (raw.validator.clone(), raw.pass_credentials);
        let way = self.way(key, raw, Protocol::Http2)?;
        Ok(Remote { way, validator: validator.unwrap_or_else(|| name.to_owned()), pass_credentials })
    }

    pub(super) fn provider(&self, key: &dyn Fn(&str) -> String, raw: Option<RawRemote>) -> Result<Provider, Error> {
        let raw = self.settings(key, raw)?;
        if raw.validator.is_some() || raw.pass_credentials {
            let what = "has no effect with `type: externalData`, whose questions are images alone: remove validator and passCredentials";
            return Err(self.value(key("remote"), what));
        }
        let (form, ttl) = (raw.answers.unwrap_or_default(), self.positive(&key("remote.ttl"), raw.ttl, TTL)?);
        Ok(Provider { way: self.way(key, raw, Protocol::Http1)?, form, ttl })
    }

    fn settings(&self, key: &dyn Fn(&str) -> String, raw: Option<RawRemote>) -> Result<RawRemote, Error> {
        raw.ok_or_else(|| self.value(key("remote"), "is missing: write its instances, caFile, certificate and key"))
    }

    fn way(&self, key: &dyn Fn(&str) -> String, raw: RawRemote, protocol: Protocol) -> Result<Way, Error> {
        let of = |name: &str| key(&format!("remote.{name}"));
        self.within(&of("instances"), raw.instances.len() as u64, 1, INSTANCES_MAX as u64)?;
        let mut instances = Vec::with_capacity(raw.instances.len());
        for (index, instance) in raw.instances.into_iter().enumerate() {
            let at = |name: &str| of(&format!("instances[{index}].{name}"));
            link::address(&instance.url).map_err(|error| self.value(at("url"), error.to_string()))?;
            if instances.iter().any(|(url, _)| *url == instance.url) {
                return Err(self.value(at("url"), "is there twice: write a weight instead"));
            }
            let weight = self.within(&at("weight"), instance.weight.unwrap_or(1), 1, WEIGHT_MAX)?;
            instances.push((instance.url, u32::try_from(weight).unwrap_or(1)));
        }
        let joined = |path: PathBuf| self.folder.join(path);
        let identity = match (raw.certificate, raw.key) {
            (Some(certificate), Some(key)) => Some((joined(certificate), joined(key))),
            (None, None) => None,
            _ => return Err(self.value(of("certificate"), "certificate and key go together: write both, or none")),
        };
        Ok(Way {
            instances,
            files: Files { ca: raw.ca_file.map(joined), identity },
            protocol: match raw.transport {
                None => protocol,
                Some(Transport::Http1) => Protocol::Http1,
                Some(Transport::Http2) => Protocol::Http2,
            },
            max_in_flight: self.within(&of("maxInFlight"), raw.max_in_flight.unwrap_or(MAX_IN_FLIGHT), 1, 10_000)?,
            queue: self.within(&of("queue"), raw.queue.unwrap_or(QUEUE), 0, 100_000)?,
            timeout: self.positive(&of("timeout"), raw.timeout, TIMEOUT)?,
        })
    }
}
