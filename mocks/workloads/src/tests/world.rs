//! A store that handles the machine's writes like the API server, as far as these tests need it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::fields::{is_deleting, list, name, number, seconds, text};
use crate::{Batch, Config, Key, Kind, Machine, Verb, Write};

const NAMESPACE: &str = "ns";
const STEP: SignedDuration = SignedDuration::from_millis(5);

pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) now: Timestamp,
    pub(super) writes: usize,
    /// A kind whose creation is refused, and the message of the refusal.
    pub(super) refuses: Option<(Kind, String)>,
    pub(super) refusals: usize,
    objects: BTreeMap<Key, Value>,
    next: u64,
}

impl World {
    /// An empty cluster of two nodes.
    pub(super) fn new(ready_after: SignedDuration) -> Self {
        Self::of(Config { ready_after, ends_after: None, nodes: 2, seed: 1 })
    }

    /// A cluster in which Pods are ready at once; they end after `ends_after` if it is set.
    pub(super) fn ending_after(ends_after: Option<SignedDuration>) -> Self {
        Self::of(Config { ready_after: SignedDuration::from_millis(100), ends_after, nodes: 1, seed: 1 })
    }

    fn of(config: Config) -> Self {
        let machine = Machine::new(config);
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut world = Self { machine, now, writes: 0, refuses: None, refusals: 0, objects: BTreeMap::new(), next: 0 };
        for batch in world.machine.begin(now) {
            batch.writes.iter().for_each(|write| world.write(write).unwrap());
        }
        world
    }

    pub(super) fn create(&mut self, kind: Kind, mut body: Value) {
        body["metadata"]["namespace"] = json!(NAMESPACE);
        self.add(kind, body);
    }

    pub(super) fn get(&self, kind: Kind, name: &str) -> Value {
        let found = self.objects.get(&Key::new(kind, NAMESPACE, name));
        found.cloned().unwrap_or_else(|| panic!("no {kind:?} {name}: {:?}", self.objects.keys()))
    }

    pub(super) fn all(&self, kind: Kind) -> Vec<Value> {
        self.objects.iter().filter(|(key, _)| key.kind == kind).map(|(_, value)| value.clone()).collect()
    }

    pub(super) fn edit(&mut self, kind: Kind, name: &str, edit: impl FnOnce(&mut Value)) {
        let mut value = self.get(kind, name);
        edit(&mut value);
        self.put(&Key::new(kind, NAMESPACE, name), value);
    }

    pub(super) fn delete(&mut self, kind: Kind, name: &str) {
        self.remove(&Key::new(kind, NAMESPACE, name), None);
    }

    /// Passes all objects to the machine again, as if they had changed.
    pub(super) fn touch_all(&mut self) {
        for (key, value) in &self.objects {
            self.machine.observe(key, Some(value.clone()));
        }
    }

    /// Advances the time by `length` and calls the machine at each time that it requests.
    pub(super) fn run(&mut self, length: SignedDuration) {
        let end = self.now.checked_add(length).unwrap();
        loop {
            for _ in 0..1000 {
                if self.machine.due().is_none_or(|due| due > self.now) {
                    break;
                }
                self.step();
            }
            let due = self.machine.due();
            assert!(due.is_none_or(|due| due > self.now), "it does not come to rest");
            if self.now >= end {
                return;
            }
            self.now = self.now.checked_add(STEP).unwrap().min(end);
        }
    }

    /// Calls `Machine::step` once and makes the writes that it returns.
    pub(super) fn step(&mut self) -> Vec<Batch> {
        let batches = self.machine.step(self.now);
        for batch in &batches {
            let mut refused = None;
            for write in &batch.writes {
                if refused.is_some() && !matches!(write.verb, Verb::UpdateStatus | Verb::PatchStatus) {
                    continue;
                }
                if let Err(why) = self.write(write) {
                    refused = Some(why);
                }
            }
            match refused {
                Some(why) => self.machine.refused(&batch.of, &why, self.now),
                None => self.machine.done(batch),
            }
        }
        batches
    }

