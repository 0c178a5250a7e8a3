//! Rollouts of Deployments: the wanted number of Pods of each `ReplicaSet`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{BY, DESIRED, MAX, Sets, is_rolling, name, number, room, set};
use crate::fields::{annotation, namespace};
use crate::kind::{Key, Kind};
use crate::pod;
use crate::scene::Scene;

/// Scales the new `ReplicaSet` up or the old ones down, as far as the rollout's limits allow; returns whether a
/// `ReplicaSet` changed.
pub(super) fn step(scene: &mut Scene<'_>, deployment: &Value, sets: &Sets, new: &Value) -> bool {
    let mut changed = false;
    let wanted = number(deployment, "/spec/replicas");
    if !is_rolling(deployment) {
        return empty_old(scene, deployment, sets) || scale(scene, deployment, new, wanted);
    }
    let is = number(new, "/spec/replicas");
    let next = if is > wanted { wanted } else { replicas_of_new(deployment, sets.all(), is) };
    if scale(scene, deployment, new, next) {
        return true;
    }
    // If the wanted number has changed during the rollout, the old ones are updated.
    for old in sets.old.iter().filter(|old| number(old, "/spec/replicas") > 0) {
        changed |= scale(scene, deployment, old, number(old, "/spec/replicas"));
    }
    changed || scale_down_old(scene, deployment, sets, new)
}

/// The number of Pods that the new `ReplicaSet` may have, if its present number is `is`; `all` is the number of Pods of
/// all `ReplicaSet`s.
pub(super) fn replicas_of_new<'s>(deployment: &Value, all: impl Iterator<Item = &'s Arc<Value>>, is: i64) -> i64 {
    let wanted = number(deployment, "/spec/replicas");
    if !is_rolling(deployment) {
        return wanted;
    }
    let now: i64 = all.map(|set| number(set, "/spec/replicas")).sum();
    let most = wanted + room(deployment).0;
    if now >= most { is } else { is + (most - now).min((wanted - is).max(0)) }
}

/// Scales old `ReplicaSet`s down, unavailable Pods first, while enough Pods stay available.
fn scale_down_old(scene: &mut Scene<'_>, deployment: &Value, sets: &Sets, new: &Value) -> bool {
    let replicas = |set: &Value| number(set, "/spec/replicas");
    let ripe = |set: &Value| number(set, "/status/availableReplicas");
    let all: i64 = sets.all().map(|set| replicas(set)).sum();
    let least = number(deployment, "/spec/replicas") - room(deployment).1;
    let new_unavailable = (replicas(new) - ripe(new)).max(0);
    let mut room = all - least - new_unavailable;
    let active: Vec<&Arc<Value>> = sets.old.iter().filter(|set| replicas(set) > 0).collect();
    if active.is_empty() || room <= 0 {
        return false;
    }
    let mut sizes: Vec<i64> = active.iter().map(|set| replicas(set)).collect();
    for (set, size) in active.iter().zip(&mut sizes) {
        let sick = (replicas(set) - ripe(set)).clamp(0, room).min(replicas(set));
        *size -= sick;
        room -= sick;
    }
    let available: i64 = sets.all().map(|set| ripe(set)).sum();
    let mut spare = available - least;
    for size in &mut sizes {
        let less = spare.clamp(0, *size);
        *size -= less;
        spare -= less;
    }
    let mut changed = false;
    for (set, size) in active.iter().zip(sizes) {
        if size != replicas(set) {
            changed |= scale(scene, deployment, set, size);
        }
    }
    changed
}

/// Removes all old Pods before new ones are made, for the strategy `Recreate`. Returns whether old Pods remain.
pub(super) fn empty_old(scene: &mut Scene<'_>, deployment: &Value, sets: &Sets) -> bool {
    let mut waits = false;
    for old in &sets.old {
        if number(old, "/spec/replicas") > 0 {
            scale(scene, deployment, old, 0);
            waits = true;
        }
        waits |= scene.objects.owned(old, Kind::Pod).iter().any(|pod| !pod::is_over(pod));
    }
    waits
}

/// Writes the wanted number of Pods into a `ReplicaSet`; returns whether the `ReplicaSet` changed.
fn scale(scene: &mut Scene<'_>, deployment: &Value, set_of: &Value, replicas: i64) -> bool {
    let mut next = set_of.clone();
    note_sizes(&mut next, deployment);
    next["spec"]["replicas"] = json!(replicas);
    if next == *set_of {
        return false;
    }
    scene.update(BY, Key::new(Kind::ReplicaSet, namespace(set_of), name(set_of)), next);
    true
}

/// Writes the Deployment's wanted and maximum number of replicas into annotations of a `ReplicaSet`.
pub(super) fn note_sizes(set_of: &mut Value, deployment: &Value) {
    let wanted = number(deployment, "/spec/replicas");
    for (key, size) in [(DESIRED, wanted), (MAX, wanted + room(deployment).0)] {
        let size = size.to_string();
        if annotation(set_of, key) != size {
            set(set_of, "annotations", key, &size);
        }
    }
}
