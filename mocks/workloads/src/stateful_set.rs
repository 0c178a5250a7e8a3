//! `StatefulSet`s: numbered Pods that are made one after the other, each with its own claims.

mod identity;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::fields::{is_deleting, label, name, number, put, text};
use super::kind::{Key, Kind};
use super::pod;
use super::revisions::{self, Keeper};
use super::scene::Scene;

const KEEPER: Keeper =
    Keeper { by: "statefulset-controller", kind: Kind::StatefulSet, label: "controller.kubernetes.io/hash" };
/// The label of a Pod that names the revision of its template.
const REVISION: &str = "controller-revision-hash";

/// The state of one `StatefulSet` while it is processed.
struct Look<'s> {
    set: &'s Value,
    /// The revision of the present template.
    update: Arc<Value>,
    current: Arc<Value>,
    pods: BTreeMap<i64, Arc<Value>>,
}

pub(super) fn look(scene: &mut Scene<'_>, key: &Key, set: &Value) {
    let Some(update) = revisions::present(scene, &KEEPER, set) else { return };
    let current = text(set, "/status/currentRevision");
    let all = revisions::of(scene, set);
    let current = all.iter().find(|revision| name(revision) == current).unwrap_or(&update).clone();
    let owned = scene.objects.owned(set, Kind::Pod);
    let pods = owned.into_iter().filter_map(|pod| Some((identity::ordinal(set, name(&pod))?, pod))).collect();
    let look = Look { set, update, current, pods };
    if !is_deleting(set) {
        look.keep(scene);
    }
    let status = look.status(scene);
    let mut used: BTreeSet<&str> = look.pods.values().map(|pod| label(pod, REVISION)).collect();
    used.extend([name(&look.update), name(&look.current)]);
    revisions::clean(scene, &KEEPER, set, &used);
    scene.status(KEEPER.by, key.clone(), set, status);
}

