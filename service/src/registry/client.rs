//! The requests: HEAD, then GET, of a manifest by tag; tokens when asked for; few retries, always inside the deadline.
//!
//! Owns the token cache. The digest of a multi-arch tag is the one of its index, never of a platform manifest.
//! What a registry answers is believed as little as possible: numbers saturate, redirects end, and a cause names class, host
//! and status, but nothing that came from outside.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand::RngExt as _;
use tokio::time::Instant;

use super::challenge::{self, Challenge};
use super::hosts::{Hosts, Station};
use super::manifest::{self, ACCEPT, ManifestError};
use super::reference::Reference;
use super::url::{Url, is_path};
use crate::authority::Authority;
use crate::verdicts::{Cache, Class, Failure};
use crate::wire;

/// Largest manifest read (OCI distribution specification: registries should accept 4 MiB).
const MANIFEST_BYTES_MAX: usize = 4 << 20;
/// Largest answer of a token service; real tokens stay under 8 KiB.
const TOKEN_BYTES_MAX: usize = 64 << 10;
/// Size of the token cache: some hundred scopes.
const TOKEN_CACHE_BYTES: usize = 1 << 20;
/// Attempts for one request; a third failure in a row is an outage, and the deadline is better spent on saying so.
const ATTEMPTS: u32 = 3;
/// Base of the wait between attempts, doubled each time and drawn at random.
const RETRY_BASE: Duration = Duration::from_millis(100);
/// Redirects followed for one request; more is a loop.
const REDIRECTS_MAX: u32 = 5;
/// How often the files of registries are looked at: a rotated authority is trusted long before the old one ends.
const FILES_INTERVAL: Duration = Duration::from_secs(5);
/// Longest cause of a failure: enough for a host, a status and a key of the configuration.
const CAUSE_CHARS_MAX: usize = 400;

/// The registry client.
pub struct Registry {
    hosts: Hosts,
    tokens: Mutex<Cache<Arc<str>>>,
}

impl Registry {
    /// A client for `hosts`.
    pub fn new(hosts: Hosts) -> Self {
        Self { hosts, tokens: Mutex::new(Cache::new(TOKEN_CACHE_BYTES)) }
    }

    /// Follows the files of the configured registries until dropped.
    pub async fn follow_files(self: Arc<Self>) {
        loop {
            tokio::time::sleep(FILES_INTERVAL).await;
            self.hosts.look_at_files();
        }
    }

    /// The digest (`sha256:` and 64 hex digits) that the registry serves for `reference` now.
    pub async fn resolve(&self, reference: &Reference, deadline: Instant) -> Result<String, Failure> {
        let outcome = self.digest(reference, deadline).await;
        outcome.map_err(|failure| Failure::new(failure.class, shown(&failure.cause)))
    }

    async fn digest(&self, reference: &Reference, deadline: Instant) -> Result<String, Failure> {
        let station = self.hosts.station(&reference.host)?;
        let wrong = |error: ManifestError| {
            Failure::new(Class::Unavailable, format!("{} answered with {error}", reference.host))
        };
        let head = self.manifest(&station, &Method::HEAD, reference, deadline).await?;
        if head.status() == StatusCode::OK
            && let Some(digest) = manifest::of_head(head.headers()).map_err(wrong)?
        {
            return Ok(digest);
        }
        // Some registries answer HEAD without the digest, or not at all; only the bytes can tell then.
        if !matches!(head.status(), StatusCode::OK | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED) {
            return Err(refusal(&head, reference, &station));
        }
        let get = self.manifest(&station, &Method::GET, reference, deadline).await?;
        if get.status() != StatusCode::OK {
            return Err(refusal(&get, reference, &station));
        }
        manifest::of_get(get.headers(), get.body()).map_err(wrong)
    }

