//! The requests: HEAD, then GET, of a manifest by tag; tokens when asked for; few retries, always inside the deadline.
//!
//! Owns the token cache. The digest of a multi-arch tag is the one of its index, never of a platform manifest.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::challenge::{Challenge, TokenAnswer};
use super::hosts::Hosts;
use super::reference::Reference;
use crate::verdicts::{Cache, Class, Failure};
use crate::wire;

/// Indexes first, so that a registry that picks by Accept picks the index.
const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
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
const REDIRECTS_MAX: u32 = 3;
const DIGEST_HEADER: &str = "docker-content-digest";

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

    /// The digest (`sha256:` and 64 hex digits) that the registry serves for `reference` now.
    pub async fn resolve(&self, reference: &Reference, deadline: Instant) -> Result<String, Failure> {
        let head = self.manifest(&Method::HEAD, reference, deadline).await?;
        if head.status() == StatusCode::OK
            && let Some(digest) = stated_digest(head.headers())
        {
            return Ok(digest.to_owned());
        }
        // Some registries answer HEAD without the digest, or not at all; only the bytes can tell then.
        if !matches!(head.status(), StatusCode::OK | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED) {
            return Err(refusal(&head, reference, &self.hosts));
        }
        let get = self.manifest(&Method::GET, reference, deadline).await?;
        if get.status() != StatusCode::OK {
            return Err(refusal(&get, reference, &self.hosts));
        }
        let hashed = format!("sha256:{}", hex::encode(Sha256::digest(get.body())));
        match stated_digest(get.headers()) {
            Some(stated) if stated != hashed => Err(Failure::new(
                Class::Unavailable,
                format!("the registry states {stated} for a manifest whose digest is {hashed}"),
            )),
            _ => Ok(hashed),
        }
    }

    /// One manifest request with authentication and retries; any status may come back.
    async fn manifest(
        &self,
        method: &Method,
        reference: &Reference,
        deadline: Instant,
    ) -> Result<Response<Bytes>, Failure> {
        let mut attempt = 1;
        loop {
            let answer = self.authenticated(method, reference, deadline).await;
            let wait = match &answer {
                Ok(response) if is_temporary(response.status()) => retry_after(response.headers()),
                Err(failure) if failure.class == Class::Unavailable => None,
                _ => return answer,
            };
            let wait = wait.unwrap_or_else(|| jitter(RETRY_BASE * 2u32.pow(attempt)));
            // Waiting into the deadline would turn a known answer into a timeout.
            if attempt == ATTEMPTS || Instant::now() + wait + RETRY_BASE > deadline {
                return answer;
            }
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    async fn authenticated(
        &self,
        method: &Method,
        reference: &Reference,
        deadline: Instant,
    ) -> Result<Response<Bytes>, Failure> {
        let scope = format!("{}/{}", reference.host, reference.repository);
        let known = self.tokens.lock().value(&scope, std::time::Instant::now());
        let response = self.redirected(method, reference, known.as_deref(), deadline).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let mut challenges = response.headers().get_all(header::WWW_AUTHENTICATE).iter();
        let Some(challenge) = challenges.find_map(|value| Challenge::parse(value.to_str().ok()?)) else {
            return Ok(response);
        };
        let (authorization, life) = match challenge {
            Challenge::Basic => match self.hosts.login(&reference.host)? {
                Some(login) => (basic(&login), Duration::from_mins(5)),
                None => return Ok(response),
            },
            Challenge::Bearer { realm, service, scope } => {
                self.token(reference, &realm, service, scope, deadline).await?
            }
        };
        let authorization: Arc<str> = authorization.into();
        let answer = self.redirected(method, reference, Some(&authorization), deadline).await?;
        if !matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let bytes = authorization.len();
            self.tokens.lock().insert(&scope, authorization, bytes, life, std::time::Instant::now());
        }
        Ok(answer)
    }

    /// Sends the request and follows redirects; credentials stay with the host they are for.
    async fn redirected(
        &self,
        method: &Method,
        reference: &Reference,
        authorization: Option<&str>,
        deadline: Instant,
    ) -> Result<Response<Bytes>, Failure> {
        let (mut host, mut plain) = (reference.host.clone(), None);
        let mut path = format!("/v2/{}/manifests/{}", reference.repository, reference.tag);
        for _ in 0..=REDIRECTS_MAX {
            let authorization = authorization.filter(|_| host == reference.host);
            let client = self.hosts.client(&host, plain)?;
            let request = request(method, &path, Some(ACCEPT), authorization)?;
            let response = client.fetch(request, MANIFEST_BYTES_MAX, deadline).await;
            let response = response.map_err(|error| self.failure(&host, &error))?;
            let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
            let (true, Some(location)) = (response.status().is_redirection(), location) else { return Ok(response) };
            if location.starts_with('/') {
                location.clone_into(&mut path);
            } else {
                let (to, insecure, to_path) = split_url(location)?;
                if insecure && client.origin().tls.is_some() {
                    return Err(Failure::new(Class::Misconfigured, format!("redirect from HTTPS to `{location}`")));
                }
                (host, plain, path) = (to, Some(insecure), to_path);
            }
        }
        Err(Failure::new(Class::Unavailable, format!("more than {REDIRECTS_MAX} redirects")))
    }

    async fn token(
        &self,
        reference: &Reference,
        realm: &str,
        service: Option<String>,
        scope: Option<String>,
        deadline: Instant,
    ) -> Result<(String, Duration), Failure> {
        let (host, plain, mut path) = split_url(realm)?;
        let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", reference.repository));
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        path.push(if path.contains('?') { '&' } else { '?' });
        if let Some(service) = service {
            path.push_str("service=");
            path.push_str(&encode(&service));
            path.push('&');
        }
        path.push_str("scope=");
        path.push_str(&encode(&scope));
        let login = self.hosts.login(&reference.host)?;
        // A password never travels in clear because a registry named a plain realm, unless the registry itself is plain.
        let secure = !plain || self.hosts.client(&reference.host, None)?.origin().tls.is_none();
        let authorization = login.as_ref().filter(|_| secure).map(basic);
        let request = request(&Method::GET, &path, None, authorization.as_deref())?;
        let client = self.hosts.client(&host, Some(plain))?;
        let answer = client.fetch(request, TOKEN_BYTES_MAX, deadline).await;
        let answer = answer.map_err(|error| self.failure(&host, &error))?;
        match answer.status() {
            StatusCode::OK => {
                let token = serde_json::from_slice::<TokenAnswer>(answer.body()).ok().and_then(TokenAnswer::token);
                let (token, life) = token.ok_or_else(|| {
                    Failure::new(Class::Unavailable, format!("the token service {host} answered without a token"))
                })?;
                Ok((format!("Bearer {token}"), life))
            }
            status if is_temporary(status) => {
                Err(Failure::new(Class::Unavailable, format!("the token service {host} answered {status}")))
            }
            status => {
                let tried = login.map_or_else(|| "anonymous".to_owned(), |(name, _)| format!("user {name}"));
                Err(Failure::new(Class::Auth, format!("the token service {host} answered {status} ({tried})")))
            }
        }
    }

    fn failure(&self, host: &str, error: &wire::Error) -> Failure {
        if error.is_certificate() {
            let key = self.hosts.key(host, "caFile");
            return Failure::new(Class::Misconfigured, format!("{error}; check {key}"));
        }
        Failure::new(Class::Unavailable, error.to_string())
    }
}