    fn write(&mut self, write: &Write) -> Result<(), String> {
        self.writes += 1;
        match write.verb {
            Verb::Create => {
                if let Some((kind, why)) = &self.refuses
                    && *kind == write.key.kind
                {
                    self.refusals += 1;
                    return Err(why.clone());
                }
                self.add(write.key.kind, write.body.clone());
            }
            Verb::Update => {
                let status = self.objects[&write.key]["status"].clone();
                let mut value = write.body.clone();
                value["status"] = status;
                self.put(&write.key, value);
            }
            Verb::UpdateStatus => {
                let mut value = self.objects[&write.key].clone();
                value["status"] = write.body["status"].clone();
                if let Some(annotations) = write.body["metadata"].get("annotations") {
                    value["metadata"]["annotations"] = annotations.clone();
                }
                self.put(&write.key, value);
            }
            Verb::Patch | Verb::PatchStatus => {
                let Some(mut value) = self.objects.get(&write.key).cloned() else { return Ok(()) };
                merge(&mut value, &write.body);
                self.put(&write.key, value);
            }
            Verb::Bind => {
                let mut value = self.objects[&write.key].clone();
                value["spec"]["nodeName"] = write.body["target"]["name"].clone();
                self.put(&write.key, value);
            }
            Verb::Delete => self.remove(&write.key, write.body["gracePeriodSeconds"].as_i64()),
        }
        Ok(())
    }

    fn add(&mut self, kind: Kind, mut body: Value) {
        self.next += 1;
        if name(&body).is_empty() {
            body["metadata"]["name"] = Value::from(format!("{}{}", text(&body, "/metadata/generateName"), self.next));
        }
        let of = name(&body).to_owned();
        body["metadata"]["uid"] = Value::from(format!("uid-{}", self.next));
        body["metadata"]["creationTimestamp"] = seconds(self.now);
        if body["metadata"]["generation"].is_null() {
            body["metadata"]["generation"] = json!(1);
        }
        if kind == Kind::Pod {
            body["status"] = json!({"phase": "Pending"});
        }
        let namespace = text(&body, "/metadata/namespace").to_owned();
        let key = Key::new(kind, &namespace, &of);
        assert!(!self.objects.contains_key(&key), "{key:?} is made twice");
        self.objects.insert(key.clone(), body.clone());
        self.machine.observe(&key, Some(body));
    }

    fn put(&mut self, key: &Key, mut value: Value) {
        let old = &self.objects[key];
        if *old == value {
            return;
        }
        if old["spec"] != value["spec"] {
            value["metadata"]["generation"] = json!(number(old, "/metadata/generation") + 1);
        }
        if is_deleting(&value) && key.kind != Kind::Pod && list(&value, "/metadata/finalizers").is_empty() {
            return self.gone(key);
        }
        self.objects.insert(key.clone(), value.clone());
        self.machine.observe(key, Some(value));
    }

    fn remove(&mut self, key: &Key, grace_s: Option<i64>) {
        let Some(mut value) = self.objects.get(key).cloned() else { return };
        let waits = key.kind == Kind::Pod && !text(&value, "/spec/nodeName").is_empty() && grace_s != Some(0);
        if waits || !list(&value, "/metadata/finalizers").is_empty() {
            if !is_deleting(&value) {
                value["metadata"]["deletionTimestamp"] = seconds(self.now);
                value["metadata"]["deletionGracePeriodSeconds"] = json!(30);
                self.put(key, value);
            }
            return;
        }
        self.gone(key);
    }

    fn gone(&mut self, key: &Key) {
        self.objects.remove(key);
        self.machine.observe(key, None);
    }
}

/// Applies a merge patch; of strategic merge patches, only the features that the machine uses.
fn merge(value: &mut Value, patch: &Value) {
    let (Some(fields), Some(patch)) = (value.as_object_mut(), patch.as_object()) else {
        *value = patch.clone();
        return;
    };
    for (key, patch) in patch {
        if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
            if let Some(list) = fields.get_mut(list).and_then(Value::as_array_mut) {
                list.retain(|item| !patch.as_array().is_some_and(|gone| gone.contains(item)));
            }
        } else if patch.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), patch);
        }
    }
}
