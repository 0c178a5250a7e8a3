//! The diagnostics of a watch: probes, the JSON at `/debug/watch`, and metrics.
//!
//! The driver writes the diagnostics, and the health endpoints read them. Liveness depends on progress: the process is
//! not alive if for too long its watch neither receives bytes nor lists.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use serde::Serialize;
use tokio::sync::watch;

use super::machine::{Change, Event, Reason};
use super::object::{Kind, Package};
use super::source::Source;
use super::store::Store;
use service_core::edge::Probe;
use service_core::watches::{Metrics, ResourceLabel, WatchLabel};

/// Maximum number of objects in `/debug/watch/objects`: about 10 MB. If the number `objects` in `/debug/watch` is
/// larger, the list is incomplete.
const OBJECTS_MAX: usize = 50_000;

/// While a watch waits for receivers of its events, it renews its progress at this interval.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// If a watch has no stream for longer than this, the health endpoint shows a note. The usual gap between two streams
/// is shorter: a second, and the time of a list.
const APART_NOTED: Duration = Duration::from_secs(5);

/// One object of `/debug/watch/objects`, with the field names of the witness.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    resource: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    resource_version: &'a str,
}

pub struct Diagnostics<K = Package> {
    source: Source,
    store: Store<K>,
    metrics: Metrics,
    stall_limit: Duration,
    state: Mutex<State>,
    listed: watch::Sender<bool>,
}

/// The state of a watch's connection to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Whether the first list of the watch is complete.
    pub listed: bool,
    /// Time for which the watch has had no stream; `None` if it has a stream.
    pub apart: Option<Duration>,
    /// Time since the server last sent data of the watch or of a list.
    pub age: Duration,
    /// The resource version up to which the view is complete.
    pub revision: Option<Box<str>>,
    pub last_error: Option<String>,
}

struct State {
    progress: Instant,
    /// The time since which the watch has no stream.
    apart: Option<Instant>,
    position: Option<Box<str>>,
    last_list: Option<Note>,
    last_error: Option<Note>,
    last_event: Option<Note>,
}

#[derive(Debug, Clone, Serialize)]
struct Note {
    at: String,
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DebugPage<'a> {
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

impl<K: Kind> Diagnostics<K> {
    /// Diagnostics of a watch that has not started. The watch counts as dead after the time `stall_limit` without
    /// progress.
    pub fn new(source: Source, store: Store<K>, metrics: Metrics, stall_limit: Duration) -> Arc<Self> {
        let state = State {
            progress: Instant::now(),
            apart: Some(Instant::now()),
            position: None,
            last_list: None,
            last_error: None,
            last_event: None,
        };
        // Present from the start, so that an alert on them always has values.
        let resource = ResourceLabel { resource: source.resource.clone() };
        drop(metrics.lost.get_or_create(&resource));
        drop(metrics.objects.get_or_create(&resource));
        Arc::new(Self {
            source,
            store,
            metrics,
            stall_limit,
            state: Mutex::new(state),
            listed: watch::Sender::new(false),
        })
    }

    pub fn is_listed(&self) -> bool {
        *self.listed.borrow()
    }

    pub async fn first_list(&self) {
        // The sender lives as long as this.
        let _ = self.listed.subscribe().wait_for(|listed| *listed).await;
    }

    pub fn link(&self) -> Link {
        let listed = self.is_listed();
        let state = self.state.lock();
        Link {
            listed,
            apart: state.apart.map(|since| since.elapsed()),
            age: state.progress.elapsed(),
            revision: state.position.clone(),
            last_error: state.last_error.as_ref().map(|note| note.text.clone()),
        }
    }

    pub(super) fn lost(&self, events: u64) {
        self.metrics.lost.get_or_create(&self.resource()).inc_by(events);
    }

    fn resource(&self) -> ResourceLabel {
        ResourceLabel { resource: self.source.resource.clone() }
    }

    fn label(&self, kind: &'static str) -> WatchLabel {
        WatchLabel { resource: self.source.resource.clone(), kind }
    }

    pub(super) fn progress(&self) {
        self.state.lock().progress = Instant::now();
    }

    /// Waits until the receiver of events can take more. The wait does not count as a lack of progress, because a
    /// restart of the watch would not help.
    pub(super) async fn waiting(&self, mut room: BoxFuture<'static, ()>) {
        while tokio::time::timeout(PROGRESS_INTERVAL, &mut room).await.is_err() {
            self.progress();
        }
    }

    pub(super) fn position(&self, version: Option<&str>, repeats: u64) {
        self.metrics.repeats.get_or_create(&self.resource()).set(i64::try_from(repeats).unwrap_or(i64::MAX));
        self.state.lock().position = version.map(Into::into);
    }

    pub(super) fn stream_opened(&self) {
        tracing::debug!(name: crate::events::WATCH_OPENED, resource = &*self.source.resource, "a stream began");
        let mut state = self.state.lock();
        state.progress = Instant::now();
        state.apart = None;
    }

