//! Deployments: one `ReplicaSet` for each template, and the rollout from one template to the next.
//!
//! Owns the order of actions, as in `deployment_controller.go` of Kubernetes: make the template's `ReplicaSet`, scale
//! up, scale down, clean the history, and write the status last.

mod history;
mod rollout;
mod status;

use std::sync::Arc;

use serde_json::{Value, json};

use super::conditions;
use super::fields::{annotation, hash, is_deleting, name, number, share, text};
use super::kind::{Key, Kind};
use super::scene::Scene;
use super::template::{controlled_by, set};

const BY: &str = "deployment-controller";
/// The annotation of a `ReplicaSet` with the revision number of its template.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// The annotation of a `ReplicaSet` with the Deployment's wanted replicas when the controller last processed it.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";
const HASH: &str = "pod-template-hash";

/// The `ReplicaSet`s of a Deployment.
struct Sets {
    /// The `ReplicaSet` of the present template.
    new: Option<Arc<Value>>,
    /// The other `ReplicaSet`s, oldest first.
    old: Vec<Arc<Value>>,
}

impl Sets {
    fn of(scene: &Scene<'_>, deployment: &Value) -> Self {
        let mut all = scene.objects.owned(deployment, Kind::ReplicaSet);
        all.retain(|set| !is_deleting(set));
        all.sort_by_key(|set| (text(set, "/metadata/creationTimestamp").to_owned(), name(set).to_owned()));
        // The oldest of several equal ones.
        let at = all.iter().position(|set| has_template(set, &deployment["spec"]["template"]));
        let new = at.map(|at| all.remove(at));
        Self { new, old: all }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.old.iter().chain(&self.new)
    }
}

pub(super) fn look(scene: &mut Scene<'_>, key: &Key, deployment: &Value) {
    let sets = Sets::of(scene, deployment);
    if is_deleting(deployment) || deployment["spec"]["paused"] == json!(true) {
        if !is_deleting(deployment) && status::pause(scene, key, deployment) {
            return;
        }
        return status::write(scene, key, deployment, &sets);
    }
    if status::resume(scene, key, deployment) {
        return;
    }
    let Some(new) = &sets.new else {
        let waits =
            text(deployment, "/spec/strategy/type") == "Recreate" && rollout::empty_old(scene, deployment, &sets);
        return if waits { status::write(scene, key, deployment, &sets) } else { make(scene, key, deployment, &sets) };
    };
    if history::adopt(scene, key, deployment, &sets, new) {
        return;
    }
    if rollout::step(scene, deployment, &sets, new) {
        return status::write(scene, key, deployment, &sets);
    }
    if status::is_complete(deployment, &deployment["status"]) {
        history::clean(scene, deployment, &sets);
    }
    status::write(scene, key, deployment, &sets);
}

/// Makes the `ReplicaSet` of the present template.
fn make(scene: &mut Scene<'_>, key: &Key, deployment: &Value, sets: &Sets) {
    let template = &deployment["spec"]["template"];
    let hash = hash(template, number(deployment, "/status/collisionCount"));
    let set_name = format!("{}-{hash}", name(deployment));
    if scene.objects.find(Kind::ReplicaSet, &key.namespace, &set_name).is_some() {
        // Another template with the same hash, or one that is being deleted.
        let mut status = deployment["status"].clone();
        status["collisionCount"] = json!(number(&status, "/collisionCount") + 1);
        return scene.status(BY, key.clone(), deployment, status);
    }
    let mut body = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": set_name, "namespace": &*key.namespace, "labels": template["metadata"]["labels"],
            "ownerReferences": [controlled_by(deployment, Kind::Deployment)],
        },
        "spec": {"selector": deployment["spec"]["selector"], "template": template},
    });
    let least = number(deployment, "/spec/minReadySeconds");
    if least > 0 {
        body["spec"]["minReadySeconds"] = json!(least);
    }
    set(&mut body, "labels", HASH, &hash);
    set(&mut body["spec"]["template"], "labels", HASH, &hash);
    body["spec"]["selector"]["matchLabels"][HASH] = Value::from(hash);
    body["spec"]["replicas"] = json!(rollout::replicas_of_new(deployment, sets.all(), 0));
    let revision = (history::newest(sets) + 1).to_string();
    history::copy_annotations(&mut body, deployment);
    set(&mut body, "annotations", REVISION, &revision);
    rollout::note_sizes(&mut body, deployment);
    scene.create(BY, Kind::ReplicaSet, body);
    let mut next = deployment.clone();
    set(&mut next, "annotations", REVISION, &revision);
    if has_deadline(deployment) {
        let message = format!("Created new replica set \"{set_name}\"");
        conditions::set(
            &mut next["status"],
            status::condition(scene, "Progressing", "True", ("NewReplicaSetCreated", &message)),
        );
    }
    scene.write(super::write::Author::Controller(BY), key.clone(), super::write::Verb::UpdateStatus, next);
}

/// Whether a `ReplicaSet` has this template, apart from the label [`HASH`].
fn has_template(set: &Value, template: &Value) -> bool {
    let bare = |template: &Value| {
        let mut template = template.clone();
        if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
            labels.remove(HASH);
        }
        template
    };
    bare(&set["spec"]["template"]) == bare(template)
}

fn has_deadline(deployment: &Value) -> bool {
    deployment["spec"]["progressDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds != i64::from(i32::MAX))
}

fn is_rolling(deployment: &Value) -> bool {
    text(deployment, "/spec/strategy/type") != "Recreate"
}

/// The allowed number of Pods above the wanted number (surge), and the number of Pods that may be unavailable.
fn room(deployment: &Value) -> (i64, i64) {
    let wanted = number(deployment, "/spec/replicas");
    if !is_rolling(deployment) {
        return (0, 0);
    }
    let rolling = &deployment["spec"]["strategy"]["rollingUpdate"];
    let (surge, unavailable) =
        (share(&rolling["maxSurge"], wanted, true), share(&rolling["maxUnavailable"], wanted, false));
    // Otherwise the rollout could not progress.
    let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
    (surge, if wanted == 0 { 0 } else { unavailable.min(wanted) })
}

fn revision(set: &Value) -> i64 {
    annotation(set, REVISION).parse().unwrap_or(0)
}
