//! Gets verdicts from validators with as few calls as possible.
//!
//! This module owns the cache of verdicts, and lets equal calls at the same time share one call of the validator. A
//! verdict's key contains the image's name and digest, the rule with its trusted keys, and the credentials. So a
//! verdict is never used after the tag moved or the rule or key changed. Results without certainty, such as timeouts,
//! are not stored. No lock is held during a call of a validator.

mod written;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::{Instant, timeout_at};

use super::{Answer, Approval, Question, Validator};
use crate::config;
use service_core::known::Knowledge;
use service_registry::verdicts::{Cache, Class, Failure, Flights, Joined};

/// Longest time for the check of one image, because no API server waits longer for a webhook.
const LONGEST: Duration = Duration::from_secs(30);
/// Histogram edges in seconds for finding and checking signatures: from a near registry to a registry that hangs.
const DURATION_EDGES_S: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
const DEFECT: &str = "a validator panicked, which is a defect of this service: see its log";

/// The label of the verdict counter: `verified` or a failure class.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ResultLabel {
    result: &'static str,
}

/// The label of the counter of images for which no validator was called; its value is `child`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReasonLabel {
    reason: &'static str,
}

pub struct Metrics {
    pub verdicts: Family<ResultLabel, Counter>,
    pub skipped: Family<ReasonLabel, Counter>,
    cache_hits: Counter,
    cache_misses: Counter,
    joined: Counter,
    shared: Counter,
    duration: Histogram,
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Arc<Self> {
        let metrics = Self {
            verdicts: Family::default(),
            skipped: Family::default(),
            cache_hits: Counter::default(),
            cache_misses: Counter::default(),
            joined: Counter::default(),
            shared: Counter::default(),
            duration: Histogram::new(DURATION_EDGES_S),
        };
        let sub = registry.sub_registry_with_prefix("longhaul_validation");
        let help = "Verdicts about images in reviews, remembered ones included, by what they say";
        sub.register("verdicts", help, metrics.verdicts.clone());
        sub.register("skipped", "Images let in without a verdict, by reason", metrics.skipped.clone());
        sub.register("cache_hits", "Verdicts that were remembered", metrics.cache_hits.clone());
        sub.register("cache_misses", "Verdicts that a validator was asked for", metrics.cache_misses.clone());
        sub.register("joined", "Verdicts that were waited for together with others", metrics.joined.clone());
        sub.register("shared", "Verdicts that another process had found", metrics.shared.clone());
        let help = "Time from asking a validator to its answer";
        sub.register("duration_seconds", help, metrics.duration.clone());
        Arc::new(metrics)
    }

    pub fn answered(&self, answer: &Answer) {
        let result = answer.as_ref().map_or_else(|failure| failure.class.name(), |_| "verified");
        self.verdicts.get_or_create(&ResultLabel { result }).inc();
    }

    pub fn skip(&self, reason: &'static str) {
        self.skipped.get_or_create(&ReasonLabel { reason }).inc();
    }
}

pub struct Approvals {
    ttl: Duration,
    timeout: Duration,
    cache: Arc<Mutex<Cache<Answer>>>,
    flights: Flights<Answer>,
    shared: Option<Arc<dyn Knowledge>>,
    metrics: Arc<Metrics>,
}

impl Approvals {
    /// An empty cache of verdicts. One call of a validator may take as long as the lookup of an image may take.
    pub fn new(settings: &config::Verdicts, resolve: &config::Resolve, metrics: Arc<Metrics>) -> Self {
        Self {
            ttl: settings.ttl,
            timeout: resolve.timeout.min(LONGEST),
            cache: Arc::new(Mutex::new(Cache::new(settings.max_bytes))),
            flights: Flights::new(),
            shared: None,
            metrics,
        }
    }

