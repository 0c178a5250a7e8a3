//! The section `replicas`: the API over Deployments, the permitted callers, and its limits.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use rustls::SupportedCipherSuite;
use serde::Deserialize;

use serde_json::{Map, Value, json};
use service_core::config::quantity::{Size, Span};
use service_core::config::{Checker, Error, Section, YamlError, yaml};
use service_core::wire::provider;

/// A body is one number, or one image of at most some hundred bytes.
const MAX_BODY_BYTES: u64 = 4 << 10;
/// kubectl's default wait for a write, and shorter than the limits of proxies in between.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Handshakes of a hundred clients with several connections each; about 20 KiB each while they are idle.
const MAX_CONNECTIONS: usize = 512;
/// Calls in work at one time: one that waits for an observation holds some kilobytes.
const MAX_IN_FLIGHT: usize = 256;
/// A dashboard that reads each of a hundred Deployments each second.
const CLIENT_PER_SECOND: u32 = 100;
/// Ten such clients: a small load for one processor.
const ALL_PER_SECOND: u32 = 1000;
/// Higher rates are no limits.
const PER_SECOND_MOST: u64 = 10_000_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Replicas {
    pub listen: SocketAddr,
    /// PEM file of the certificate chain.
    pub certificate: PathBuf,
    /// PEM file of the private key.
    pub key: PathBuf,
    /// PEM files of the authorities of client certificates, at least one.
    pub client_ca: Vec<PathBuf>,
    pub crl: Vec<PathBuf>,
    /// Whether a certificate is refused if its authority has no revocation list.
    pub crl_required: bool,
    /// The offered suites; empty for all of TLS 1.3.
    pub cipher_suites: Vec<SupportedCipherSuite>,
    /// Longest validity of a client certificate.
    pub max_certificate_lifetime: Option<Duration>,
    /// Rights of callers; applied while running.
    pub allow: Allow,
    /// Rate limits; applied while running.
    pub rate: Rate,
    /// Whether images may be set, which needs more rights.
    pub images: bool,
    pub max_body_bytes: usize,
    pub timeout: Duration,
    /// Open connections; beyond this number, idle ones are closed.
    pub max_connections: usize,
    /// Calls in work at one time; more are refused with 429.
    pub max_in_flight: usize,
}

/// Rights by alternative names of certificates; absent means everybody with a valid certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Allow {
    /// Names with the right to read counts, lists and health.
    pub read: Option<Vec<String>>,
    /// Names with the right to set counts.
    pub scale: Option<Vec<String>>,
    /// Names with the right to set images.
    pub image: Option<Vec<String>>,
}

