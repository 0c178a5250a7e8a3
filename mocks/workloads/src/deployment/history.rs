//! The `ReplicaSet`s of a Deployment's earlier templates, and their revision numbers.

use serde_json::{Value, json};

use super::{BY, DESIRED, MAX, REVISION, Sets, has_deadline, is_deleting, name, number, revision, set, status};
use crate::conditions;
use crate::fields::{annotation, map};
use crate::kind::{Key, Kind};
use crate::scene::Scene;
use crate::write::{Author, Verb};

/// Annotations that are not copied from a Deployment to its `ReplicaSet`s.
const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    "deployment.kubernetes.io/revision-history",
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];
const HISTORY: &str = "deployment.kubernetes.io/revision-history";

/// The highest revision number of the earlier templates.
pub(super) fn newest(sets: &Sets) -> i64 {
    sets.old.iter().map(|set| revision(set)).max().unwrap_or(0)
}

/// Copies the annotations of a Deployment to its `ReplicaSet`; returns whether one changed.
pub(super) fn copy_annotations(set_of: &mut Value, deployment: &Value) -> bool {
    let mut changed = false;
    for (key, value) in map(deployment, "/metadata/annotations") {
        let value = value.as_str().unwrap_or_default();
        if !OWN.contains(&&*key) && annotation(set_of, &key) != value {
            set(set_of, "annotations", &key, value);
            changed = true;
        }
    }
    changed
}

/// Sets the revision number of the present template's existing `ReplicaSet` to the highest. Returns whether an object
/// was written.
pub(super) fn adopt(scene: &mut Scene<'_>, key: &Key, deployment: &Value, sets: &Sets, new: &Value) -> bool {
    let (is, wanted) = (revision(new), newest(sets) + 1);
    let mut next = new.clone();
    let mut changed = copy_annotations(&mut next, deployment);
    if is < wanted {
        if is > 0 {
            let before = annotation(new, HISTORY);
            let history = if before.is_empty() { is.to_string() } else { format!("{before},{is}") };
            set(&mut next, "annotations", HISTORY, &history);
        }
        set(&mut next, "annotations", REVISION, &wanted.to_string());
        changed = true;
    }
    let least = number(deployment, "/spec/minReadySeconds");
    if number(new, "/spec/minReadySeconds") != least {
        next["spec"]["minReadySeconds"] = json!(least);
        changed = true;
    }
    if changed {
        scene.update(BY, Key::new(Kind::ReplicaSet, &key.namespace, name(new)), next);
        return true;
    }
    let mut next = deployment.clone();
    let mut changed = false;
    if annotation(deployment, REVISION) != annotation(new, REVISION) {
        set(&mut next, "annotations", REVISION, annotation(new, REVISION));
        changed = true;
    }
    if has_deadline(deployment) && conditions::find(&deployment["status"], "Progressing").is_none() {
        let message = format!("Found new replica set \"{}\"", name(new));
        conditions::set(
            &mut next["status"],
            status::condition(scene, "Progressing", "True", ("FoundNewReplicaSet", &message)),
        );
        changed = true;
    }
    if changed {
        scene.write(Author::Controller(BY), key.clone(), Verb::UpdateStatus, next);
    }
    changed
}

/// Deletes the oldest `ReplicaSet`s without Pods beyond `revisionHistoryLimit`.
pub(super) fn clean(scene: &mut Scene<'_>, deployment: &Value, sets: &Sets) {
    let Some(kept) = deployment["spec"]["revisionHistoryLimit"].as_i64() else { return };
    let mut old: Vec<&Value> = sets.old.iter().map(|set| &**set).collect();
    let too_many = old.len().saturating_sub(usize::try_from(kept).unwrap_or(usize::MAX));
    old.sort_by_key(|set| revision(set));
    for set in old.into_iter().take(too_many) {
        let is_empty = number(set, "/spec/replicas") == 0 && number(set, "/status/replicas") == 0;
        let is_seen = number(set, "/metadata/generation") <= number(set, "/status/observedGeneration");
        if is_empty && is_seen && !is_deleting(set) {
            scene.delete(BY, Kind::ReplicaSet, set);
        }
    }
}