    /// Shares verdicts with other processes through `shared`.
    #[must_use]
    pub fn sharing(mut self, shared: Option<Arc<dyn Knowledge>>) -> Self {
        self.shared = shared;
        self
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The cached answer for Pods without credentials of their own.
    pub fn known(&self, validator: &dyn Validator, host: &str, repository: &str, digest: &str) -> Option<Answer> {
        self.remembered(&key(validator, host, repository, digest, None))
    }

    fn remembered(&self, key: &str) -> Option<Answer> {
        let known = self.cache.lock().value(key, std::time::Instant::now())?;
        self.metrics.cache_hits.inc();
        Some(known)
    }

    /// Returns the answer of `validator` about the image before the deadline of `question`.
    pub async fn ask(&self, validator: &Arc<dyn Validator>, question: Question) -> Answer {
        let fingerprint = question.keyring.fingerprint();
        let Question { host, repository, digest, deadline, .. } = &question;
        let (key, deadline) = (key(&**validator, host, repository, digest, fingerprint.as_deref()), *deadline);
        if let Some(known) = self.remembered(&key) {
            return known;
        }
        let Joined { flight, started, silence } =
            self.flights.join(&key, || self.flight(key.clone(), validator, question));
        if started {
            self.metrics.cache_misses.inc()
        } else {
            self.metrics.joined.inc()
        };
        timeout_at(deadline, flight).await.unwrap_or_else(|_| {
            Err(Failure::late(&silence, "no verdict on its signatures before the deadline of this review"))
        })
    }

    /// A call of a validator that several callers can share. The shared call's time limit does not depend on the
    /// deadline of the caller that started it.
    fn flight(
        &self,
        key: String,
        validator: &Arc<dyn Validator>,
        mut question: Question,
    ) -> BoxFuture<'static, Answer> {
        let ttl = validator.ttl_max().map_or(self.ttl, |most| most.min(self.ttl));
        let (cache, metrics) = (Arc::clone(&self.cache), Arc::clone(&self.metrics));
        let validator = Arc::clone(validator);
        let deadline = Instant::now() + self.timeout;
        question.deadline = deadline;
        // A panic would reach every review that waits for this image; as a failure, each review's rule handles it.
        let asked = AssertUnwindSafe(async move { validator.validate(question).await }).catch_unwind();
        let shared = self.shared.clone();
        async move {
            if let Some((answer, life)) = said_elsewhere(shared.as_deref(), &key, deadline).await {
                metrics.shared.inc();
                let life = life.min(life_of(&answer, ttl).unwrap_or_default());
                cache.lock().insert(&key, answer.clone(), held_bytes(&answer), life, std::time::Instant::now());
                return answer;
            }
            let started = Instant::now();
            let answer = match timeout_at(deadline, asked).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_panic)) => Err(Failure::new(Class::Internal, DEFECT)),
                Err(_elapsed) => Err(Failure::late_here("no verdict on its signatures in time")),
            };
            metrics.duration.observe(started.elapsed().as_secs_f64());
            if let Some(life) = life_of(&answer, ttl) {
                if let Some((shared, text)) = shared.zip(written::write(&answer)) {
                    shared.keep(&key, text, life);
                }
                cache.lock().insert(&key, answer.clone(), held_bytes(&answer), life, std::time::Instant::now());
            }
            answer
        }
        .boxed()
    }
}

fn key(validator: &dyn Validator, host: &str, repository: &str, digest: &str, credential: Option<&str>) -> String {
    let generation = validator.generation();
    let parts = [host, "/", repository, "@", digest, " ", &*generation, " ", credential.unwrap_or_default()];
    parts.concat()
}

/// An answer that another process stored under the same key, and its remaining lifetime.
async fn said_elsewhere(shared: Option<&dyn Knowledge>, key: &str, deadline: Instant) -> Option<(Answer, Duration)> {
    let known = shared?.known(key, deadline).await?;
    Some((written::read(&known.value)?, known.life))
}

/// The time for which an answer may be stored; `None` for an uncertain answer.
fn life_of(answer: &Answer, ttl: Duration) -> Option<Duration> {
    match answer {
        Ok(_) => Some(ttl),
        Err(failure) => failure.class.cache_ttl().map(|definite| definite.min(ttl)),
    }
}

fn held_bytes(answer: &Answer) -> usize {
    match answer {
        Ok(approval) => bytes_of(approval),
        Err(failure) => failure.cause.len(),
    }
}

fn bytes_of(approval: &Approval) -> usize {
    let signers = approval.signers.iter();
    size_of::<Approval>()
        + signers.map(|signer| size_of_val(signer) + signer.name.len() + signer.evidence.len()).sum::<usize>()
}

#[cfg(test)]
mod tests;
