//! The metrics of watches. All watches of a process share one set, whichever roles they belong to.

use std::borrow::Cow;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// A label with a closed list of values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Label {
    kind: &'static str,
}

impl Label {
    pub fn new(kind: &'static str) -> Self {
        Self { kind }
    }
}

/// Labels of a watch: its resource, and another label with a closed list of values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WatchLabel {
    pub resource: Cow<'static, str>,
    pub kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ResourceLabel {
    pub resource: Cow<'static, str>,
}

#[derive(Debug, Default, Clone)]
pub struct Metrics {
    pub events: Family<WatchLabel, Counter>,
    pub relists: Family<WatchLabel, Counter>,
    pub streams: Family<WatchLabel, Counter>,
    pub lost: Family<ResourceLabel, Counter>,
    pub repeats: Family<ResourceLabel, Gauge>,
    pub objects: Family<ResourceLabel, Gauge>,
    pub reconciles: Family<Label, Counter>,
    pub queued: Gauge,
    /// 1 while this process reconciles, else 0.
    pub leader: Gauge,
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let sub = registry.sub_registry_with_prefix("longhaul_watch");
        sub.register("events", "Accepted events, by kind of change", metrics.events.clone());
        sub.register("lists", "Lists applied, by reason", metrics.relists.clone());
        sub.register("streams", "Watch requests, by how they ended", metrics.streams.clone());
        sub.register("lost_events", "Events that a list found and the watch had lost", metrics.lost.clone());
        sub.register("repeated_events", "Events that brought nothing new", metrics.repeats.clone());
        sub.register("objects", "Objects in the store", metrics.objects.clone());
        sub.register("reconciles", "Reconciliations, by result", metrics.reconciles.clone());
        sub.register("queued_keys", "Keys that wait for the reconciler", metrics.queued.clone());
        sub.register("leader", "Whether this process reconciles", metrics.leader.clone());
        metrics
    }
}
