//! The pull secrets of Pods and their service accounts, read from the API server when an image needs them.
//!
//! This module owns a short-lived cache of Secrets and its limits. As in the kubelet, a Secret that is missing or has
//! no docker configuration is skipped; if the image fails, the message names that Secret. Values of Secrets are never
//! shown.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use http::StatusCode;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::keyring::{Keyring, KeyringError, TEXT_BYTES_MAX};
use crate::metrics::Metrics;
use crate::verdicts::{Cache, Class, Failure, Flights, Joined};
use service_core::kube::{self, Client};
use service_core::wire;

/// Time for which a Secret in the cache is used: the default time for digests, so that a rotated Secret is noticed as
/// soon as a moved tag.
const READ_TTL: Duration = Duration::from_secs(30);
/// Time for which a Secret counts as missing: short, so that the author of a new Secret does not wait long.
const MISSING_TTL: Duration = Duration::from_secs(10);
/// Time limit for reading one Secret, because most of a review's time is for the registry.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of Secrets and service accounts that are read at one time; with [`OBJECT_BYTES_MAX`] each, they take
/// 4 MiB.
const READS_MAX: usize = 8;
/// Largest Secret or service account that is read, in bytes: the largest docker configuration in base64, and metadata.
const OBJECT_BYTES_MAX: usize = 2 * TEXT_BYTES_MAX;
/// Maximum size of the cache of Secrets, in bytes: enough for a thousand Secrets of 4 KiB.
const KNOWN_BYTES: usize = 4 << 20;
/// Maximum number of pull secrets of one service account that are read.
const SECRETS_MAX: usize = 16;
/// The service account of Pods that name no service account.
const DEFAULT_ACCOUNT: &str = "default";

pub struct PullSecrets {
    client: Arc<Client>,
    known: Arc<Mutex<Cache<Known>>>,
    flights: Flights<Known>,
    reads: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

#[derive(Debug, Default)]
pub struct Brought {
    pub keyring: Keyring,
    missing: Vec<(String, Why)>,
}

#[derive(Debug, Clone)]
enum Known {
    Account(Arc<[String]>),
    Ring(Arc<Keyring>),
    Missing(Why),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Why {
    #[error("is not there")]
    Absent,
    #[error("may not be read by this service: it needs `get` on secrets and serviceaccounts there")]
    Forbidden,
    #[error("is no name of an object")]
    Name,
    #[error("is of another type than kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg")]
    Type,
    #[error("holds {0}")]
    Content(#[from] KeyringError),
    #[error("is larger than {OBJECT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("could not be read: the API server did not answer as it should")]
    Unreadable,
    #[error("could not be read: too many are read at one time")]
    Busy,
}

#[derive(Deserialize)]
struct Secret {
    #[serde(rename = "type", default)]
    kind: String,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = ".dockerconfigjson")]
    config: Option<String>,
    #[serde(rename = ".dockercfg")]
    older: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Account {
    #[serde(default)]
    image_pull_secrets: Vec<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    #[serde(default)]
    name: String,
}

impl PullSecrets {
    pub fn new(client: Arc<Client>, metrics: Arc<Metrics>) -> Self {
        Self {
            client,
            known: Arc::new(Mutex::new(Cache::new(KNOWN_BYTES))),
            flights: Flights::new(),
            reads: Arc::new(Semaphore::new(READS_MAX)),
            metrics,
        }
    }

    /// The credentials of a Pod in `namespace`: first the credentials in its `secrets`, then those of its service
    /// `accounts`. The function never fails; credentials that could not be read by `deadline` are left out.
    pub async fn brought(
        &self,
        namespace: &str,
        accounts: &[String],
        secrets: &[String],
        deadline: Instant,
    ) -> Brought {
        let mut brought = Brought::default();
        let mut names = secrets.to_vec();
        let default = [DEFAULT_ACCOUNT.to_owned()];
        let (accounts, named) = if accounts.is_empty() { (&default[..], false) } else { (accounts, true) };
        let read = accounts.iter().map(|name| self.known(namespace, Kind::Account, name, deadline));
        for (known, name) in join_all(read).await.into_iter().zip(accounts) {
            match known {
                Known::Account(more) => names.extend(more.iter().filter(|name| !secrets.contains(name)).cloned()),
                // A missing default account is no error if the pod names none.
                Known::Missing(Why::Absent) if !named => {}
                Known::Missing(why) => brought.missing.push((Kind::Account.shown(namespace, name), why)),
                Known::Ring(_) => {}
            }
        }
        let read = names.iter().map(|name| self.known(namespace, Kind::Secret, name, deadline));
        let mut rings = Vec::new();
        for (known, name) in join_all(read).await.into_iter().zip(&names) {
            match known {
                Known::Ring(ring) => rings.push(ring),
                Known::Missing(why) => brought.missing.push((Kind::Secret.shown(namespace, name), why)),
                Known::Account(_) => {}
            }
        }
        brought.keyring = Keyring::united(rings.iter().map(|ring| &**ring));
        brought
    }