    /// One manifest request with authentication and retries; any status may come back.
    async fn manifest(
        &self,
        station: &Station<'_>,
        method: &Method,
        reference: &Reference,
        deadline: Instant,
    ) -> Result<Response<Bytes>, Failure> {
        let mut attempt = 1;
        loop {
            let answer = self.authenticated(station, method, reference, deadline).await;
            let wait = match &answer {
                Ok(response) if is_temporary(response.status()) => retry_after(response.headers()),
                Err(failure) if failure.class == Class::Unavailable => None,
                _ => return answer,
            };
            let wait = wait.unwrap_or_else(|| jitter(RETRY_BASE * 2u32.pow(attempt)));
            // Waiting into the deadline would turn a known answer into a timeout.
            let left = deadline.saturating_duration_since(Instant::now());
            if attempt == ATTEMPTS || wait.saturating_add(RETRY_BASE) > left {
                return answer;
            }
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    async fn authenticated(
        &self,
        station: &Station<'_>,
        method: &Method,
        reference: &Reference,
        deadline: Instant,
    ) -> Result<Response<Bytes>, Failure> {
        let scope = format!("{}/{}", reference.host, reference.repository);
        let known = self.tokens.lock().value(&scope, std::time::Instant::now());
        let response = redirected(station, method, reference, known.as_deref(), deadline).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let mut challenges = response.headers().get_all(header::WWW_AUTHENTICATE).iter();
        let Some(challenge) = challenges.find_map(|value| Challenge::parse(value.to_str().ok()?)) else {
            return Ok(response);
        };
        let (authorization, life) = match challenge {
            Challenge::Basic => match station.login()? {
                Some(login) => (basic(&login), Duration::from_mins(5)),
                None => return Ok(response),
            },
            Challenge::Bearer { realm, service, scope } => {
                token(station, reference, &realm, service.as_deref(), scope, deadline).await?
            }
        };
        let authorization: Arc<str> = authorization.into();
        let answer = redirected(station, method, reference, Some(&authorization), deadline).await?;
        if !matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let bytes = authorization.len();
            self.tokens.lock().insert(&scope, authorization, bytes, life, std::time::Instant::now());
        }
        Ok(answer)
    }
}

/// Sends the request and follows redirects; credentials stay with the host they are for.
async fn redirected(
    station: &Station<'_>,
    method: &Method,
    reference: &Reference,
    authorization: Option<&str>,
    deadline: Instant,
) -> Result<Response<Bytes>, Failure> {
    let bad = |what: &str| Failure::new(Class::Misconfigured, format!("{} answered a redirect {what}", reference.host));
    let (mut client, mut trusted) = (Arc::clone(&station.client), true);
    let mut path = format!("/v2/{}/manifests/{}", reference.repository, reference.tag);
    for _ in 0..=REDIRECTS_MAX {
        let request = request(method, &path, Some(ACCEPT), authorization.filter(|_| trusted))?;
        let response = client.fetch(request, MANIFEST_BYTES_MAX, deadline).await;
        let response = response.map_err(|error| match error {
            wire::Error::Inside { authority } => bad(&format!("to {authority}, which is at an internal address")),
            error => failure(station, &error),
        })?;
        let location = response.headers().get(header::LOCATION).filter(|_| is_redirect(response.status()));
        let Some(location) = location else { return Ok(response) };
        let location = location.to_str().map_err(|_| bad("to what is no URL"))?;
        if is_path(location) && !location.starts_with("//") {
            location.clone_into(&mut path);
            continue;
        }
        let url = Url::parse(location).ok_or_else(|| bad("to what is no HTTP URL"))?;
        if url.plain && client.origin().tls.is_some() {
            return Err(bad(&format!("from HTTPS to HTTP at {}", url.authority)));
        }
        let leg = station.redirect(&url);
        (client, trusted, path) = (leg.client, leg.trusted, url.path);
    }
    Err(Failure::new(Class::Unavailable, format!("{} answered more than {REDIRECTS_MAX} redirects", reference.host)))
}

/// The `Authorization` that the token service of `realm` gives for `reference`, and how long it may be used.
async fn token(
    station: &Station<'_>,
    reference: &Reference,
    realm: &str,
    service: Option<&str>,
    scope: Option<String>,
    deadline: Instant,
) -> Result<(String, Duration), Failure> {
    let url = Url::parse(realm).ok_or_else(|| {
        let what = format!("{} names a token service whose address is no HTTP URL", reference.host);
        Failure::new(Class::Misconfigured, what)
    })?;
    let host = &url.authority;
    let leg = station.realm(&url)?;
    let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", reference.repository));
    let path = token_path(&url.path, service, &scope);
    let login = if leg.trusted { station.login()? } else { None };
    let request = request(&Method::GET, &path, None, login.as_ref().map(basic).as_deref())?;
    let answer = leg.client.fetch(request, TOKEN_BYTES_MAX, deadline).await.map_err(|error| match error {
        wire::Error::Inside { .. } => inside(station, host),
        error => failure(station, &error),
    })?;
    match answer.status() {
        StatusCode::OK => {
            let token = challenge::token(answer.body()).ok_or_else(|| {
                Failure::new(Class::Unavailable, format!("the token service {host} answered without a usable token"))
            })?;
            Ok((format!("Bearer {}", token.0), token.1))
        }
        status if is_temporary(status) => {
            Err(Failure::new(Class::Unavailable, format!("the token service {host} answered {status}")))
        }
        status => {
            let tried = match login {
                Some((name, _)) => format!("user {name}"),
                None if leg.trusted => "anonymous".to_owned(),
                None => format!("anonymous, because {} does not name it", station.key("realms")),
            };
            Err(Failure::new(Class::Auth, format!("the token service {host} answered {status} ({tried})")))
        }
    }
}

fn token_path(path: &str, service: Option<&str>, scope: &str) -> String {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut path = path.to_owned();
    path.push(if path.contains('?') { '&' } else { '?' });
    if let Some(service) = service {
        path.push_str("service=");
        path.push_str(&encode(service));
        path.push('&');
    }
    path.push_str("scope=");
    path.push_str(&encode(scope));
    path
}

fn inside(station: &Station<'_>, host: &Authority) -> Failure {
    let key = station.key("realms");
    let what = format!("the token service {host} is at an internal address; when that is meant, name it in {key}");
    Failure::new(Class::Misconfigured, what)
}

fn failure(station: &Station<'_>, error: &wire::Error) -> Failure {
    if error.is_certificate() {
        let key = station.key("caFile");
        return Failure::new(Class::Misconfigured, format!("{error}; check {key}"));
    }
    Failure::new(Class::Unavailable, error.to_string())
}

/// `text` without control characters, and not longer than a cause should be.
fn shown(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(CAUSE_CHARS_MAX).collect()
}

fn refusal(response: &Response<Bytes>, reference: &Reference, station: &Station<'_>) -> Failure {
    let status = response.status();
    let class = match status {
        StatusCode::NOT_FOUND => Class::NotFound,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Class::Auth,
        status if is_temporary(status) => Class::Unavailable,
        _ => Class::Misconfigured,
    };
    let cause = match class {
        Class::NotFound => format!("{} has no {}:{}", reference.host, reference.repository, reference.tag),
        Class::Auth => {
            format!("{} answered {status}; check {}", reference.host, station.key("username"))
        }
        _ => format!("{} answered {status}", reference.host),
    };
    Failure::new(class, cause)
}

fn is_temporary(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
}

fn request(
    method: &Method,
    path: &str,
    accept: Option<&str>,
    authorization: Option<&str>,
) -> Result<Request<Bytes>, Failure> {
    let mut builder = Request::builder()
        .method(method)
        .uri(path)
        .header(header::USER_AGENT, concat!("longhaul-service/", env!("CARGO_PKG_VERSION")));
    if let Some(accept) = accept {
        builder = builder.header(header::ACCEPT, accept);
    }
    if let Some(authorization) = authorization {
        builder = builder.header(header::AUTHORIZATION, authorization);
    }
    builder.body(Bytes::new()).map_err(|_| Failure::new(Class::Misconfigured, "the request cannot be written as HTTP"))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Whole seconds only; the date form is for humans and clocks that agree. Whoever waits compares it with a deadline.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

fn jitter(most: Duration) -> Duration {
    most.mul_f64(rand::rng().random_range(0.5..1.0))
}

fn basic(login: &(String, String)) -> String {
    format!("Basic {}", BASE64.encode(format!("{}:{}", login.0, login.1)))
}
