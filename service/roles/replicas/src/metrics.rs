//! The metrics of the API, whose labels have closed lists of values: verbs, statuses and limits.

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Histogram edges in seconds for the time until an answer. An answer from the cache takes microseconds; a write waits
/// for the API server.
const DURATION_EDGES_S: [f64; 12] = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCall {
    verb: &'static str,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByLimit {
    limit: &'static str,
}

#[derive(Debug, Clone)]
pub struct Metrics {
    calls: Family<ByCall, Counter>,
    limited: Family<ByLimit, Counter>,
    pub duration: Histogram,
    pub in_flight: Gauge,
    pub conflicts: Counter,
    pub panics: Counter,
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            calls: Family::default(),
            limited: Family::default(),
            duration: Histogram::new(DURATION_EDGES_S),
            in_flight: Gauge::default(),
            conflicts: Counter::default(),
            panics: Counter::default(),
        };
        let sub = registry.sub_registry_with_prefix("longhaul_replicas");
        sub.register("calls", "Calls answered, by verb and HTTP status", metrics.calls.clone());
        sub.register("limited", "Calls that came too soon, by whose limit it was", metrics.limited.clone());
        sub.register("duration_seconds", "Time from call to answer", metrics.duration.clone());
        sub.register("in_flight", "Calls in work", metrics.in_flight.clone());
        sub.register("write_conflicts", "Writes tried again after a conflict", metrics.conflicts.clone());
        sub.register("panics", "Calls that panicked", metrics.panics.clone());
        metrics
    }

    /// Counts an answered call; `verb` is from a closed list.
    pub fn answered(&self, verb: &'static str, status: StatusCode) {
        self.calls.get_or_create(&ByCall { verb, code: status.as_u16() }).inc();
    }

    /// Counts a call that was refused because of `limit`: `client`, `all` or `in-flight`.
    pub fn limited(&self, limit: &'static str) {
        self.limited.get_or_create(&ByLimit { limit }).inc();
    }
}