    async fn known(&self, namespace: &str, kind: Kind, name: &str, deadline: Instant) -> Known {
        if !is_label(namespace) || !is_subdomain(name) {
            return Known::Missing(Why::Name);
        }
        let path = format!("/api/v1/namespaces/{namespace}/{}/{name}", kind.plural());
        if let Some(known) = self.known.lock().value(&path, std::time::Instant::now()) {
            return known;
        }
        let shown = kind.shown(namespace, name);
        let Joined { flight, silence, .. } = self.flights.join(&path, || {
            let (client, cache, reads) = (Arc::clone(&self.client), Arc::clone(&self.known), Arc::clone(&self.reads));
            let (metrics, path) = (Arc::clone(&self.metrics), path.clone());
            let until = Instant::now() + READ_TIMEOUT;
            async move {
                let answer = match timeout_at(until, reads.acquire()).await {
                    Ok(_permit) => {
                        // A read that has waited for others must still have its time.
                        let until = Instant::now() + READ_TIMEOUT;
                        let read = timeout_at(until, client.read_at_most(&path, OBJECT_BYTES_MAX, until)).await;
                        let read = read.map_err(|_elapsed| Why::Unreadable);
                        read.and_then(|read| read.map_err(|error| Why::of(&error)))
                    }
                    Err(_elapsed) => Err(Why::Busy),
                };
                let (known, bytes) = match answer.and_then(|object| kind.read(&object, &shown.into())) {
                    Ok(known) => known,
                    Err(why) => (Known::Missing(why), 0),
                };
                metrics.pull_secret_read(known.outcome());
                if let Some(ttl) = known.ttl() {
                    cache.lock().insert(&path, known.clone(), bytes, ttl, std::time::Instant::now());
                }
                known
            }
            .boxed()
        });
        timeout_at(deadline, flight)
            .await
            .unwrap_or_else(|_elapsed| Known::Missing(if silence.is_most() { Why::Unreadable } else { Why::Busy }))
    }
}

impl Brought {
    /// Adds facts about pull secrets to `failure`, which a registry returned for the credentials `tried`.
    ///
    /// If a Secret could not be read, the registry might still accept the image, so the failure becomes uncertain.
    #[must_use]
    pub fn explain(&self, mut failure: Failure, tried: &Keyring) -> Failure {
        if !matches!(failure.class, Class::Auth | Class::NotFound) {
            return failure;
        }
        let is = |wanted: Why| self.missing.iter().any(|(_, why)| *why == wanted);
        let busy = is(Why::Busy);
        let unreadable = busy || is(Why::Unreadable);
        if failure.class == Class::NotFound && !unreadable {
            return failure;
        }
        let mut said = String::new();
        for source in tried.sources() {
            said += if said.is_empty() { "; refused: " } else { ", " };
            said += source;
        }
        for (name, why) in &self.missing {
            let _ = write!(said, "; {name} {why}");
        }
        if said.is_empty() {
            said += "; the pod has no pull secret for it";
        }
        failure.cause += &said;
        if unreadable {
            failure.class = if busy { Class::Busy } else { Class::Unavailable };
        }
        failure
    }
}

type Read = fn(&[u8], &Arc<str>) -> Result<Keyring, KeyringError>;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Account,
    Secret,
}

impl Kind {
    fn plural(self) -> &'static str {
        match self {
            Self::Account => "serviceaccounts",
            Self::Secret => "secrets",
        }
    }

    fn shown(self, namespace: &str, name: &str) -> String {
        let what = match self {
            Self::Account => "service account",
            Self::Secret => "pull secret",
        };
        format!("{what} {namespace}/{name}")
    }

    /// Parses a Secret or service account; returns the content and its size in bytes.
    fn read(self, object: &Bytes, source: &Arc<str>) -> Result<(Known, usize), Why> {
        match self {
            Self::Account => {
                let account: Account = serde_json::from_slice(object).map_err(|_| Why::Unreadable)?;
                let names = account.image_pull_secrets.into_iter().map(|reference| reference.name);
                let names: Arc<[String]> = names.filter(|name| !name.is_empty()).take(SECRETS_MAX).collect();
                let bytes = names.iter().map(|name| name.len() + size_of::<String>()).sum();
                Ok((Known::Account(names), bytes))
            }
            Self::Secret => {
                let secret: Secret = serde_json::from_slice(object).map_err(|_| Why::Unreadable)?;
                let data = secret.data.unwrap_or(Data { config: None, older: None });
                let (text, read): (_, Read) = match &*secret.kind {
                    "kubernetes.io/dockerconfigjson" => (data.config, Keyring::docker_config),
                    "kubernetes.io/dockercfg" => (data.older, Keyring::dockercfg),
                    _ => return Err(Why::Type),
                };
                let text = BASE64.decode(text.unwrap_or_default()).map_err(|_| KeyringError::Shape)?;
                Ok((Known::Ring(Arc::new(read(&text, source)?)), text.len()))
            }
        }
    }
}