    pub(super) fn stream_ended(&self, how: &'static str) {
        tracing::debug!(name: crate::events::WATCH_ENDED, resource = &*self.source.resource, how, "a stream ended");
        self.metrics.streams.get_or_create(&self.label(how)).inc();
        self.state.lock().apart.get_or_insert_with(Instant::now);
    }

    pub(super) fn applied_list(&self, reason: Reason, items: usize, events: usize) {
        let (resource, why) = (&*self.source.resource, reason.name());
        tracing::info!(
            name: crate::events::WATCH_LISTED, resource, reason = why, objects = items, differences = events,
            "a list was taken"
        );
        self.metrics.relists.get_or_create(&self.label(reason.name())).inc();
        let mut state = self.state.lock();
        state.progress = Instant::now();
        state.last_list = Some(note(format!("{}: {items} objects, {events} differences", reason.name())));
        drop(state);
        self.listed.send_replace(true);
    }

    pub(super) fn failed(&self, what: String) {
        tracing::warn!(name: crate::events::WATCH_FAILED, resource = &*self.source.resource, what, "watch");
        self.state.lock().last_error = Some(note(what));
    }

    pub(super) fn event(&self, event: &Event<K>) {
        let kind = match event.change {
            Change::Added => "added",
            Change::Modified => "modified",
            Change::Deleted => "deleted",
        };
        self.metrics.events.get_or_create(&self.label(kind)).inc();
        self.metrics.objects.get_or_create(&self.resource()).set(i64::try_from(self.store.len()).unwrap_or(i64::MAX));
        let object = &event.object;
        tracing::debug!(
            name: crate::events::WATCH_CHANGED,
            resource = &*self.source.resource, change = kind, object = %object.key, uid = &*object.uid, revision = &*object.version,
            "an object changed"
        );
        self.state.lock().last_event = Some(note(format!("{kind} {} {} {}", object.key, object.uid, object.version)));
    }
}

impl<K: Kind> Probe for Diagnostics<K> {
    fn name(&self) -> &str {
        &self.source.probe
    }

    fn dead(&self) -> Option<String> {
        let age = self.state.lock().progress.elapsed();
        (age > self.stall_limit)
            .then(|| format!("no progress for {} s, the limit is {} s", age.as_secs(), self.stall_limit.as_secs()))
    }

    fn unready(&self) -> Option<String> {
        (!self.is_listed()).then(|| format!("the first list of {} is not done", self.source.resource))
    }

    /// A note with the possible age of the view, if the server was silent for longer than a working stream ever is.
    fn note(&self) -> Option<String> {
        let link = self.link();
        let apart = link.apart.filter(|apart| *apart > APART_NOTED && link.listed)?;
        let (apart, age) = (apart.as_secs(), link.age.as_secs());
        let why = link.last_error.map(|why| format!(": {why}")).unwrap_or_default();
        Some(format!("no stream for {apart} s, what is known is {age} s old{why}"))
    }

    fn page(&self) -> Option<String> {
        let count = |family: &Family<WatchLabel, Counter>, kind| {
            family.get(&self.label(kind)).map_or(0, |counter| counter.get())
        };
        let metrics = &self.metrics;
        let checksum = self.store.checksum();
        let state = self.state.lock();
        let page = DebugPage {
            resource: &self.source.resource,
            connected: state.apart.is_none(),
            listed: self.is_listed(),
            objects: self.store.len(),
            checksum,
            resource_version: state.position.clone(),
            progress_age_ms: state.progress.elapsed().as_millis(),
            stall_limit_ms: self.stall_limit.as_millis(),
            added: count(&metrics.events, "added"),
            modified: count(&metrics.events, "modified"),
            deleted: count(&metrics.events, "deleted"),
            lost: metrics.lost.get(&self.resource()).map_or(0, |counter| counter.get()),
            repeated: metrics.repeats.get(&self.resource()).map_or(0, |gauge| gauge.get()),
            relists: Reason::ALL.map(|reason| (reason.name(), count(&metrics.relists, reason.name()))).into(),
            queued: metrics.queued.get(),
            last_list: state.last_list.clone(),
            last_error: state.last_error.clone(),
            last_event: state.last_event.clone(),
        };
        Some(serde_json::to_string_pretty(&page).expect("a page of strings and numbers serialises") + "\n")
    }

    fn objects(&self) -> Option<String> {
        let mut lines = String::new();
        for object in self.store.after(None, OBJECTS_MAX) {
            let line = Line {
                resource: &self.source.resource,
                namespace: &object.key.namespace,
                name: &object.key.name,
                uid: &object.uid,
                resource_version: &object.version,
            };
            lines.push_str(&serde_json::to_string(&line).expect("strings always serialise"));
            lines.push('\n');
        }
        Some(lines)
    }
}

fn note(text: String) -> Note {
    Note { at: Timestamp::now().to_string(), text }
}
