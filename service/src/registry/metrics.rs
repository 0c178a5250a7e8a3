//! What the registry client counts.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The one label of the counters; its values are closed lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabel {
    outcome: &'static str,
}

/// The counters.
#[derive(Default)]
pub struct Metrics {
    reloads: Family<OutcomeLabel, Counter>,
    pull_secret_reads: Family<OutcomeLabel, Counter>,
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
        let help = "Pull secrets and service accounts read from the API server, by what came of it";
        sub.register("pull_secret_reads", help, metrics.pull_secret_reads.clone());
        Arc::new(metrics)
    }

    /// Counts a changed file whose new content is used.
    pub fn replaced(&self) {
        self.reloads.get_or_create(&OutcomeLabel { outcome: "replaced" }).inc();
    }

    /// Counts a pull secret or service account that was read, or was not.
    pub fn pull_secret_read(&self, outcome: &'static str) {
        self.pull_secret_reads.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Counts a changed file whose content cannot be used.
    pub fn refused(&self) {
        self.reloads.get_or_create(&OutcomeLabel { outcome: "refused" }).inc();
    }
}
