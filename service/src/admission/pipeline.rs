//! The steps of a review in order: exempt, walk, resolve in parallel, decide.
//!
//! Owns the metrics of admission. Takes a parsed request and a deadline; knows nothing of HTTP.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::decide::{Outcomes, decide};
use super::exempt;
use super::resolver::Resolver;
use super::review::{Ask, Decision};
use super::walk;

/// kube-apiserver's own edges for webhooks (5 ms to 25 s), with finer ones below and between, in seconds.
const DURATION_EDGES_S: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0];

/// The one label of the review counters; its values are a closed list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabel {
    outcome: &'static str,
}

/// The one label of the failure counters; its values are the error classes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ClassLabel {
    class: &'static str,
}

/// What admission counts.
pub struct Metrics {
    /// Reviews by outcome: allowed, patched, exempt, denied.
    pub reviews: Family<OutcomeLabel, Counter>,
    /// Images without a digest by class.
    pub failures: Family<ClassLabel, Counter>,
    /// Requests that were no review, by HTTP status.
    pub refused: Family<OutcomeLabel, Counter>,
    /// Seconds from the head of a request to its answer.
    pub duration: Histogram,
    /// Reviews in work.
    pub in_flight: Gauge,
    /// Images answered from the cache.
    pub cache_hits: Counter,
    /// Images asked at a registry.
    pub cache_misses: Counter,
    /// Images that joined a question under way.
    pub joined: Counter,
}

impl Metrics {
    /// Counters at zero, registered under the prefix `longhaul_admission`.
    pub fn register(registry: &mut Registry) -> Arc<Self> {
        let metrics = Self {
            reviews: Family::default(),
            failures: Family::default(),
            refused: Family::default(),
            duration: Histogram::new(DURATION_EDGES_S),
            in_flight: Gauge::default(),
            cache_hits: Counter::default(),
            cache_misses: Counter::default(),
            joined: Counter::default(),
        };
        let sub = registry.sub_registry_with_prefix("longhaul_admission");
        sub.register("reviews", "Reviews answered, by outcome", metrics.reviews.clone());
        sub.register("image_failures", "Images without a digest, by class", metrics.failures.clone());
        sub.register("refused", "Requests that were no review, by HTTP status", metrics.refused.clone());
        sub.register("duration_seconds", "Time from request to answer", metrics.duration.clone());
        sub.register("in_flight", "Reviews in work", metrics.in_flight.clone());
        sub.register("cache_hits", "Images answered from the cache", metrics.cache_hits.clone());
        sub.register("cache_misses", "Images asked at a registry", metrics.cache_misses.clone());
        sub.register("joined", "Images that joined a question under way", metrics.joined.clone());
        Arc::new(metrics)
    }

    /// Counts a request refused with `status`.
    pub fn refuse(&self, status: &'static str) {
        self.refused.get_or_create(&OutcomeLabel { outcome: status }).inc();
    }

    fn review(&self, outcome: &'static str) {
        self.reviews.get_or_create(&OutcomeLabel { outcome }).inc();
    }
}

/// Decides about reviews.
pub struct Pipeline {
    resolver: Resolver,
    metrics: Arc<Metrics>,
    #[cfg(feature = "planted-bugs")]
    planted: Option<crate::planted::Bug>,
}

impl Pipeline {
    /// A pipeline over `resolver`.
    pub fn new(resolver: Resolver, metrics: Arc<Metrics>) -> Self {
        Self {
            resolver,
            metrics,
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }

    /// Switches a planted bug on.
    #[cfg(feature = "planted-bugs")]
    #[must_use]
    pub fn with_planted(mut self, bug: Option<crate::planted::Bug>) -> Self {
        self.planted = bug;
        self
    }

    /// What admission counts.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The decision about `ask`, at the latest at `deadline`.
    pub async fn review(&self, ask: &Ask<'_>, deadline: Instant) -> Decision {
        if let Some(reason) = exempt::by_request(ask).or_else(|| exempt::by_object(ask)) {
            self.metrics.review("exempt");
            return Decision::Allow { patch: None, reason: Some(reason) };
        }
        let found = match ask.object.map(|object| walk::walk(object.get())).transpose() {
            Ok(found) => found.unwrap_or_default(),
            Err(error) => {
                self.metrics.review("denied");
                return Decision::Deny { message: format!("the object cannot be examined: {error}") };
            }
        };
        let images: BTreeSet<_> = found.sites.iter().map(|site| site.image.as_str()).collect();
        let asked = images.into_iter().filter(|image| !self.resolver.leaves_alone(image));
        let resolved = asked.map(async |image| (image.to_owned(), self.resolver.resolve(image, deadline).await));
        let outcomes: Outcomes = join_all(resolved).await.into_iter().collect();
        for failure in outcomes.values().filter_map(|outcome| outcome.as_ref().err()) {
            self.metrics.failures.get_or_create(&ClassLabel { class: failure.class.name() }).inc();
        }
        let decision = self.spoil(decide(&found.sites, &outcomes));
        self.metrics.review(match &decision {
            Decision::Allow { patch: None, .. } => "allowed",
            Decision::Allow { patch: Some(_), .. } => "patched",
            Decision::Deny { .. } => "denied",
        });
        decision
    }

    #[cfg(not(feature = "planted-bugs"))]
    #[expect(clippy::unused_self, reason = "the build with planted bugs looks at itself here")]
    fn spoil(&self, decision: Decision) -> Decision {
        decision
    }

    #[cfg(feature = "planted-bugs")]
    fn spoil(&self, decision: Decision) -> Decision {
        match decision {
            Decision::Deny { .. } if self.planted == Some(crate::planted::Bug::WrongAllow) => {
                Decision::Allow { patch: None, reason: None }
            }
            decision => decision,
        }
    }
}