/// The rate limits of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub client: Bucket,
    /// The limit of all clients together.
    pub all: Bucket,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Tokens added per second.
    pub per_second: NonZeroU32,
    /// Most tokens in the bucket.
    pub burst: NonZeroU32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawReplicas {
    pub listen: SocketAddr,
    pub certificate: PathBuf,
    pub key: PathBuf,
    #[serde(rename = "clientCA")]
    pub client_ca: Vec<PathBuf>,
    #[serde(default)]
    pub crl: Vec<PathBuf>,
    #[serde(default)]
    pub crl_required: bool,
    #[serde(default)]
    pub cipher_suites: Vec<String>,
    pub max_certificate_lifetime: Option<Span>,
    #[serde(default)]
    pub allow: Allow,
    #[serde(default)]
    pub rate: RawRate,
    #[serde(default)]
    pub images: bool,
    pub max_body_bytes: Option<Size>,
    pub timeout: Option<Span>,
    pub max_connections: Option<usize>,
    pub max_in_flight: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawRate {
    pub client: RawBucket,
    pub all: RawBucket,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawBucket {
    pub per_second: Option<u64>,
    pub burst: Option<u64>,
}

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawFile {
    replicas: Option<RawReplicas>,
}

impl Section for Replicas {
    const KEYS: &'static [&'static str] = &["replicas"];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, check: &Checker<'_>) -> Result<Option<Self>, Error> {
        let Some(raw) = raw.replicas else { return Ok(None) };
        if raw.client_ca.is_empty() {
            return Err(check.value("replicas.clientCA", "needs at least one file, because callers need a certificate"));
        }
        if raw.crl_required && raw.crl.is_empty() {
            return Err(check.value("replicas.crl", "needs at least one file beside `crlRequired: true`"));
        }
        let joined = |paths: Vec<PathBuf>| paths.into_iter().map(|path| check.folder.join(path)).collect();
        let body = raw.max_body_bytes.map_or(MAX_BODY_BYTES, |size| size.0);
        let connections = raw.max_connections.unwrap_or(MAX_CONNECTIONS) as u64;
        let in_flight = raw.max_in_flight.unwrap_or(MAX_IN_FLIGHT) as u64;
        let lifetime = match raw.max_certificate_lifetime {
            None => None,
            some => Some(check.positive("replicas.maxCertificateLifetime", some, Duration::MAX)?),
        };
        Ok(Some(Self {
            listen: raw.listen,
            certificate: check.folder.join(raw.certificate),
            key: check.folder.join(raw.key),
            client_ca: joined(raw.client_ca),
            crl: joined(raw.crl),
            crl_required: raw.crl_required,
            cipher_suites: raw.cipher_suites.iter().map(|name| suite(check, name)).collect::<Result<_, _>>()?,
            max_certificate_lifetime: lifetime,
            allow: allow(check, raw.allow)?,
            rate: Rate {
                client: bucket(check, "client", &raw.rate.client, CLIENT_PER_SECOND)?,
                all: bucket(check, "all", &raw.rate.all, ALL_PER_SECOND)?,
            },
            images: raw.images,
            max_body_bytes: check.within("replicas.maxBodyBytes", body, 64, 1 << 20)?,
            timeout: check.positive("replicas.timeout", raw.timeout, TIMEOUT)?,
            max_connections: check.within("replicas.maxConnections", connections, 4, 10_000)?,
            max_in_flight: check.within("replicas.maxInFlight", in_flight, 1, 10_000)?,
        }))
    }

    fn take(&mut self, fresh: &Self) -> Vec<&'static str> {
        if (&self.allow, self.rate) == (&fresh.allow, fresh.rate) {
            return Vec::new();
        }
        (self.allow, self.rate) = (fresh.allow.clone(), fresh.rate);
        vec!["replicas"]
    }

    fn show(&self, shown: &mut Map<String, Value>) {
        let bucket = |bucket: Bucket| json!({"perSecond": bucket.per_second, "burst": bucket.burst});
        if let Some(Value::Object(section)) = shown.get_mut("replicas") {
            section.insert("rate".into(), json!({"client": bucket(self.rate.client), "all": bucket(self.rate.all)}));
        }
    }
}

fn bucket(check: &Checker<'_>, whose: &str, raw: &RawBucket, per_second: u32) -> Result<Bucket, Error> {
    let key = |key: &str| format!("replicas.rate.{whose}.{key}");
    let number = |name: &str, value: u64| {
        check.within(&key(name), value, 1, PER_SECOND_MOST)?;
        let number = u32::try_from(value).ok().and_then(NonZeroU32::new);
        number.ok_or_else(|| check.value(key(name), "is out of range"))
    };
    let per_second = raw.per_second.unwrap_or_else(|| per_second.into());
    let burst = raw.burst.unwrap_or(per_second.saturating_mul(2).min(PER_SECOND_MOST));
    Ok(Bucket { per_second: number("perSecond", per_second)?, burst: number("burst", burst)? })
}

fn suite(check: &Checker<'_>, name: &str) -> Result<SupportedCipherSuite, Error> {
    let provider = provider();
    let of_13 = || provider.cipher_suites.iter().filter(|suite| suite.tls13().is_some());
    let written = |suite: &SupportedCipherSuite| format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1);
    of_13().find(|suite| written(suite) == name).copied().ok_or_else(|| {
        let known: Vec<_> = of_13().map(written).collect();
        check.value("replicas.cipherSuites", format!("`{name}` is none of TLS 1.3: use {}", known.join(", ")))
    })
}

fn allow(check: &Checker<'_>, allow: Allow) -> Result<Allow, Error> {
    for (verb, names) in [("read", &allow.read), ("scale", &allow.scale), ("image", &allow.image)] {
        let star = names.iter().flatten().find(|name| name.trim_end_matches('*').contains('*') || name.is_empty());
        if let Some(name) = star {
            let what = format!("`{name}`: a name is written whole, or its beginning and one `*` at the end");
            return Err(check.value(format!("replicas.allow.{verb}"), what));
        }
    }
    Ok(allow)
}
