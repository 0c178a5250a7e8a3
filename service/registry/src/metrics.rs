//! The metrics of the registry client.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::wanted::Wanted;

/// The outcome label of counters; its values come from closed lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Default)]
pub struct Metrics {
    reloads: Family<OutcomeLabel, Counter>,
    pull_secret_reads: Family<OutcomeLabel, Counter>,
    open: Family<RegistryLabel, Gauge>,
    transitions: Family<TransitionLabel, Counter>,
    /// The request counters, one for each kind of [`Wanted`], in the order of [`PIECES`].
    requests: [Counter; PIECES.len()],
}

const PIECES: [&str; 4] = ["image", "manifest", "referrers", "blob"];

/// The label of the request counters; its values are [`PIECES`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PieceLabel {
    piece: &'static str,
}

/// The registry's label; its values are the configured hosts and `other`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RegistryLabel {
    registry: String,
}

/// The labels of a breaker's changes; `to` is `open` or `closed`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct TransitionLabel {
    registry: String,
    to: &'static str,
}

/// The metrics of all breakers with the same registry label.
#[derive(Debug, Clone, Default)]
pub struct Breaker {
    open: Gauge,
    opened: Counter,
    closed: Counter,
}

impl Breaker {
    pub fn opened(&self) {
        self.open.inc();
        self.opened.inc();
    }

    pub fn closed(&self) {
        self.open.dec();
        self.closed.inc();
    }

    /// Subtracts an open breaker, which was dropped, from the number of open breakers.
    pub fn gone(&self) {
        self.open.dec();
    }

    #[cfg(test)]
    pub fn open(&self) -> i64 {
        self.open.get()
    }

    /// How often breakers have opened, and how often they have closed.
    #[cfg(test)]
    pub fn transitions(&self) -> (u64, u64) {
        (self.opened.get(), self.closed.get())
    }
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Arc<Self> {
        let mut metrics = Self::default();
        for outcome in ["replaced", "refused"] {
            // Both exist from the start, so that an alert on an increase sees the first one.
            drop(metrics.reloads.get_or_create(&OutcomeLabel { outcome }));
        }
        let sub = registry.sub_registry_with_prefix("longhaul_registry");
        let help = "Changed files of registries (authorities, passwords), by whether the new content is used";
        sub.register("file_reloads", help, metrics.reloads.clone());
        let help = "Pull secrets and service accounts read from the API server, by outcome";
        sub.register("pull_secret_reads", help, metrics.pull_secret_reads.clone());
        sub.register("breakers_open", "Registries that are not asked for a while", metrics.open.clone());
        let help = "Changes between asking a registry and not asking it, by the new state";
        sub.register("breaker_transitions", help, metrics.transitions.clone());
        let requests = Family::<PieceLabel, Counter>::default();
        metrics.requests = PIECES.map(|piece| requests.get_or_create(&PieceLabel { piece }).clone());
        sub.register(
            "requests",
            "Requests to registries, by kind of request; without those to token services",
            requests,
        );
        Arc::new(metrics)
    }

    pub fn request(&self, wanted: Wanted<'_>) {
        let index = match wanted {
            Wanted::Image(_) => 0,
            Wanted::Manifest(_) => 1,
            Wanted::Referrers(_) => 2,
            Wanted::Blob { .. } | Wanted::Part { .. } => 3,
        };
        self.requests[index].inc();
    }

    /// Counts a changed file whose new content is in use.
    pub fn replaced(&self) {
        self.reloads.get_or_create(&OutcomeLabel { outcome: "replaced" }).inc();
    }

    /// The metrics of the breakers of `registry`. The metrics start at zero, so that an alert on an increase notices
    /// the first opening.
    pub fn breaker(&self, registry: &str) -> Breaker {
        let counter = |to| {
            let label = TransitionLabel { registry: registry.to_owned(), to };
            self.transitions.get_or_create(&label).clone()
        };
        let open = self.open.get_or_create(&RegistryLabel { registry: registry.to_owned() }).clone();
        Breaker { open, opened: counter("open"), closed: counter("closed") }
    }

    /// Resets the gauges of open breakers after a configuration was replaced, because their registries may be gone.
    pub fn forget_breakers(&self) {
        self.open.clear();
        self.transitions.clear();
    }

    /// Counts a read of a pull secret or service account, by outcome.
    pub fn pull_secret_read(&self, outcome: &'static str) {
        self.pull_secret_reads.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Counts a changed file that cannot be used.
    pub fn refused(&self) {
        self.reloads.get_or_create(&OutcomeLabel { outcome: "refused" }).inc();
    }
}
