//! What the benchmarks need of the inside. Not part of the API.

use std::sync::Arc;

use serde_json::{Value, json};

use mock_objects::catalogue::Catalogue;
use mock_objects::object;
use mock_objects::selector::Selector;
use mock_store::batch::{Batches, Next};
use mock_store::{Cursor, Event, Expect, Facts, Identity, Limits, Most, ResourceId, Store, Version};

const RESOURCE: ResourceId = ResourceId(0);
const NAMESPACE: &str = "bench";

/// A store with objects of one resource, without sockets.
pub struct Bench {
    store: Store,
    objects: Vec<(Arc<Identity>, Value, Facts)>,
    batches: Batches,
    start: Cursor,
}

/// Selectors of both kinds, and what they are matched against.
pub struct Selection {
    catalogue: Catalogue,
    labels: Selector,
    fields: Selector,
    version: Arc<Version>,
}

/// A Pod of about 1 KiB.
fn pod(index: usize) -> Value {
    let environment: Vec<Value> = (0..12)
        .map(|line| json!({"name": format!("SETTING_{line}"), "value": format!("{}", index * 7919 + line)}))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("pod-{index:06}"), "namespace": NAMESPACE, "uid": format!("00000000-0000-4000-8000-{index:012}"),
            "labels": {"app": "bench", "shard": (index % 16).to_string(), "tier": "web"},
        },
        "spec": {"nodeName": format!("node-{}", index % 50), "containers": [
            {"name": "app", "image": "registry.test/shop/cart:1", "env": environment}
        ]},
        "status": {"phase": "Running"},
    })
}

impl Bench {
    /// A store with so many Pods.
    pub fn new(objects: usize) -> Self {
        let catalogue = Catalogue::builtin();
        let pods = catalogue.by_full_name("pods").expect("pods are built in");
        let store = Store::new(Limits {
            history_max_events: 100_000,
            history_max_bytes: 256 * 1024 * 1024,
            history_max_age_us: u64::MAX,
            commits_max: 100_000,
        });
        let objects = (0..objects).map(|index| {
            let value = pod(index);
            let identity = Identity { resource: RESOURCE, ..object::identity(&value, pods) };
            let facts = object::facts(&value, pods);
            (Arc::new(identity), value, facts)
        });
        let start = store.cursor(RESOURCE, store.revision()).expect("nothing was compacted");
        let mut bench = Self { objects: objects.collect(), batches: Batches::default(), start, store };
        for index in 0..bench.objects.len() {
            bench.put(index, Expect::Absent);
        }
        bench.mark();
        bench
    }

    fn put(&mut self, index: usize, expect: Expect) {
        let (identity, value, facts) = &mut self.objects[index];
        self.store.put(identity, expect, value, facts.clone(), 0).expect("nobody else writes");
        if let Some(cooling) = self.store.cooling() {
            let (resource, worth) = cooling.run();
            self.store.cooled(resource, worth);
        }
    }

    /// Writes the next version of one object.
    pub fn update(&mut self, index: usize) {
        let index = index % self.objects.len();
        let identity = &self.objects[index].0;
        let current = self.store.read(RESOURCE, NAMESPACE, &identity.name).expect("it is never deleted");
        let revision = current.revision;
        self.put(index, Expect::Revision(revision));
    }

    /// Reads the JSON of one object; its bytes.
    pub fn object_bytes(&self, index: usize) -> usize {
        let identity = &self.objects[index % self.objects.len()].0;
        self.store.read(RESOURCE, NAMESPACE, &identity.name).map_or(0, |version| version.object().len())
    }

    /// One page of a list that begins in the middle; how many objects are on it.
    pub fn page(&self, limit: usize) -> usize {
        let after = (NAMESPACE.into(), Arc::clone(&self.objects[self.objects.len() / 2].0.name));
        let page = self.store.list(RESOURCE, Some(NAMESPACE), self.store.revision(), Some(&after), limit, |_| true);
        page.map_or(0, |page| page.items.len())
    }

    /// All objects with a label; how many.
    pub fn selected(&self, selection: &Selection) -> usize {
        let keep = |version: &Version| selection.labels.matches(version);
        let page = self.store.list(RESOURCE, None, self.store.revision(), None, usize::MAX, keep);
        page.map_or(0, |page| page.items.len())
    }

    /// Watches begin here.
    pub fn mark(&mut self) {
        self.start = self.store.cursor(RESOURCE, self.store.revision()).expect("nothing was compacted");
    }

    /// What happened since the mark, as a watch with a selector reads it; how many events.
    pub fn pull(&self) -> usize {
        let (mut cursor, mut events): (Cursor, Vec<Arc<Event>>) = (self.start, Vec::new());
        let pulled = self.store.pull(RESOURCE, &mut cursor, usize::MAX, u64::MAX, &mut events);
        pulled.map_or(0, |_| events.len())
    }

    /// The same as one of many watches without a selector reads it; how many bytes. `first` makes the batch.
    pub fn batch_bytes(&self, first: bool) -> usize {
        if first {
            self.batches.forget();
        }
        let mut cursor = self.start;
        let pull = |cursor: &mut Cursor, most: Most, events: &mut Vec<Arc<Event>>| {
            self.store.pull_within(RESOURCE, cursor, most, u64::MAX, events)
        };
        match self.batches.next(pull, RESOURCE, None, &mut cursor, u64::MAX) {
            Ok(Next::Batch(batch)) => batch.bytes().len(),
            _ => 0,
        }
    }

    /// Drops the whole history.
    pub fn compact(&mut self) {
        self.store.compact(self.store.revision());
    }

    /// Bytes of the present state, serialised.
    pub fn state_bytes(&self) -> usize {
        self.store.object_bytes()
    }
}

impl Selection {
    /// The label selector that a text says.
    pub const LABELS: &str = "app=bench,tier in (web,api),shard notin (3,4),!legacy";
    /// The field selector that a text says.
    pub const FIELDS: &str = "spec.nodeName=node-7,status.phase!=Failed";

    /// Both selectors, parsed.
    pub fn new() -> Self {
        let catalogue = Catalogue::builtin();
        let bench = Bench::new(8);
        let version = bench.store.read(RESOURCE, NAMESPACE, "pod-000007").expect("it was written").clone();
        let parse = |labels, fields| {
            let pods = catalogue.by_full_name("pods").expect("pods are built in");
            Selector::parse(labels, fields, pods).expect("both texts are valid")
        };
        let (labels, fields) = (parse(Some(Self::LABELS), None), parse(None, Some(Self::FIELDS)));
        Self { catalogue, labels, fields, version }
    }

    /// Parses both; whether they are valid.
    pub fn parse(&self) -> bool {
        let pods = self.catalogue.by_full_name("pods").expect("pods are built in");
        Selector::parse(Some(Self::LABELS), Some(Self::FIELDS), pods).is_ok()
    }

    /// Whether the Pod has the labels.
    pub fn matches_labels(&self) -> bool {
        self.labels.matches(&self.version)
    }

    /// Whether the Pod has the fields.
    pub fn matches_fields(&self) -> bool {
        self.fields.matches(&self.version)
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self::new()
    }
}
