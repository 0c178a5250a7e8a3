//! The section `replicas`: the API that scales Deployments, the permitted callers, and its limits.

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

/// Default size limit of a body, in bytes. A body contains only one number, or one image of some hundred bytes.
const MAX_BODY_BYTES: u64 = 4 << 10;
/// Default time limit of a call: kubectl's default for a write, and shorter than the limits of usual proxies.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Default limit of open connections: enough for a hundred clients with several connections each. An idle connection
/// uses about 20 KiB.
const MAX_CONNECTIONS: usize = 512;
/// Default limit of calls that are being answered at one time. A call that waits until the cache shows a change uses
/// some kilobytes.
const MAX_IN_FLIGHT: usize = 256;
/// Default rate of one client in calls per second: enough for a dashboard that reads each of a hundred Deployments once
/// a second.
const CLIENT_PER_SECOND: u32 = 100;
/// Default rate of all clients in calls per second: enough for ten dashboards with a hundred Deployments each, a small
/// load for one processor.
const ALL_PER_SECOND: u32 = 1000;
/// Largest configurable rate in calls per second; a higher rate would limit nothing.
const PER_SECOND_MOST: u64 = 10_000_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Replicas {
    pub listen: SocketAddr,
    /// PEM file of the listener's certificate chain.
    pub certificate: PathBuf,
    /// PEM file of the listener's private key.
    pub key: PathBuf,
    /// PEM files of the authorities of client certificates, at least one.
    pub client_ca: Vec<PathBuf>,
    pub crl: Vec<PathBuf>,
    /// Whether a certificate is refused if its authority has no revocation list.
    pub crl_required: bool,
    /// The offered cipher suites; an empty list means all suites of TLS 1.3.
    pub cipher_suites: Vec<SupportedCipherSuite>,
    /// Longest accepted period of validity of a client certificate.
    pub max_certificate_lifetime: Option<Duration>,
    /// The rights of callers; a changed configuration applies at once.
    pub allow: Allow,
    /// The rate limits; a changed configuration applies at once.
    pub rate: Rate,
    /// Whether callers may set images; for this, the service needs more rights in the cluster.
    pub images: bool,
    pub max_body_bytes: usize,
    pub timeout: Duration,
    /// Maximum number of open connections. If more clients connect, the service closes idle connections.
    pub max_connections: usize,
    /// Maximum number of calls that are being answered at one time; further calls get status 429.
    pub max_in_flight: usize,
}

/// Rights by subject alternative names of certificates. If a list is absent, every caller with a valid certificate has
/// the right.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Allow {
    /// Names of callers that may read counts, lists and health; `None` means all.
    pub read: Option<Vec<String>>,
    /// Names of callers that may set counts; `None` means all.
    pub scale: Option<Vec<String>>,
    /// Names of callers that may set images; `None` means all.
    pub image: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub client: Bucket,
    /// The rate limit for all clients together.
    pub all: Bucket,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Number of tokens (calls) that are added per second.
    pub per_second: NonZeroU32,
    /// Maximum number of tokens in the bucket, and of calls at once.
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
