//! The metrics of the certificate rotation, whose labels have closed lists of values.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::step::Step;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStep {
    step: &'static str,
}

/// Counters of finished rotation steps and of failed checks in this process.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    steps: Family<ByStep, Counter>,
    pub failures: Counter,
}

impl Metrics {
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
