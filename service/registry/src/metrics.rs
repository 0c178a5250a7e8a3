//! The metrics of the registry client.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::wanted::Wanted;

/// The one label of the counters; its values are closed lists.
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
    /// One for each kind of [`Wanted`], in the order of [`PIECES`].
    requests: [Counter; PIECES.len()],
}

/// Kinds of requests to registries.
const PIECES: [&str; 4] = ["image", "manifest", "referrers", "blob"];

/// The one label of the request counter; its values are [`PIECES`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PieceLabel {
    piece: &'static str,
}

/// The registry; its values are the configured hosts and `other`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RegistryLabel {
    registry: String,
}

/// A change of a breaker; `to` is `open` or `closed`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct TransitionLabel {
    registry: String,
    to: &'static str,
}

/// The metrics of a breaker, shared by all breakers of the same name.
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

    /// Counts an open breaker that was dropped.
    pub fn gone(&self) {
        self.open.dec();
    }

    /// The number of open breakers.
    #[cfg(test)]
    pub fn open(&self) -> i64 {
        self.open.get()
    }

    /// The numbers of openings and closings.
    #[cfg(test)]
    pub fn transitions(&self) -> (u64, u64) {
        (self.opened.get(), self.closed.get())
    }
}

impl Metrics {
    /// Registers counters at zero, under the prefix `longhaul_registry`.
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

    /// Counts a request for `wanted`.
    pub fn request(&self, wanted: Wanted<'_>) {
        let index = match wanted {
            Wanted::Image(_) => 0,
            Wanted::Manifest(_) => 1,
            Wanted::Referrers(_) => 2,
            Wanted::Blob { .. } | Wanted::Part { .. } => 3,
        };
        self.requests[index].inc();
    }

    /// Counts a changed file whose new content is used.
    pub fn replaced(&self) {
        self.reloads.get_or_create(&OutcomeLabel { outcome: "replaced" }).inc();
    }

    /// The metrics of the breakers of `registry`; at zero from now on, so that an alert on an increase sees the first
    /// one.
    pub fn breaker(&self, registry: &str) -> Breaker {
        let counter = |to| {
            let label = TransitionLabel { registry: registry.to_owned(), to };
            self.transitions.get_or_create(&label).clone()
        };
        let open = self.open.get_or_create(&RegistryLabel { registry: registry.to_owned() }).clone();
        Breaker { open, opened: counter("open"), closed: counter("closed") }
    }

    /// Forgets the breakers of a replaced configuration, whose registries may be gone.
    pub fn forget_breakers(&self) {
        self.open.clear();
        self.transitions.clear();
    }

    /// Counts the reading of a pull secret or service account, by outcome.
    pub fn pull_secret_read(&self, outcome: &'static str) {
        self.pull_secret_reads.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Counts a changed file whose content cannot be used.
    pub fn refused(&self) {
        self.reloads.get_or_create(&OutcomeLabel { outcome: "refused" }).inc();
    }
}
