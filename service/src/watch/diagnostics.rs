//! What the watch says about itself: probes, the page `/debug/watch`, and metrics.
//!
//! Owns the numbers; the driver writes them, the health endpoints read them. Liveness is tied to progress: a process whose
//! watch neither receives bytes nor lists for longer than its limit is not alive.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::Serialize;

use super::machine::{Change, Event, Reason};
use super::store::Store;
use crate::edge::Probe;

/// A label whose values are a closed list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Label {
    kind: &'static str,
}

impl Label {
    pub(super) fn new(kind: &'static str) -> Self {
        Self { kind }
    }
}

/// What the watch counts.
#[derive(Debug, Default, Clone)]
pub struct Metrics {
    /// Accepted events by kind of change.
    pub events: Family<Label, Counter>,
    /// Lists applied by reason.
    pub relists: Family<Label, Counter>,
    /// Watch requests and how their streams ended.
    pub streams: Family<Label, Counter>,
    /// Events that a relist found and the watch had lost.
    pub lost: Counter,
    /// Events that told nothing new.
    pub repeats: Gauge,
    /// Objects in the store.
    pub objects: Gauge,
    /// Reconciliations by result.
    pub reconciles: Family<Label, Counter>,
    /// Keys that wait in the reconcile queue.
    pub queued: Gauge,
}

impl Metrics {
    /// Counters at zero, registered under the prefix `longhaul_watch`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let sub = registry.sub_registry_with_prefix("longhaul_watch");
        sub.register("events", "Accepted events, by kind of change", metrics.events.clone());
        sub.register("lists", "Lists applied, by reason", metrics.relists.clone());
        sub.register("streams", "Watch requests, by how they ended", metrics.streams.clone());
        sub.register("lost_events", "Events that a list found and the watch had lost", metrics.lost.clone());
        sub.register("repeated_events", "Events that told nothing new", metrics.repeats.clone());
        sub.register("objects", "Objects in the store", metrics.objects.clone());
        sub.register("reconciles", "Reconciliations, by result", metrics.reconciles.clone());
        sub.register("queued_keys", "Keys that wait for the reconciler", metrics.queued.clone());
        metrics
    }
}

/// The state of one watch.
pub struct Diagnostics {
    resource: &'static str,
    store: Store,
    metrics: Metrics,
    stall_limit: Duration,
    state: Mutex<State>,
}

struct State {
    progress: Instant,
    listed: bool,
    position: Option<Box<str>>,
    last_list: Option<Note>,
    last_error: Option<Note>,
    last_event: Option<Note>,
    connected: bool,
}

#[derive(Debug, Clone, Serialize)]
struct Note {
    at: String,
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    resource: &'a str,
    connected: bool,
    listed: bool,
    objects: usize,
    checksum: String,
    resource_version: Option<Box<str>>,
    progress_age_ms: u128,
    stall_limit_ms: u128,
    added: u64,
    modified: u64,
    deleted: u64,
    lost: u64,
    repeated: i64,
    relists: std::collections::BTreeMap<&'static str, u64>,
    queued: i64,
    last_list: Option<Note>,
    last_error: Option<Note>,
    last_event: Option<Note>,
}

impl Diagnostics {
    /// A watch that has not begun; it is dead after `stall_limit` without progress.
    pub fn new(resource: &'static str, store: Store, metrics: Metrics, stall_limit: Duration) -> Arc<Self> {
        let state = State {
            progress: Instant::now(),
            listed: false,
            position: None,
            last_list: None,
            last_error: None,
            last_event: None,
            connected: false,
        };
        Arc::new(Self { resource, store, metrics, stall_limit, state: Mutex::new(state) })
    }

    /// What the watch counts.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Whether the first list is done.
    pub fn is_listed(&self) -> bool {
        self.state.lock().listed
    }

    pub(super) fn progress(&self) {
        self.state.lock().progress = Instant::now();
    }

    pub(super) fn position(&self, version: Option<&str>, repeats: u64) {
        self.metrics.repeats.set(i64::try_from(repeats).unwrap_or(i64::MAX));
        self.state.lock().position = version.map(Into::into);
    }

    pub(super) fn stream_opened(&self) {
        let mut state = self.state.lock();
        state.progress = Instant::now();
        state.connected = true;
    }

    pub(super) fn stream_ended(&self, how: &'static str) {
        self.metrics.streams.get_or_create(&Label::new(how)).inc();
        self.state.lock().connected = false;
    }

    pub(super) fn applied_list(&self, reason: Reason, items: usize, events: usize) {
        self.metrics.relists.get_or_create(&Label::new(reason.name())).inc();
        let mut state = self.state.lock();
        state.progress = Instant::now();
        state.listed = true;
        state.last_list = Some(note(format!("{}: {items} objects, {events} differences", reason.name())));
    }

    pub(super) fn failed(&self, what: String) {
        tracing::warn!(resource = self.resource, what, "watch");
        self.state.lock().last_error = Some(note(what));
    }

    pub(super) fn event(&self, event: &Event) {
        let kind = match event.change {
            Change::Added => "added",
            Change::Modified => "modified",
            Change::Deleted => "deleted",
        };
        self.metrics.events.get_or_create(&Label::new(kind)).inc();
        self.metrics.objects.set(i64::try_from(self.store.len()).unwrap_or(i64::MAX));
        let object = &event.object;
        self.state.lock().last_event = Some(note(format!("{kind} {} {} {}", object.key, object.uid, object.version)));
    }
}

impl Probe for Diagnostics {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn dead(&self) -> Option<String> {
        let age = self.state.lock().progress.elapsed();
        (age > self.stall_limit)
            .then(|| format!("no progress for {} s, the limit is {} s", age.as_secs(), self.stall_limit.as_secs()))
    }

    fn unready(&self) -> Option<String> {
        (!self.is_listed()).then(|| format!("the first list of {} is not done", self.resource))
    }

    fn page(&self) -> Option<String> {
        let count =
            |family: &Family<Label, Counter>, kind| family.get(&Label::new(kind)).map_or(0, |counter| counter.get());
        let metrics = &self.metrics;
        let checksum = self.store.checksum();
        let state = self.state.lock();
        let page = Page {
            resource: self.resource,
            connected: state.connected,
            listed: state.listed,
            objects: self.store.len(),
            checksum,
            resource_version: state.position.clone(),
            progress_age_ms: state.progress.elapsed().as_millis(),
            stall_limit_ms: self.stall_limit.as_millis(),
            added: count(&metrics.events, "added"),
            modified: count(&metrics.events, "modified"),
            deleted: count(&metrics.events, "deleted"),
            lost: metrics.lost.get(),
            repeated: metrics.repeats.get(),
            relists: Reason::ALL.map(|reason| (reason.name(), count(&metrics.relists, reason.name()))).into(),
            queued: metrics.queued.get(),
            last_list: state.last_list.clone(),
            last_error: state.last_error.clone(),
            last_event: state.last_event.clone(),
        };
        Some(serde_json::to_string_pretty(&page).expect("a page of strings and numbers serialises") + "\n")
    }
}

fn note(text: String) -> Note {
    Note { at: Timestamp::now().to_string(), text }
}
