//! The state machine of the simulated controllers: the queue of objects to process, and the times to process them.
//!
//! The queue contains an object at most once. An object is added when it changes, when an object that it owns or needs
//! changes, or when a time for which it waits has come.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::clocks::Clocks;
use super::fields::{label, list, text, uid};
use super::kind::{Key, Kind};
use super::objects::Objects;
use super::queue::Queue;
use super::scene::{Scene, WRITES_MAX};
use super::trouble::{Hit, Trouble};
use super::write::{Batch, Verb};
use super::{Config, claim, daemon_set, deployment, endpoints, job, node, pod, replica_set, service, stateful_set};

/// Maximum number of objects that one call of [`Machine::step`] processes; each object needs a few writes.
const KEYS_MAX: usize = 128;
/// Time until an object is processed again after a refused write; the time doubles with each refusal.
const RETRY: SignedDuration = SignedDuration::from_millis(250);
/// Time until an object is processed again after a conflict; other writes of the object are finished by then.
const STALE: SignedDuration = SignedDuration::from_millis(20);
const RETRY_MAX: SignedDuration = SignedDuration::from_secs(30);
/// Number of doublings of [`RETRY`] until it is longer than [`RETRY_MAX`].
const DOUBLINGS_MAX: u32 = 8;
/// Maximum number of hits of faults that are kept until a caller takes them.
const HITS_MAX: usize = 8192;

/// The last refusal of a write for an object.
#[derive(Debug, Clone)]
struct Refusal {
    times: u32,
    why: String,
    /// The time until which only a status is written.
    until: Timestamp,
}

#[derive(Debug)]
pub struct Machine {
    config: Config,
    objects: Objects,
    clocks: Clocks,
    dirty: Queue,
    due: BTreeSet<(Timestamp, Key)>,
    due_of: BTreeMap<Key, Timestamp>,
    troubles: Vec<Trouble>,
    hits: Vec<Hit>,
    refused: HashMap<Key, Refusal>,
    addresses: u32,
    overflown: bool,
}

