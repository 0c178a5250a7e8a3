//! The registry client: looks up the digest of a tag by HEAD, then by GET, and fetches signatures. The client repeats
//! failed requests a few times, always within the deadline.
//!
//! The digest of a multi-arch tag is the digest of its index, never of a platform manifest. Answers of registries are
//! not trusted: numbers saturate, redirects are limited, and error messages contain class, host and status but no text
//! from outside.

mod exchange;
mod login;
mod pieces;
mod pull;

pub use pieces::Piece;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, header};
use parking_lot::Mutex;
use rand::RngExt as _;
use tokio::time::Instant;

use super::hosts::{Hosts, Upstream};
use super::keychain::Keyring;
use super::limiter::{Health, Shut};
use super::manifest::{self, ManifestError};
use super::reference::Reference;
use super::wanted::Wanted;
use crate::verdicts::{Cache, Class, Failure};
use service_core::wire::{self, Silence};

/// Maximum size of the token cache in bytes: enough for some hundred scopes.
const TOKEN_CACHE_BYTES: usize = 1 << 20;
/// Maximum number of attempts for one request. After the third failure in a row, the registry counts as down, so that
/// the failure is reported while time remains.
const ATTEMPTS: u32 = 3;
/// Base of the delay between two attempts. The base doubles with each attempt, and the actual delay is random between
/// zero and the base.
const RETRY_BASE: Duration = Duration::from_millis(100);
/// Time between two checks of the files that the configuration names. A rotated authority is trusted long before the
/// former authority expires.
const FILES_INTERVAL: Duration = Duration::from_secs(5);
/// Time limit of the request for a registry's API version.
const VERSION_TIME: Duration = Duration::from_secs(1);
/// Maximum number of bytes of the answer to the request for the API version; nearly all registries answer with two
/// letters.
const VERSION_BYTES_MAX: usize = 64 << 10;
/// Maximum number of characters of a failure's cause: enough for a host, a status and a configuration key.
const CAUSE_CHARS_MAX: usize = 400;

pub struct Registry {
    hosts: Hosts,
    /// Authorization headers that registries accepted, by repository and keyring.
    tokens: Mutex<Cache<Arc<str>>>,
}

/// A request for one object of a registry, and everything needed to send it.
struct Question<'q> {
    upstream: &'q Upstream<'q>,
    repository: &'q str,
    wanted: Wanted<'q>,
    keyring: &'q Keyring,
    deadline: Instant,
    attempts: u32,
}

impl Registry {
    pub fn new(hosts: Hosts) -> Self {
        Self { hosts, tokens: Mutex::new(Cache::new(TOKEN_CACHE_BYTES)) }
    }

    /// Checks the files that the configuration names again and again, until dropped.
    pub async fn follow_files(self: Arc<Self>) {
        loop {
            tokio::time::sleep(FILES_INTERVAL).await;
            if self.hosts.look_at_files() {
                // Tokens of the former credentials would live on for up to an hour.
                *self.tokens.lock() = Cache::new(TOKEN_CACHE_BYTES);
            }
        }
    }

    /// The credentials in `keyring` that may be sent for `reference`.
    pub fn relevant(&self, reference: &Reference, keyring: &Keyring) -> Keyring {
        self.relevant_at(&reference.host, &reference.repository, keyring)
    }

    /// The credentials in `keyring` that may be sent for `repository` at `host`.
    pub fn relevant_at(&self, host: &str, repository: &str, keyring: &Keyring) -> Keyring {
        let stops = self.hosts.route(host, repository).unwrap_or_default();
        keyring.narrowed(&stops.into_iter().map(|stop| (stop.host, stop.repository)).collect::<Vec<_>>())
    }

    /// The digest (`sha256:` and 64 hex digits) that the registry returns for `reference` with the credentials in
    /// `keyring`.
    ///
    /// An error does not name credentials: callers with an equal keyring may get the same error.
    pub async fn resolve(
        &self,
        reference: &Reference,
        keyring: &Keyring,
        deadline: Instant,
    ) -> Result<String, Failure> {
        let outcome = self.digest(reference, keyring, deadline).await;
        outcome.map_err(|failure| {
            let said = shown(&failure.cause);
            failure.in_words(said)
        })
    }

    /// Asks the mirrors and then the registry for the digest, until one of them has an answer. If neither a mirror nor
    /// the registry has an answer, the last result counts.
    async fn digest(&self, reference: &Reference, keyring: &Keyring, deadline: Instant) -> Result<String, Failure> {
        // Whatever the tag refers to now, and whether or not its registry answers.
        if let Some(locked) = self.hosts.locked(&reference.full_name()) {
            return Ok(locked);
        }
        let mut stops = self.hosts.route(&reference.host, &reference.repository)?.into_iter();
        let mut passed = Vec::new();
        while let Some(stop) = stops.next() {
            let last = stops.len() == 0;
            // A mirror that hangs must leave time for the places after it.
            let share =
                deadline.saturating_duration_since(Instant::now()) / u32::try_from(stops.len() + 1).unwrap_or(1);
            let question = Question {
                upstream: &self.hosts.upstream_at(stop.host),
                repository: &stop.repository,
                wanted: Wanted::Image(&reference.tag),
                keyring,
                deadline: if last { deadline } else { Instant::now() + share },
                attempts: if last { ATTEMPTS } else { 1 },
            };
            match self.digest_at(&question).await {
                Err(failure) if !last => passed.push(format!("{}: {}", question.upstream.host(), failure.class)),
                Err(mut failure) if !passed.is_empty() => {
                    failure.cause = format!("{}; before it {}", failure.cause, passed.join(", "));
                    return Err(failure);
                }
                outcome => return outcome,
            }
        }
        Err(Failure::new(Class::Misconfigured, "there is no place to ask"))
    }