impl Look<'_> {
    fn first(&self) -> i64 {
        number(self.set, "/spec/ordinals/start")
    }

    fn behind(&self) -> i64 {
        self.first() + number(self.set, "/spec/replicas").max(0)
    }

    /// Whether Pods are made one after the other: not with `podManagementPolicy: Parallel`.
    fn is_ordered(&self) -> bool {
        text(self.set, "/spec/podManagementPolicy") != "Parallel"
    }

    fn is_healthy(&self, scene: &mut Scene<'_>, pod: &Value) -> bool {
        let least = number(self.set, "/spec/minReadySeconds");
        let (is, due) = pod::available(pod, least, scene.now);
        if let Some(due) = due {
            scene.again(due);
        }
        is && text(pod, "/status/phase") == "Running" && !is_deleting(pod)
    }

    /// Creates missing Pods, deletes surplus Pods, then replaces Pods of an older template.
    fn keep(&self, scene: &mut Scene<'_>) {
        if self.grow(scene) && self.shrink(scene) {
            self.roll(scene);
        }
    }

    /// Creates missing Pods, in the order of their numbers. Returns `false` if a Pod must first become ready.
    fn grow(&self, scene: &mut Scene<'_>) -> bool {
        for ordinal in self.first()..self.behind() {
            if scene.room() == 0 {
                return false;
            }
            let Some(pod) = self.pods.get(&ordinal) else {
                self.make(scene, ordinal);
                if self.is_ordered() {
                    return false;
                }
                continue;
            };
            if pod::is_over(pod) {
                if !is_deleting(pod) {
                    scene.delete(KEEPER.by, Kind::Pod, pod);
                }
                if self.is_ordered() {
                    return false;
                }
                continue;
            }
            if self.is_ordered() && !self.is_healthy(scene, pod) {
                return false;
            }
        }
        true
    }

    /// Deletes surplus Pods, the highest number first. Returns `false` while surplus Pods are ending.
    fn shrink(&self, scene: &mut Scene<'_>) -> bool {
        let condemned = self.pods.range(..self.first()).chain(self.pods.range(self.behind()..));
        let mut condemned: Vec<&Arc<Value>> = condemned.map(|(_, pod)| pod).collect();
        condemned.reverse();
        let done = condemned.is_empty();
        for pod in condemned {
            if !is_deleting(pod) {
                scene.delete(KEEPER.by, Kind::Pod, pod);
            }
            if self.is_ordered() {
                return false;
            }
        }
        done || !self.is_ordered()
    }

    /// Replaces the last Pod of an older template, once all Pods with higher numbers are healthy.
    fn roll(&self, scene: &mut Scene<'_>) {
        let strategy = &self.set["spec"]["updateStrategy"];
        if strategy["type"] == "OnDelete" {
            return;
        }
        let kept = self.first() + number(strategy, "/rollingUpdate/partition");
        for (_, pod) in self.pods.range(self.first()..self.behind()).rev().filter(|(ordinal, _)| **ordinal >= kept) {
            if label(pod, REVISION) != name(&self.update) && !is_deleting(pod) {
                return scene.delete(KEEPER.by, Kind::Pod, pod);
            }
            if !self.is_healthy(scene, pod) {
                return;
            }
        }
    }

    fn make(&self, scene: &mut Scene<'_>, ordinal: i64) {
        for claim in identity::claims(self.set, ordinal) {
            if scene.objects.find(Kind::Claim, super::fields::namespace(&claim), name(&claim)).is_none() {
                scene.create(KEEPER.by, Kind::Claim, claim);
            }
        }
        let strategy = &self.set["spec"]["updateStrategy"];
        let is_kept = strategy["type"] != "OnDelete"
            && if strategy["rollingUpdate"].is_object() {
                ordinal < self.first() + number(strategy, "/rollingUpdate/partition")
            } else {
                ordinal < self.first() + number(self.set, "/status/currentReplicas")
            };
        let revision = if is_kept { &self.current } else { &self.update };
        scene.create(KEEPER.by, Kind::Pod, identity::pod(self.set, revision, ordinal));
    }

    fn status(&self, scene: &mut Scene<'_>) -> Value {
        let (current, update) = (name(&self.current), name(&self.update));
        let all: Vec<&Value> = self.pods.values().map(|pod| &**pod).collect();
        let running = all.iter().copied().filter(|pod| text(pod, "/status/phase") == "Running");
        let (ready, ripe) = pod::count(scene, running, number(self.set, "/spec/minReadySeconds"));
        let of = |revision: &str| {
            let of = all.iter().filter(|pod| !is_deleting(pod) && label(pod, REVISION) == revision);
            i64::try_from(of.count()).unwrap_or(i64::MAX)
        };
        let replicas = i64::try_from(all.len()).unwrap_or(i64::MAX);
        let (mut of_current, updated) = (of(current), of(update));
        let rolls = self.set["spec"]["updateStrategy"]["type"] == "RollingUpdate";
        let mut current = current;
        if rolls && updated == replicas && ready == replicas && updated == number(self.set, "/spec/replicas") {
            (current, of_current) = (update, updated);
        }
        let mut status = Map::new();
        status.insert("replicas".to_owned(), json!(replicas));
        status.insert("availableReplicas".to_owned(), json!(ripe));
        status.insert("currentRevision".to_owned(), json!(current));
        status.insert("updateRevision".to_owned(), json!(update));
        status.insert("collisionCount".to_owned(), json!(number(self.set, "/status/collisionCount")));
        if let Some(conditions) = self.set["status"].get("conditions") {
            status.insert("conditions".to_owned(), conditions.clone());
        }
        put(&mut status, "observedGeneration", number(self.set, "/metadata/generation"));
        put(&mut status, "readyReplicas", ready);
        put(&mut status, "currentReplicas", of_current);
        put(&mut status, "updatedReplicas", updated);
        Value::Object(status)
    }
}
