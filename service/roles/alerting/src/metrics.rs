//! The metrics of alerting.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The labels of the alert counter: the receiver, and an outcome from a closed list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Labels {
    receiver: String,
    outcome: &'static str,
}

#[derive(Debug, Default)]
pub struct Metrics {
    alerts: Family<Labels, Counter>,
    pub waiting: Gauge,
    pub lost: Counter,
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Arc<Self> {
        let metrics = Self::default();
        let sub = registry.sub_registry_with_prefix("longhaul_alerting");
        sub.register("alerts", "Alerts by receiver and what became of them", metrics.alerts.clone());
        sub.register("waiting", "Alerts that wait for a receiver", metrics.waiting.clone());
        sub.register("letters_lost", "Dead letters that no file took", metrics.lost.clone());
        Arc::new(metrics)
    }

    /// Counts an alert; `outcome` is `sent`, `failed`, `full` (the queue was full) or `collapsed`.
    pub fn count(&self, receiver: &str, outcome: &'static str) {
        self.alerts.get_or_create(&Labels { receiver: receiver.to_owned(), outcome }).inc();
    }
}
