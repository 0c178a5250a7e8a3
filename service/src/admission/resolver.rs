//! From a reference to its digest: cache, single flight, registry.
//!
//! Owns the digest cache and its lifetimes. No lock is held while a registry is asked.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::pipeline::Metrics;
use crate::config;
use crate::registry::{Reference, Registry};
use crate::verdicts::{Cache, Class, Failure, Flights};

/// What a review says when a part of it panicked; where and why is in the log, by the panic itself.
pub const DEFECT: &str = "a task of this review panicked, which is a defect of this service: see its log";
/// Longest time for one image, whatever the configuration says: no API server waits longer for a webhook.
const LONGEST: Duration = Duration::from_secs(30);

type Outcome = Result<Arc<str>, Failure>;

/// Whoever knows digests. The registry in production, a script in tests.
pub trait Source: Send + Sync + 'static {
    /// The digest of `reference`, at the latest at `deadline`.
    fn digest(self: Arc<Self>, reference: Reference, deadline: Instant) -> BoxFuture<'static, Result<String, Failure>>;
}

impl Source for Registry {
    fn digest(self: Arc<Self>, reference: Reference, deadline: Instant) -> BoxFuture<'static, Result<String, Failure>> {
        async move { self.resolve(&reference, deadline).await }.boxed()
    }
}

/// Digests of images, asked for as seldom as possible.
pub struct Resolver {
    source: Arc<dyn Source>,
    timeout: Duration,
    ttl: Duration,
    cache: Arc<Mutex<Cache<Outcome>>>,
    flights: Flights<Outcome>,
    metrics: Arc<Metrics>,
}

impl Resolver {
    /// A resolver that has asked nothing yet.
    pub fn new(settings: &config::Resolve, source: Arc<dyn Source>, metrics: Arc<Metrics>) -> Self {
        Self {
            source,
            timeout: settings.timeout.min(LONGEST),
            ttl: settings.cache_ttl,
            cache: Arc::new(Mutex::new(Cache::new(settings.cache_max_bytes))),
            flights: Flights::new(),
            metrics,
        }
    }

    /// The digest of `reference` before `deadline`.
    pub async fn resolve(&self, reference: Reference, deadline: Instant) -> Outcome {
        // The credential is a function of the host within one configuration, so the reference alone is the key.
        let key = reference.canonical();
        if let Some(known) = self.cache.lock().value(&key, std::time::Instant::now()) {
            self.metrics.cache_hits.inc();
            return known;
        }
        let (flight, started) = self.flights.join(&key, || self.ask(key.clone(), reference));
        if started {
            self.metrics.cache_misses.inc()
        } else {
            self.metrics.joined.inc()
        };
        timeout_at(deadline, flight).await.unwrap_or_else(|_| {
            Err(Failure::new(Class::Unavailable, "no answer from the registry before the deadline of this review"))
        })
    }

    /// The question as a flight: it has the time of one resolution, whatever the deadline of the caller that started it.
    fn ask(&self, key: String, reference: Reference) -> BoxFuture<'static, Outcome> {
        let (source, cache, ttl) = (Arc::clone(&self.source), Arc::clone(&self.cache), self.ttl);
        let metrics = Arc::clone(&self.metrics);
        let deadline = Instant::now() + self.timeout;
        // A panic would reach every review that waits for this image; as a failure it is answered by each one's rule.
        let asked = AssertUnwindSafe(async move { source.digest(reference, deadline).await }).catch_unwind();
        async move {
            let outcome = match timeout_at(deadline, asked).await {
                Ok(Ok(answer)) => answer.map(Arc::<str>::from),
                Ok(Err(_panic)) => {
                    metrics.panics.inc();
                    Err(Failure::new(Class::Internal, DEFECT))
                }
                Err(_elapsed) => Err(Failure::new(Class::Unavailable, "no answer from the registry in time")),
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
