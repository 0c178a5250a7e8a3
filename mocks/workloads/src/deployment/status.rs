//! The status of a Deployment, as in `sync.go` and `progress.go` of Kubernetes.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{BY, Sets, has_deadline, is_deleting, name, number, room};
use crate::conditions;
use crate::fields::{put, text, time};
use crate::kind::Key;
use crate::scene::Scene;
use crate::write::{Author, Verb};

const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// A condition of a Deployment whose times are now.
pub(super) fn condition(scene: &Scene<'_>, kind: &str, status: &str, said: (&str, &str)) -> Value {
    conditions::new(kind, status, said, &["lastUpdateTime", "lastTransitionTime"], scene.now)
}

/// Sets the condition that the Deployment is paused; returns whether the condition was new.
pub(super) fn pause(scene: &mut Scene<'_>, key: &Key, deployment: &Value) -> bool {
    let reason = conditions::find(&deployment["status"], PROGRESSING).map(|known| text(known, "/reason"));
    if !has_deadline(deployment) || matches!(reason, Some(TIMED_OUT | PAUSED)) {
        return false;
    }
    tell(scene, key, deployment, (PAUSED, "Deployment is paused"))
}

/// Sets the condition that the Deployment is resumed; returns whether the condition was new.
pub(super) fn resume(scene: &mut Scene<'_>, key: &Key, deployment: &Value) -> bool {
    let reason = conditions::find(&deployment["status"], PROGRESSING).map(|known| text(known, "/reason"));
    has_deadline(deployment)
        && reason == Some(PAUSED)
        && tell(scene, key, deployment, ("DeploymentResumed", "Deployment is resumed"))
}

fn tell(scene: &mut Scene<'_>, key: &Key, deployment: &Value, said: (&str, &str)) -> bool {
    let mut next = deployment.clone();
    conditions::set(&mut next["status"], condition(scene, PROGRESSING, "Unknown", said));
    scene.write(Author::Controller(BY), key.clone(), Verb::UpdateStatus, next);
    true
}

/// Whether all Pods of a Deployment exist, have the present template and are available.
pub(super) fn is_complete(deployment: &Value, status: &Value) -> bool {
    let wanted = number(deployment, "/spec/replicas");
    let all = ["updatedReplicas", "replicas", "availableReplicas"];
    all.iter().all(|key| number(status, &format!("/{key}")) == wanted)
        && number(status, "/observedGeneration") >= number(deployment, "/metadata/generation")
}

/// Writes the status of a Deployment if it has changed.
pub(super) fn write(scene: &mut Scene<'_>, key: &Key, deployment: &Value, sets: &Sets) {
    let old = &deployment["status"];
    let mut status = counted(scene, deployment, sets);
    let idle = is_deleting(deployment) || deployment["spec"]["paused"] == json!(true);
    if !has_deadline(deployment) {
        conditions::remove(&mut status, PROGRESSING);
    } else if !idle {
        progress(scene, deployment, sets, &mut status);
    }
    let failed = sets.all().find_map(|set| conditions::find(&set["status"], "ReplicaFailure"));
    match failed {
        Some(failed) if !idle => {
            let said = (text(failed, "/reason"), text(failed, "/message"));
            let failure = condition(scene, "ReplicaFailure", "True", said);
            conditions::set(&mut status, failure);
        }
        Some(_) => {}
        None => conditions::remove(&mut status, "ReplicaFailure"),
    }
    if status == *old {
        return;
    }
    scene.status(BY, key.clone(), deployment, status);
}

/// The status of a Deployment with the counts of replicas and the condition `Available`.
fn counted(scene: &Scene<'_>, deployment: &Value, sets: &Sets) -> Value {
    let sum = |pointer: &str| sets.all().map(|set| number(set, pointer)).sum::<i64>();
    let of_new = |pointer: &str| sets.new.iter().map(|set| number(set, pointer)).sum::<i64>();
    let ripe = sum("/status/availableReplicas");
    let mut status = serde_json::Map::new();
    for key in ["collisionCount", "conditions"] {
        if let Some(known) = deployment["status"].get(key) {
            status.insert(key.to_owned(), known.clone());
        }
    }
    put(&mut status, "observedGeneration", number(deployment, "/metadata/generation"));
    put(&mut status, "replicas", sum("/status/replicas"));
    put(&mut status, "updatedReplicas", of_new("/status/replicas"));
    put(&mut status, "readyReplicas", sum("/status/readyReplicas"));
    put(&mut status, "availableReplicas", ripe);
    put(&mut status, "unavailableReplicas", (sum("/spec/replicas") - ripe).max(0));
    let mut status = Value::Object(status);
    let enough = ripe >= number(deployment, "/spec/replicas") - room(deployment).1;
    let available = if enough {
        ("True", ("MinimumReplicasAvailable", "Deployment has minimum availability."))
    } else {
        ("False", ("MinimumReplicasUnavailable", "Deployment does not have minimum availability."))
    };
    conditions::set(&mut status, condition(scene, "Available", available.0, available.1));
    status
}

/// Sets the condition `Progressing` of the present template.
fn progress(scene: &mut Scene<'_>, deployment: &Value, sets: &Sets, status: &mut Value) {
    let old = &deployment["status"];
    let known = conditions::find(old, PROGRESSING).cloned();
    let at = |status: &Value, key: &str| number(status, &format!("/{key}"));
    let done = known.as_ref().is_some_and(|known| text(known, "/reason") == AVAILABLE);
    if done && at(status, "replicas") == at(status, "updatedReplicas") {
        return;
    }
    let what = match &sets.new {
        Some(new) => format!("ReplicaSet \"{}\"", name(new)),
        None => format!("Deployment \"{}\"", name(deployment)),
    };
    let old_ones = |status: &Value| at(status, "replicas") - at(status, "updatedReplicas");
    let moved = at(status, "updatedReplicas") > at(old, "updatedReplicas")
        || old_ones(status) < old_ones(old)
        || at(status, "readyReplicas") > at(old, "readyReplicas")
        || at(status, "availableReplicas") > at(old, "availableReplicas");
    if is_complete(deployment, status) {
        let said = format!("{what} has successfully progressed.");
        conditions::set(status, condition(scene, PROGRESSING, "True", (AVAILABLE, &said)));
    } else if moved {
        let said = format!("{what} is progressing.");
        let mut next = condition(scene, PROGRESSING, "True", ("ReplicaSetUpdated", &said));
        if let Some(known) = known.filter(|known| text(known, "/status") == "True") {
            next["lastTransitionTime"] = known["lastTransitionTime"].clone();
        }
        conditions::remove(status, PROGRESSING);
        conditions::push(status, next);
    } else if is_late(scene, deployment, known.as_ref()) {
        let said = format!("{what} has timed out progressing.");
        conditions::set(status, condition(scene, PROGRESSING, "False", (TIMED_OUT, &said)));
    }
}

fn is_late(scene: &mut Scene<'_>, deployment: &Value, known: Option<&Value>) -> bool {
    let Some(known) = known else { return false };
    match text(known, "/reason") {
        AVAILABLE => return false,
        TIMED_OUT => return true,
        _ => {}
    }
    let given = SignedDuration::from_secs(number(deployment, "/spec/progressDeadlineSeconds"));
    let Some(due) = time(known, "/lastUpdateTime").and_then(|at| at.checked_add(given).ok()) else { return false };
    if due >= scene.now {
        scene.again(due.checked_add(SignedDuration::from_secs(1)).unwrap_or(due));
    }
    due < scene.now
}
