//! The metrics of the shared cache.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The label of the counters of lookups and stores, with a closed list of values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Outcome {
    outcome: &'static str,
}

#[derive(Debug, Default)]
pub struct Metrics {
    asked: Family<Outcome, Counter>,
    kept: Family<Outcome, Counter>,
    /// 1 while there is a connection to Redis, else 0.
    pub connected: Gauge,
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Arc<Self> {
        let metrics = Self::default();
        let sub = registry.sub_registry_with_prefix("longhaul_shared_cache");
        sub.register("asked", "Verdicts that were looked for, by outcome", metrics.asked.clone());
        sub.register("kept", "Verdicts that were to be kept, by outcome", metrics.kept.clone());
        sub.register("connected", "1 while there is a connection", metrics.connected.clone());
        Arc::new(metrics)
    }

    /// Counts a lookup: `hit`, `miss`, `refused` (wrong authentication code), `failed` (late or invalid) or `away` (no
    /// connection).
    pub fn count(&self, outcome: &'static str) {
        self.asked.get_or_create(&Outcome { outcome }).inc();
    }

    /// Counts a value to store: `kept`, `failed` (late, or Redis lacks memory or forbids writes), `away` (no
    /// connection), `full` (too many were waiting) or `too-large`.
    pub fn kept(&self, outcome: &'static str) {
        self.kept.get_or_create(&Outcome { outcome }).inc();
    }

    #[cfg(test)]
    pub fn asked_count(&self, outcome: &'static str) -> u64 {
        self.asked.get_or_create(&Outcome { outcome }).get()
    }

    /// The number of values to store that had this outcome.
    #[cfg(test)]
    pub fn kept_count(&self, outcome: &'static str) -> u64 {
        self.kept.get_or_create(&Outcome { outcome }).get()
    }
}