fn refusal(response: &Response<Bytes>, reference: &Reference, hosts: &Hosts) -> Failure {
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
            format!("{} answered {status}; check {}", reference.host, hosts.key(&reference.host, "username"))
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
    builder
        .body(Bytes::new())
        .map_err(|error| Failure::new(Class::Misconfigured, format!("request to `{path}`: {error}")))
}

/// Host with port, whether it is plain HTTP, and path with query.
fn split_url(url: &str) -> Result<(String, bool, String), Failure> {
    let bad = || Failure::new(Class::Misconfigured, format!("the registry named `{url}`, which is not an HTTP URL"));
    let uri: http::Uri = url.parse().map_err(|_| bad())?;
    let plain = match uri.scheme_str() {
        Some("https") => false,
        Some("http") => true,
        _ => return Err(bad()),
    };
    let host = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(bad)?.to_string();
    Ok((host, plain, uri.path_and_query().map_or("/", |path| path.as_str()).to_owned()))
}

fn stated_digest(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(DIGEST_HEADER)?.to_str().ok()?;
    let digits = text.strip_prefix("sha256:")?;
    let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (digits.len() == 64 && digits.bytes().all(lower_hex)).then_some(text)
}

/// Whole seconds only; the date form is for humans and clocks that agree.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

fn jitter(most: Duration) -> Duration {
    most.mul_f64(rand::rng().random_range(0.5..1.0))
}

fn basic(login: &(String, String)) -> String {
    format!("Basic {}", BASE64.encode(format!("{}:{}", login.0, login.1)))
}