impl Machine {
    /// A machine without objects.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            objects: Objects::default(),
            clocks: Clocks::default(),
            dirty: Queue::default(),
            due: BTreeSet::new(),
            due_of: BTreeMap::new(),
            troubles: Vec::new(),
            hits: Vec::new(),
            refused: HashMap::new(),
            addresses: 0,
            overflown: false,
        }
    }

    /// The first writes: the nodes, if the cluster has none.
    pub fn begin(&self, now: Timestamp) -> Vec<Batch> {
        if self.objects.of_kind(Kind::Node, None).next().is_some() {
            Vec::new()
        } else {
            node::all(self.config.nodes, now)
        }
    }

    /// Stores the present state of an object; `None` means that the object was deleted.
    pub fn observe(&mut self, key: &Key, value: Option<Value>) {
        let value = value.map(Arc::new);
        let (before, fits) = self.objects.put(key, value.as_ref());
        if !fits {
            self.overflown = true;
            return;
        }
        if let Some(before) = before.as_deref().filter(|before| value.as_deref().map(uid) != Some(uid(before))) {
            self.clocks.forget(uid(before));
            self.refused.remove(key);
        }
        for value in [before.as_deref(), value.as_deref()].into_iter().flatten() {
            self.wakes(key, value);
        }
        self.dirty.insert(key.clone());
    }

    /// Whether there were more objects than the limit; further objects are ignored.
    pub fn is_overflown(&self) -> bool {
        self.overflown
    }

    /// Removes all objects that are not in `there`, after a restore of the store.
    pub fn forget_others(&mut self, there: &BTreeSet<Key>) {
        let gone: Vec<Key> = self.objects.keys().filter(|key| !there.contains(key)).cloned().collect();
        for key in gone {
            self.observe(&key, None);
        }
    }

    /// Sets the active faults.
    pub fn trouble(&mut self, troubles: Vec<Trouble>) {
        if troubles == self.troubles {
            return;
        }
        self.troubles = troubles;
        let kinds = [Kind::Pod, Kind::Claim, Kind::Service];
        let keys = self.objects.keys().filter(|key| kinds.contains(&key.kind));
        self.dirty.extend(keys.cloned());
    }

    /// The time at which [`Machine::step`] must be called next, unless an object changes earlier.
    pub fn due(&self) -> Option<Timestamp> {
        if self.dirty.is_empty() { self.due.first().map(|(at, _)| *at) } else { Some(Timestamp::MIN) }
    }

    /// Processes objects that changed or whose waiting time is over; returns the writes. A caller must make and report
    /// all these writes before it calls `step` again.
    pub fn step(&mut self, now: Timestamp) -> Vec<Batch> {
        while let Some((at, key)) = self.due.first().cloned().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, key.clone()));
            self.due_of.remove(&key);
            self.dirty.insert(key);
        }
        let mut batches = Vec::new();
        // Processed again only after these writes: before, it would return the same ones.
        let mut cut = Vec::new();
        for _ in 0..KEYS_MAX {
            let Some(key) = self.dirty.pop() else { break };
            let Some(value) = self.objects.get(&key).cloned() else { continue };
            let refusal = self.refused.get(&key);
            let held_back = refusal.is_some_and(|refusal| refusal.until > now);
            let refused = refusal.map(|refusal| refusal.why.as_str());
            let parts = (&self.config, &self.objects, &*self.troubles);
            let mut scene = Scene::new(now, parts, (&mut self.clocks, &mut self.addresses), refused);
            look(&mut scene, &key, &value);
            let (due, mut writes, hits) = (scene.due(), scene.writes, scene.hits);
            self.hits.extend(hits);
            if held_back {
                writes.retain(|write| matches!(write.verb, Verb::UpdateStatus | Verb::PatchStatus));
            }
            // An owner does not see Pods beyond the limit, and would make others for ever.
            if self.objects.is_full() && writes.iter().any(|write| write.verb == Verb::Create) {
                writes.retain(|write| write.verb != Verb::Create);
                self.overflown = true;
            }
            if writes.len() > WRITES_MAX {
                writes.truncate(WRITES_MAX);
                cut.push(key.clone());
            }
            if let Some(due) = due {
                self.schedule(&key, due);
            }
            if !writes.is_empty() {
                batches.push(Batch { of: key, writes, held_back });
            }
        }
        self.dirty.extend(cut);
        self.hits.truncate(HITS_MAX);
        batches
    }

    /// Records that the server accepted all writes of a batch.
    pub fn done(&mut self, batch: &Batch) {
        // The reason of the refusal is in a condition that is removed now.
        if !batch.held_back && self.refused.remove(&batch.of).is_some() {
            self.dirty.insert(batch.of.clone());
        }
    }

    /// Records that the server refused a write because the object had changed; the object is processed again.
    pub fn stale(&mut self, of: &Key, now: Timestamp) {
        self.schedule(of, now.checked_add(STALE).unwrap_or(now));
    }

    /// Records that the server refused a write for a reason that may persist; later attempts come at growing intervals.
    pub fn refused(&mut self, of: &Key, why: &str, now: Timestamp) {
        if self.objects.get(of).is_none() {
            return;
        }
        let new = Refusal { times: 0, why: String::new(), until: now };
        let refusal = self.refused.entry(of.clone()).or_insert(new);
        let late = RETRY.saturating_mul(1 << refusal.times.min(DOUBLINGS_MAX)).min(RETRY_MAX);
        refusal.times += 1;
        refusal.until = now.checked_add(late).unwrap_or(Timestamp::MAX);
        if refusal.why != why {
            why.clone_into(&mut refusal.why);
            // Some controllers report it in the status.
            self.dirty.insert(of.clone());
        }
        let until = refusal.until;
        self.schedule(of, until);
    }

    /// The workloads that faults kept from being ready or made unready since the last call.
    pub fn take_hits(&mut self) -> Vec<Hit> {
        std::mem::take(&mut self.hits)
    }

    fn schedule(&mut self, key: &Key, at: Timestamp) {
        let known = self.due_of.get(key).copied();
        if known.is_some_and(|known| known <= at) {
            return;
        }
        if let Some(known) = known {
            self.due.remove(&(known, key.clone()));
        }
        self.due.insert((at, key.clone()));
        self.due_of.insert(key.clone(), at);
    }

    /// Puts the objects that depend on `key` into the queue.
    fn wakes(&mut self, key: &Key, value: &Value) {
        if let Some((owner, of)) = self.objects.controller(value) {
            self.dirty.insert(owner);
            // A `Recreate` Deployment waits until its last old Pod is gone.
            let above = self.objects.controller(&of).filter(|_| key.kind == Kind::Pod);
            self.dirty.extend(above.filter(|(_, of)| of["spec"]["strategy"]["type"] == "Recreate").map(|(key, _)| key));
        }
        let namespace = &*key.namespace;
        match key.kind {
            Kind::Pod => {
                let labels = &value["metadata"]["labels"];
                let services = self.objects.of_kind(Kind::Service, Some(namespace));
                let services =
                    services.filter(|(_, service)| service::selects(service, labels)).map(|(key, _)| key.clone());
                self.dirty.extend(services);
            }
            Kind::Claim => {
                let waits = |pod: &Value| {
                    list(pod, "/spec/volumes")
                        .iter()
                        .any(|volume| text(volume, "/persistentVolumeClaim/claimName") == &*key.name)
                };
                let pods = self.objects.of_kind(Kind::Pod, Some(namespace)).filter(|(_, pod)| waits(pod));
                let pods: Vec<Key> = pods.map(|(key, _)| key.clone()).collect();
                self.dirty.extend(pods);
                let volume = text(value, "/spec/volumeName");
                if !volume.is_empty() {
                    self.dirty.insert(Key::new(Kind::Volume, "", volume));
                }
            }
            Kind::Volume => {
                let claim = |key: &str| text(value, &format!("/spec/claimRef/{key}"));
                self.dirty.insert(Key::new(Kind::Claim, claim("namespace"), claim("name")));
            }
            Kind::Node => {
                let sets: Vec<Key> = self.objects.of_kind(Kind::DaemonSet, None).map(|(key, _)| key.clone()).collect();
                self.dirty.extend(sets);
            }
            Kind::Service => {
                self.dirty.insert(Key::new(Kind::Endpoints, namespace, &key.name));
            }
            Kind::Endpoints => {
                self.dirty.insert(Key::new(Kind::Service, namespace, &key.name));
            }
            Kind::Slice => {
                let service = label(value, endpoints::SERVICE);
                self.dirty.insert(Key::new(Kind::Service, namespace, service));
            }
            _ => {}
        }
    }
}

fn look(scene: &mut Scene<'_>, key: &Key, value: &Value) {
    match key.kind {
        Kind::Deployment => deployment::look(scene, key, value),
        Kind::ReplicaSet => replica_set::look(scene, key, value),
        Kind::StatefulSet => stateful_set::look(scene, key, value),
        Kind::DaemonSet => daemon_set::look(scene, key, value),
        Kind::Job => job::look(scene, key, value),
        Kind::Pod => pod::look(scene, key, value),
        Kind::Claim => claim::look(scene, key, value),
        Kind::Volume => claim::look_at_volume(scene, key, value),
        Kind::Service => {
            service::look(scene, key, value);
            endpoints::look(scene, key, value);
        }
        Kind::Endpoints => endpoints::look_at_orphan(scene, key, value),
        Kind::Node | Kind::Revision | Kind::Slice => {}
    }
}
