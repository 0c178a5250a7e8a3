//! Validators in other processes: their instances, their connection settings, and the form of their answers.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use service_contract::link::{self, Files};
use service_core::config::quantity::Span;
use service_core::wire::Protocol;

use super::super::{Checker, Error, Transport};

/// Most instances of one validator.
const INSTANCES_MAX: usize = 32;
const WEIGHT_MAX: u64 = 1000;
/// Longest time of a question to one instance: as long as one resolution.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Questions at one time: the streams of one HTTP/2 connection.
const MAX_IN_FLIGHT: u64 = 200;
/// Questions that wait for a place: twice as many as are under way.
const QUEUE: u64 = 400;
/// How long a provider's answer is remembered: Gatekeeper's own default.
const TTL: Duration = Duration::from_mins(3);

/// A validator that speaks the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    pub way: Way,
    /// Its name in the other process.
    pub validator: String,
    /// Whether it gets the pull secrets of pods.
    pub pass_credentials: bool,
}

/// A provider of Gatekeeper's external data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    pub way: Way,
    /// The form of its answers.
    pub form: Form,
    /// Longest time that an answer is remembered.
    pub ttl: Duration,
}

/// The connection settings of a validator in another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Address and weight.
    pub instances: Vec<(String, u32)>,
    /// Trusted authorities and our own certificate.
    pub files: Files,
    pub protocol: Protocol,
    pub max_in_flight: usize,
    pub queue: usize,
    /// Longest time of a question to one instance.
    pub timeout: Duration,
}

/// The form of a provider's `value`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Our own provider: `verdict` with its class.
    #[default]
    Longhaul,
    /// Ratify: `isSuccess`.
    Ratify,
    /// cosign-gatekeeper-provider: the key with `_valid` appended.
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
    /// Every file with a part of its settings.
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
