//! The counts of the keeping of certificates. The label is of a closed list.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::step::Step;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStep {
    step: &'static str,
}

/// Steps that were done and turns that failed, of this process.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    steps: Family<ByStep, Counter>,
    /// Turns that failed.
    pub failures: Counter,
}

impl Metrics {
    /// Counters at zero, registered under the prefix `longhaul_certificates`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let sub = registry.sub_registry_with_prefix("longhaul_certificates");
        sub.register("steps", "Steps of the rotation of own certificates, by step", metrics.steps.clone());
        sub.register("failures", "Looks at own certificates that failed", metrics.failures.clone());
        metrics
    }

    pub fn done(&self, step: Step) {
        self.steps.get_or_create(&ByStep { step: step.name() }).inc();
    }
}
