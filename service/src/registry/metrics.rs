//! What the registry client counts.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The one label of the reload counter; its values are `replaced` and `refused`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabel {
    outcome: &'static str,
}

/// The counters.
#[derive(Default)]
pub struct Metrics {
    reloads: Family<OutcomeLabel, Counter>,
}

impl Metrics {
    /// Counters at zero, registered under the prefix `longhaul_registry`.
    pub fn register(registry: &mut Registry) -> Arc<Self> {
        let metrics = Self::default();
        for outcome in ["replaced", "refused"] {
            // Both exist from the start, so that an alert on an increase sees the first one.
            drop(metrics.reloads.get_or_create(&OutcomeLabel { outcome }));
        }
        let sub = registry.sub_registry_with_prefix("longhaul_registry");
        let help = "Changed files of registries (authorities, passwords), by whether the new content is used";
        sub.register("file_reloads", help, metrics.reloads.clone());
        Arc::new(metrics)
    }

    /// Counts a changed file whose new content is used.
    pub fn replaced(&self) {
        self.reloads.get_or_create(&OutcomeLabel { outcome: "replaced" }).inc();
    }

    /// Counts a changed file whose content cannot be used.
    pub fn refused(&self) {
        self.reloads.get_or_create(&OutcomeLabel { outcome: "refused" }).inc();
    }
}
