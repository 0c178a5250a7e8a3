//! The metrics of admission, whose labels have closed lists of values.

use std::sync::Arc;

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use service_registry::verdicts::Class;

/// Histogram edges in seconds: kube-apiserver's own edges for webhooks (5 ms to 25 s), and finer edges below and
/// between them.
const DURATION_EDGES_S: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0];

/// The label of the review counters; its values are a closed list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabel {
    outcome: &'static str,
}

/// The label of the failure counters; its values are the failure classes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ClassLabel {
    class: &'static str,
}

/// The label of the request counter: the HTTP status of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CodeLabel {
    code: u16,
}

pub struct Metrics {
    reviews: Family<OutcomeLabel, Counter>,
    failures: Family<ClassLabel, Counter>,
    let_in: Family<ClassLabel, Counter>,
    pub panics: Counter,
    requests: Family<CodeLabel, Counter>,
    pub duration: Histogram,
    pub in_flight: Gauge,
    pub cache_hits: Counter,
    pub cache_misses: Counter,
    pub joined: Counter,
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Arc<Self> {
        let metrics = Self {
            reviews: Family::default(),
            failures: Family::default(),
            let_in: Family::default(),
            panics: Counter::default(),
            requests: Family::default(),
            duration: Histogram::new(DURATION_EDGES_S),
            in_flight: Gauge::default(),
            cache_hits: Counter::default(),
            cache_misses: Counter::default(),
            joined: Counter::default(),
        };
        let sub = registry.sub_registry_with_prefix("longhaul_admission");
        sub.register("reviews", "Reviews answered, by outcome", metrics.reviews.clone());
        sub.register("image_failures", "Images without a digest, by class", metrics.failures.clone());
        sub.register("images_let_in", "Images let in without a digest, by class", metrics.let_in.clone());
        sub.register("panics", "Parts of reviews that panicked", metrics.panics.clone());
        sub.register("http_requests", "Requests answered, by HTTP status", metrics.requests.clone());
        sub.register("duration_seconds", "Time from request to answer", metrics.duration.clone());
        sub.register("in_flight", "Reviews in work", metrics.in_flight.clone());
        sub.register("cache_hits", "Images answered from the cache", metrics.cache_hits.clone());
        sub.register("cache_misses", "Images asked at a registry", metrics.cache_misses.clone());
        sub.register("joined", "Images that joined a question under way", metrics.joined.clone());
        Arc::new(metrics)
    }

    pub fn answered(&self, status: StatusCode) {
        self.requests.get_or_create(&CodeLabel { code: status.as_u16() }).inc();
    }

    pub fn reviewed(&self, outcome: &'static str) {
        self.reviews.get_or_create(&OutcomeLabel { outcome }).inc();
    }
    pub fn failed(&self, class: Class) {
        self.failures.get_or_create(&ClassLabel { class: class.name() }).inc();
    }

    pub fn let_in(&self, class: Class) {
        self.let_in.get_or_create(&ClassLabel { class: class.name() }).inc();
    }
}
