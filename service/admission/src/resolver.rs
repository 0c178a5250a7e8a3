//! Looks up the digest of an image reference in these steps: pull secrets, cache, lookup shared with other reviews,
//! registry.
//!
//! This module owns the cache of digests. No lock is held during a request to a registry.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::metrics::Metrics;
use super::walk::Pullers;
use crate::config;
use service_registry::verdicts::{Cache, Class, Failure, Flights, Joined};
use service_registry::{Brought, Keyring, PullSecrets, Reference, Registry};

/// The message about a panic in a review. The log states the code location and the reason of the panic.
pub const DEFECT: &str = "a task of this review panicked, which is a defect of this service: see its log";
/// Longest time for the lookup of one image, because no API server waits longer for a webhook.
const LONGEST: Duration = Duration::from_secs(30);

type Outcome = Result<Arc<str>, Failure>;

/// A source of digests: the registry client, or a script in tests.
pub trait Source: Send + Sync + 'static {
    /// Looks up the digest of `reference` with the credentials in `keyring`, by `deadline`.
    fn digest(
        self: Arc<Self>,
        reference: Reference,
        keyring: Keyring,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<String, Failure>>;

    /// The credentials in `keyring` on which the answer may depend; [`Self::digest`] receives exactly these
    /// credentials.
    fn relevant(&self, _reference: &Reference, _keyring: &Keyring) -> Keyring {
        Keyring::default()
    }
}

impl Source for Registry {
    fn digest(
        self: Arc<Self>,
        reference: Reference,
        keyring: Keyring,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<String, Failure>> {
        async move { self.resolve(&reference, &keyring, deadline).await }.boxed()
    }

    fn relevant(&self, reference: &Reference, keyring: &Keyring) -> Keyring {
        Self::relevant(self, reference, keyring)
    }
}

/// Looks up digests with as few requests to registries as possible.
pub struct Resolver {
    source: Arc<dyn Source>,
    pull_secrets: Option<PullSecrets>,
    timeout: Duration,
    ttl: Duration,
    cache: Arc<Mutex<Cache<Outcome>>>,
    flights: Flights<Outcome>,
    metrics: Arc<Metrics>,
}

impl Resolver {
    pub fn new(settings: &config::Resolve, source: Arc<dyn Source>, metrics: Arc<Metrics>) -> Self {
        Self {
            source,
            pull_secrets: None,
            timeout: settings.timeout.min(LONGEST),
            ttl: settings.cache_ttl,
            cache: Arc::new(Mutex::new(Cache::new(settings.cache_max_bytes))),
            flights: Flights::new(),
            metrics,
        }
    }

    #[must_use]
    pub fn with_pull_secrets(mut self, pull_secrets: Option<PullSecrets>) -> Self {
        self.pull_secrets = pull_secrets;
        self
    }

    /// Whether lookups use credentials of Pods.
    pub fn reads_pull_secrets(&self) -> bool {
        self.pull_secrets.is_some()
    }

    /// The credentials of an object's Pods in `namespace`; `None` if such credentials are not used.
    pub async fn brought(&self, namespace: Option<&str>, pullers: &Pullers, deadline: Instant) -> Option<Brought> {
        let pull_secrets = self.pull_secrets.as_ref()?;
        let deadline = deadline.min(Instant::now() + self.timeout);
        Some(pull_secrets.brought(namespace?, &pullers.accounts, &pullers.secrets, deadline).await)
    }

    /// The cached result for the reference `name`, looked up without credentials of a Pod.
    pub fn known(&self, name: &str, now: std::time::Instant) -> Option<Outcome> {
        let known = self.cache.lock().value(name, now)?;
        self.metrics.cache_hits.inc();
        Some(known)
    }

    /// Looks up the digest of `reference` (as text `name`) by `deadline`, for Pods with the credentials `brought`.
    pub async fn resolve(
        &self,
        reference: &Reference,
        name: &str,
        brought: Option<&Brought>,
        deadline: Instant,
    ) -> Outcome {
        let Some(brought) = brought else {
            return self.known_or_asked(reference, name.to_owned(), Keyring::default(), deadline).await;
        };
        let keyring = self.source.relevant(reference, &brought.keyring);
        // A result seen with one tenant's credentials is shared only with holders of the same. Credentials of the
        // configuration are shared by all.
        let key = keyring.fingerprint().map_or_else(|| name.to_owned(), |of| format!("{name} {of}"));
        let outcome = self.known_or_asked(reference, key, keyring.clone(), deadline).await;
        // Explained here and not by the source: other callers with equal credentials wait for the same answer, and have
        // theirs from elsewhere.
        outcome.map_err(|failure| brought.explain(failure, &keyring))
    }

    async fn known_or_asked(&self, reference: &Reference, key: String, keyring: Keyring, deadline: Instant) -> Outcome {
        if let Some(known) = self.known(&key, std::time::Instant::now()) {
            return known;
        }
        if deadline <= Instant::now() {
            return Err(Failure::new(Class::Busy, "no time was left to ask its registry"));
        }
        let Joined { flight, started, silence } =
            self.flights.join(&key, || self.ask(key.clone(), reference.clone(), keyring));
        if started {
            self.metrics.cache_misses.inc()
        } else {
            self.metrics.joined.inc()
        };
        let late = |_| Err(Failure::late(&silence, "no answer from the registry before the deadline of this review"));
        timeout_at(deadline, flight).await.unwrap_or_else(late)
    }

    /// A lookup that several callers can share. The shared lookup's time limit does not depend on the deadline of the
    /// caller that started it.
    fn ask(&self, key: String, reference: Reference, keyring: Keyring) -> BoxFuture<'static, Outcome> {
        let (source, cache, ttl) = (Arc::clone(&self.source), Arc::clone(&self.cache), self.ttl);
        let metrics = Arc::clone(&self.metrics);
        let deadline = Instant::now() + self.timeout;
        // A panic would reach every review that waits for this image; as a failure, each review's rule handles it.
        let asked = AssertUnwindSafe(async move { source.digest(reference, keyring, deadline).await }).catch_unwind();
        async move {
            let outcome = match timeout_at(deadline, asked).await {
                Ok(Ok(answer)) => answer.map(Arc::<str>::from),
                Ok(Err(_panic)) => {
                    metrics.panics.inc();
                    Err(Failure::new(Class::Internal, DEFECT))
                }
                Err(_elapsed) => Err(Failure::late_here("no answer from the registry in time")),
            };
            let (ttl, bytes) = match &outcome {
                Ok(digest) => (Some(ttl), digest.len()),
                Err(failure) => (failure.class.cache_ttl().map(|definite| definite.min(ttl)), failure.cause.len()),
            };
            if let Some(ttl) = ttl {
                cache.lock().insert(&key, outcome.clone(), bytes, ttl, std::time::Instant::now());
            }
            outcome
        }
        .boxed()
    }
}
