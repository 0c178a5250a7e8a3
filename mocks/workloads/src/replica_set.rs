//! `ReplicaSet`s: a number of equal Pods.

use std::sync::Arc;

use serde_json::{Value, json};

use super::conditions;
use super::fields::{is_deleting, map, number, put, selects};
use super::kind::{Key, Kind};
use super::pod;
use super::scene::Scene;
use super::template;

const BY: &str = "replicaset-controller";
const FAILURE: &str = "ReplicaFailure";

pub(super) fn look(scene: &mut Scene<'_>, key: &Key, set: &Value) {
    let mut pods = scene.objects.owned(set, Kind::Pod);
    pods.retain(|pod| pod::is_active(pod) && selects(&set["spec"]["selector"], &pod["metadata"]["labels"]));
    let wanted = number(set, "/spec/replicas");
    let is = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    if !is_deleting(set) {
        for _ in (is..wanted).take(scene.room()) {
            let mut body = template::pod(set, Kind::ReplicaSet, &set["spec"]["template"]);
            body["metadata"]["generateName"] = Value::from(format!("{}-", key.name));
            scene.create(BY, Kind::Pod, body);
        }
        let too_many = usize::try_from(is - wanted).unwrap_or(0);
        let mut order: Vec<&Arc<Value>> = pods.iter().collect();
        order.sort_by_key(|pod| pod::rank(pod));
        for pod in order.into_iter().take(too_many) {
            scene.delete(BY, Kind::Pod, pod);
        }
    }
    let status = status(scene, set, &pods);
    // Last: newly made Pods are counted when they exist.
    scene.status(BY, key.clone(), set, status);
}

fn status(scene: &mut Scene<'_>, set: &Value, pods: &[Arc<Value>]) -> Value {
    let least = number(set, "/spec/minReadySeconds");
    let (ready, ripe) = pod::count(scene, pods.iter().map(|pod| &**pod), least);
    let labels = map(set, "/spec/template/metadata/labels");
    let labelled =
        |pod: &&Arc<Value>| labels.iter().all(|(key, value)| pod["metadata"]["labels"].get(key) == Some(value));
    let all = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let mut status = json!({"replicas": all});
    if let Some(known) = set["status"].get("conditions") {
        status["conditions"] = known.clone();
    }
    if let Some(fields) = status.as_object_mut() {
        put(fields, "fullyLabeledReplicas", pods.iter().filter(labelled).count().try_into().unwrap_or(i64::MAX));
        put(fields, "readyReplicas", ready);
        put(fields, "availableReplicas", ripe);
        put(fields, "observedGeneration", number(set, "/metadata/generation"));
    }
    match scene.refused.filter(|_| all != number(set, "/spec/replicas")) {
        Some(why) if conditions::find(&status, FAILURE).is_none() => {
            let reason = if all < number(set, "/spec/replicas") { "FailedCreate" } else { "FailedDelete" };
            let failure = conditions::new(FAILURE, "True", (reason, why), &["lastTransitionTime"], scene.now);
            conditions::set(&mut status, failure);
        }
        Some(_) => {}
        None => conditions::remove(&mut status, FAILURE),
    }
    status
}
