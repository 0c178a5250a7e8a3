//! The metrics of the watcher role. The label values are the names of configured actions, and closed lists.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Outcome {
    action: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Of {
    action: String,
}

#[derive(Debug, Default, Clone)]
pub struct Metrics {
    events: Family<Outcome, Counter>,
    calls: Family<Outcome, Counter>,
    waiting: Family<Of, Gauge>,
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let sub = registry.sub_registry_with_prefix("longhaul_watcher");
        sub.register(
            "events",
            "Events of watched objects, by action and whether they were due",
            metrics.events.clone(),
        );
        sub.register("calls", "Calls of receivers and hooks, by action and result", metrics.calls.clone());
        sub.register("waiting", "Events or objects that wait for a receiver or hook", metrics.waiting.clone());
        metrics
    }

    /// Counts an event: `due` (it matched the filter) or `filtered`.
    pub fn event(&self, action: &str, outcome: &'static str) {
        self.events.get_or_create(&Outcome { action: action.to_owned(), outcome }).inc();
    }

    /// Counts a call: `taken`, `refused` (not repeated), `failed` (repeated later), `gone` (the object is gone) or
    /// `given-up` (no attempts are left).
    pub fn call(&self, action: &str, outcome: &'static str) {
        self.calls.get_or_create(&Outcome { action: action.to_owned(), outcome }).inc();
    }

    /// The number of events or objects that wait for an action.
    pub fn waiting(&self, action: &str) -> Gauge {
        self.waiting.get_or_create(&Of { action: action.to_owned() }).clone()
    }
}