impl Known {
    fn ttl(&self) -> Option<Duration> {
        match self {
            Self::Account(_) | Self::Ring(_) => Some(READ_TTL),
            Self::Missing(Why::Unreadable | Why::Busy) => None,
            Self::Missing(_) => Some(MISSING_TTL),
        }
    }

    fn outcome(&self) -> &'static str {
        match self {
            Self::Account(_) | Self::Ring(_) => "read",
            Self::Missing(Why::Absent) => "absent",
            Self::Missing(Why::Forbidden) => "forbidden",
            Self::Missing(Why::Unreadable | Why::Busy) => "failed",
            Self::Missing(_) => "unusable",
        }
    }
}

impl Why {
    fn of(error: &kube::Error) -> Self {
        match (error.status(), error) {
            (Some(StatusCode::NOT_FOUND), _) => Self::Absent,
            (Some(StatusCode::FORBIDDEN), _) => Self::Forbidden,
            (_, kube::Error::Wire(wire::Error::TooLarge { .. })) => Self::TooLarge,
            _ => Self::Unreadable,
        }
    }
}

/// Whether a text is a DNS label (RFC 1123), the form of a namespace.
fn is_label(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = text.bytes().next().is_some_and(word) && text.bytes().next_back().is_some_and(word);
    ends && text.len() <= 63 && text.bytes().all(|byte| word(byte) || byte == b'-')
}

/// Whether a text is a DNS subdomain (RFC 1123), the form of names of Secrets and accounts. A DNS subdomain has no `/`,
/// so it is one component of a path.
fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(kind: Kind, object: &serde_json::Value) -> Result<Known, Why> {
        kind.read(&object.to_string().into(), &"s".into()).map(|(known, _)| known)
    }

    #[test]
    fn both_types_of_secrets_and_what_is_neither() {
        let entry = r#"{"h":{"username":"u","password":"p"}}"#;
        let config = BASE64.encode(format!(r#"{{"auths":{entry}}}"#));
        let secret = |kind: &str, key: &str, text: &str| json!({"kind": "Secret", "type": kind, "data": {key: text}});
        for (kind, key, text) in [
            ("kubernetes.io/dockerconfigjson", ".dockerconfigjson", &*config),
            ("kubernetes.io/dockercfg", ".dockercfg", &BASE64.encode(entry)),
        ] {
            let known = read(Kind::Secret, &secret(kind, key, text));
            assert!(matches!(known, Ok(Known::Ring(ring)) if !ring.is_empty()), "{kind}");
            let other = read(Kind::Secret, &secret(kind, "other", text));
            assert_eq!(other.unwrap_err(), Why::Content(KeyringError::Shape), "{kind}");
        }
        let opaque = secret("Opaque", ".dockerconfigjson", &config);
        assert_eq!(read(Kind::Secret, &opaque).unwrap_err(), Why::Type);
        let account = json!({"imagePullSecrets": [{"name": "a"}, {}, {"name": "b"}]});
        assert!(matches!(read(Kind::Account, &account), Ok(Known::Account(names)) if *names == ["a", "b"]));
    }

    #[test]
    fn only_names_of_objects_stand_in_a_path() {
        for name in ["a", "a-b.c", "0", &"a".repeat(63)] {
            assert!(is_subdomain(name), "{name}");
        }
        for name in ["", ".", "..", "a..b", "a/b", "../x", "A", "-a", "a-", "a?b", "a%2f", "a b", &"a".repeat(64)] {
            assert!(!is_subdomain(name), "{name}");
        }
        assert!(!is_label("a.b"));
    }

    #[test]
    fn what_is_said_of_a_refusal() {
        let text = br#"{"auths":{"h":{"username":"u","password":"pass"}}}"#;
        let ring = Keyring::docker_config(text, &"pull secret n/a".into()).unwrap();
        let refusal = || Failure::new(Class::Auth, "h answered 401");
        let missing = |why| vec![("pull secret n/b".to_owned(), why)];
        let brought = Brought { keyring: ring.clone(), missing: missing(Why::Absent) };
        let said = brought.explain(refusal(), &ring);
        assert_eq!(said.to_string(), "auth: h answered 401; refused: pull secret n/a; pull secret n/b is not there");
        let absent = Failure::new(Class::NotFound, "x");
        assert_eq!(brought.explain(absent.clone(), &ring), absent);
        let brought = Brought { keyring: ring, missing: missing(Why::Unreadable) };
        let said = brought.explain(refusal(), &Keyring::default());
        assert!(said.class == Class::Unavailable && said.cause.contains("n/b could not be read"), "{said}");
        assert_eq!(brought.explain(absent, &Keyring::default()).class, Class::Unavailable);
        // A pod may name any number of secrets.
        let missing = vec![("a".to_owned(), Why::Unreadable), ("b".to_owned(), Why::Busy)];
        let crowded = Brought { missing, ..Brought::default() };
        assert_eq!(crowded.explain(refusal(), &Keyring::default()).class, Class::Busy);
        let said = Brought::default().explain(refusal(), &Keyring::default());
        assert_eq!(said.to_string(), "auth: h answered 401; the pod has no pull secret for it");
    }
}