    async fn digest_at(&self, question: &Question<'_>) -> Result<String, Failure> {
        let upstream = question.upstream;
        let wrong = |error: ManifestError| {
            Failure::new(Class::Unavailable, format!("{} answered with {error}", upstream.host()))
        };
        let head = self.request(question, &Method::HEAD).await?;
        if head.status() == StatusCode::OK
            && let Some(digest) = manifest::of_head(head.headers()).map_err(wrong)?
        {
            return Ok(digest);
        }
        // Some registries answer HEAD without the digest, or not at all; then only the bytes can give it.
        if !matches!(head.status(), StatusCode::OK | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED) {
            return Err(question.refusal(head.status()));
        }
        let get = self.request(question, &Method::GET).await?;
        if get.status() != StatusCode::OK {
            return Err(question.refusal(get.status()));
        }
        manifest::of_get(get.headers(), get.body()).map_err(wrong)
    }

    /// Sends a request with authentication and retries; the answer may have any status.
    async fn request(&self, question: &Question<'_>, method: &Method) -> Result<Response<Bytes>, Failure> {
        let mut attempt = 1;
        loop {
            // Waiting for a registry that is known to be down would only cost the review its time.
            let answer = self.let_through(question, method).await?;
            let wait = match &answer {
                Ok(response) if is_temporary(response.status()) => retry_after(response.headers()),
                Err(failure) if failure.class == Class::Unavailable => None,
                _ => return answer,
            };
            let wait = wait.unwrap_or_else(|| jitter(RETRY_BASE * 2u32.pow(attempt)));
            // Waiting into the deadline would turn a known answer into a timeout.
            let left = question.deadline.saturating_duration_since(Instant::now());
            if attempt == question.attempts || wait.saturating_add(RETRY_BASE) > left {
                return answer;
            }
            // The registry demanded this wait.
            let _listening = Silence::listen();
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }
}

impl Registry {
    /// Sends a request if the registry's limiter permits it; else returns `Err`.
    async fn let_through(
        &self,
        question: &Question<'_>,
        method: &Method,
    ) -> Result<Result<Response<Bytes>, Failure>, Failure> {
        let upstream = question.upstream;
        let shut = |shut: Shut| {
            let unasked = matches!(shut, Shut::Broken { .. });
            let class = if unasked { Class::Unavailable } else { Class::Busy };
            Failure { unasked, ..Failure::new(class, format!("{} {shut}", upstream.host())) }
        };
        let mut pass = upstream.limiter.enter(question.deadline).await.map_err(shut)?;
        if pass.is_in_doubt() {
            // The answer about one image does not describe the others, so the registry itself is asked.
            pass = pass.probed(health(upstream, question.deadline).await).map_err(shut)?;
        }
        let silence = Silence::of_part();
        pass.watched(&silence);
        let answer = silence.watch(self.authenticated(question, method)).await;
        match &answer {
            Ok(response) if is_temporary(response.status()) => pass.sick(&format!("it answered {}", response.status())),
            Err(failure) if failure.class == Class::Unavailable => pass.sick(&shown(&failure.cause)),
            Err(failure) if failure.class.is_own_limit() => pass.untold(),
            _ => pass.well(),
        }
        Ok(answer)
    }
}

/// Checks whether the registry as a whole works, by requesting its API version. Every registry answers the request for
/// its API version, if only with 401 (OCI distribution specification, end-1). The health check sends no credentials.
async fn health(upstream: &Upstream<'_>, deadline: Instant) -> Health {
    let long_enough = Instant::now() + VERSION_TIME;
    let Ok(request) = exchange::request(&Method::GET, "/v2/").body(Bytes::new()) else { return Health::Unknown };
    match upstream.client.fetch(request, VERSION_BYTES_MAX, deadline.min(long_enough)).await {
        Ok(response) if is_temporary(response.status()) => Health::Sick(format!("it answered {}", response.status())),
        // An answer of any size is one.
        Ok(_) | Err(wire::Error::TooLarge { .. }) => Health::Well,
        // `Crowded` is a limit of ours; and in a few milliseconds a slow registry looks like a dead one.
        Err(wire::Error::Crowded) => Health::Unknown,
        Err(wire::Error::Deadline { .. }) if deadline < long_enough => Health::Unknown,
        Err(error) => Health::Sick(shown(&error.to_string())),
    }
}

impl Question<'_> {
    /// The failure that follows from a status other than success.
    fn refusal(&self, status: StatusCode) -> Failure {
        let (host, Self { repository, wanted, .. }) = (self.upstream.host(), self);
        let class = match status {
            StatusCode::NOT_FOUND => Class::NotFound,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Class::Auth,
            status if is_temporary(status) => Class::Unavailable,
            _ => Class::Misconfigured,
        };
        let cause = match class {
            Class::NotFound => format!("{host} has no {}", wanted.of(repository)),
            Class::Auth => format!("{host} answered {status}; check {}", self.upstream.key("username")),
            _ => format!("{host} answered {status}"),
        };
        Failure::new(class, cause)
    }
}

/// Returns `text` without control characters, cut to [`CAUSE_CHARS_MAX`].
fn shown(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(CAUSE_CHARS_MAX).collect()
}

fn is_temporary(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
}

/// The delay in the header `Retry-After`, which must be a number of seconds. Dates in `Retry-After` are ignored,
/// because they need equal clocks. The caller compares the returned delay with its deadline.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

fn jitter(most: Duration) -> Duration {
    most.mul_f64(rand::rng().random_range(0.5..1.0))
}
