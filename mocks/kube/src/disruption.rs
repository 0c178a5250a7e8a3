//! The status of `PodDisruptionBudget`s, which the controller of a real cluster writes (Kubernetes documentation,
//! "Specifying a Disruption Budget for your Application").
//!
//! Owns the numbers of a budget's pods: existing, healthy, and wanted by their owners. `verbs::evict` subtracts
//! evictions from the allowed disruptions.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mock_objects::catalogue::{Catalogue, Resource};
use mock_objects::object;
use mock_objects::selector::{from_label_selector, labels_match};
use mock_store::{Expect, Version};
use serde_json::{Map, Value, json};

use super::cluster::Cluster;

const BUDGETS: &str = "poddisruptionbudgets.policy";
/// Time for which an evicted pod counts as disrupted if no client deletes the pod (`DeletionTimeout` of the
/// controller).
const DISRUPTED_FOR: SignedDuration = SignedDuration::from_mins(2);

/// Writes the status of every budget whose stored status is outdated.
pub(crate) fn refresh(cluster: &Cluster) {
    let catalogue = cluster.catalogue();
    let Some(resource) = catalogue.by_full_name(BUDGETS) else { return };
    let now = Timestamp::now();
    for version in list(cluster, resource, None) {
        let mut budget = version.value();
        let status = status(cluster, &catalogue, &budget, now);
        if budget["status"] != status {
            budget["status"] = status;
            // After a lost race it is looked at again.
            let _ = cluster.put(resource, Expect::Revision(version.revision), budget);
        }
    }
}

fn list(cluster: &Cluster, resource: &Resource, namespace: Option<&str>) -> Vec<Arc<Version>> {
    let page = cluster.read(|store| store.list(resource.id, namespace, store.revision(), None, usize::MAX, |_| true));
    page.map(|page| page.items).unwrap_or_default()
}

/// The status that the controller of a real cluster would write for a budget.
fn status(cluster: &Cluster, catalogue: &Catalogue, budget: &Value, now: Timestamp) -> Value {
    let selector = &budget["spec"]["selector"];
    let wanted = from_label_selector(selector).ok().filter(|_| selector.is_object());
    let mut pods = Vec::new();
    if let (Some(wanted), Some(resource)) = (wanted, catalogue.by_full_name("pods")) {
        pods = list(cluster, resource, Some(object::meta(budget, "namespace")));
        pods.retain(|pod| labels_match(&wanted, |key| pod.label(key)));
    }
    let pods: Vec<Value> = pods.iter().map(|pod| pod.value()).collect();
    let disrupted = disrupted(budget, &pods, now);
    let healthy = pods.iter().filter(|pod| is_healthy(pod, &disrupted)).count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let generation = &budget["metadata"]["generation"];
    let counted = expected(cluster, catalogue, &budget["spec"], &pods);
    let Ok((expected, desired)) = counted else {
        // The controller cannot count: nothing may be disrupted until it can.
        let mut status = budget["status"].clone();
        status["disruptionsAllowed"] = json!(0);
        let why = counted.err().unwrap_or_default();
        status["conditions"] = conditions(budget, ("False", "SyncFailed", &why), &status["observedGeneration"], now);
        return status;
    };
    let allowed = if expected <= 0 { 0 } else { healthy.saturating_sub(desired).max(0) };
    let shown = if allowed > 0 { ("True", "SufficientPods", "") } else { ("False", "InsufficientPods", "") };
    let mut status = json!({
        "conditions": conditions(budget, shown, generation, now),
        "currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed, "expectedPods": expected,
        "observedGeneration": generation,
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = Value::Object(disrupted);
    }
    status
}

/// The pods that were evicted recently, still exist and are not being deleted, with the times of their evictions.
fn disrupted(budget: &Value, pods: &[Value], now: Timestamp) -> Map<String, Value> {
    let noted = budget.pointer("/status/disruptedPods").and_then(Value::as_object).cloned().unwrap_or_default();
    let is_recent = |time: &Value| {
        let since = time.as_str().and_then(|time| time.parse::<Timestamp>().ok());
        since.is_some_and(|since| now.duration_since(since) < DISRUPTED_FOR)
    };
    let exists = |name: &str| pods.iter().any(|pod| object::meta(pod, "name") == name && !object::is_deleting(pod));
    noted.into_iter().filter(|(name, time)| exists(name) && is_recent(time)).collect()
}

fn is_healthy(pod: &Value, disrupted: &Map<String, Value>) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    !object::is_deleting(pod)
        && !disrupted.contains_key(object::meta(pod, "name"))
        && conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The `(expected, desired)` numbers of pods; the error says why the pods cannot be counted.
fn expected(cluster: &Cluster, catalogue: &Catalogue, spec: &Value, pods: &[Value]) -> Result<(i64, i64), String> {
    let (most_missing, least) = (&spec["maxUnavailable"], &spec["minAvailable"]);
    if !most_missing.is_null() {
        let expected = scale(cluster, catalogue, pods)?;
        return Ok((expected, expected.saturating_sub(share(most_missing, expected)).max(0)));
    }
    match least.as_i64() {
        Some(least) => Ok((i64::try_from(pods.len()).unwrap_or(i64::MAX), least)),
        None if least.is_null() => Ok((0, 0)),
        None => {
            let expected = scale(cluster, catalogue, pods)?;
            Ok((expected, share(least, expected)))
        }
    }
}

/// Reads a number, or a percentage of `whole` that is rounded up.
fn share(value: &Value, whole: i64) -> i64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    percent.map_or_else(
        || value.as_i64().unwrap_or(0),
        |percent| {
            let product = percent.saturating_mul(whole);
            product.div_euclid(100) + i64::from(product % 100 > 0)
        },
    )
}

/// The sum of the replicas that the owners of the pods want. Pods without an owner do not count.
fn scale(cluster: &Cluster, catalogue: &Catalogue, pods: &[Value]) -> Result<i64, String> {
    let mut wanted: BTreeMap<String, i64> = BTreeMap::new();
    for pod in pods {
        let Some(owner) = controller(pod) else { continue };
        let namespace = object::meta(pod, "namespace");
        let found = replicas(cluster, catalogue, namespace, owner);
        let Some((uid, replicas)) = found else {
            return Err(format!("found no controllers for pod {:?}", object::meta(pod, "name")));
        };
        wanted.insert(uid, replicas);
    }
    Ok(wanted.values().fold(0, |sum, replicas| sum.saturating_add(*replicas)))
}

fn controller(value: &Value) -> Option<&Value> {
    let owners = value["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)
}

/// `(uid, replicas)` of a pod's owner. If the owner is a `ReplicaSet` of a `Deployment`, the values are the
/// `Deployment`'s. No other owner of an owner is searched, so owners that own each other cause no endless search.
fn replicas(cluster: &Cluster, catalogue: &Catalogue, namespace: &str, owner: &Value) -> Option<(String, i64)> {
    let (resource, value) = found(cluster, catalogue, namespace, owner)?;
    if &*resource.full_name == "replicasets.apps"
        && let Some(above) = controller(&value)
        && let Some((deployments, deployment)) = found(cluster, catalogue, namespace, above)
        && &*deployments.full_name == "deployments.apps"
    {
        return wanted_by(deployments, &deployment);
    }
    wanted_by(resource, &value)
}

/// The object that an owner reference names.
fn found<'a>(
    cluster: &Cluster,
    catalogue: &'a Catalogue,
    namespace: &str,
    owner: &Value,
) -> Option<(&'a Resource, Value)> {
    let text = |key: &str| owner[key].as_str().unwrap_or_default();
    let resource = catalogue.by_kind(text("apiVersion"), text("kind"))?;
    let value = cluster.get(resource, namespace, text("name"))?.value();
    (object::meta(&value, "uid") == text("uid")).then_some((resource, value))
}

fn wanted_by(resource: &Resource, value: &Value) -> Option<(String, i64)> {
    let place = &resource.storage_version().scale.as_ref()?.spec_replicas;
    let replicas = value.pointer(place).and_then(Value::as_i64).unwrap_or(0);
    Some((object::meta(value, "uid").to_owned(), replicas))
}

/// The conditions of a budget with this `DisruptionAllowed` condition. The time of the condition changes only if its
/// status changes.
fn conditions(budget: &Value, shown: (&str, &str, &str), generation: &Value, now: Timestamp) -> Value {
    let (is, reason, message) = shown;
    let mut all = budget.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let kind = "DisruptionAllowed";
    let old = all.iter().position(|condition| condition["type"] == kind);
    let since = old.map(|at| &all[at]).filter(|old| old["status"] == is).map(|old| old["lastTransitionTime"].clone());
    let condition = json!({
        "lastTransitionTime": since.unwrap_or_else(|| Value::from(object::seconds(now))), "message": message,
        "observedGeneration": generation, "reason": reason, "status": is, "type": kind,
    });
    match old {
        Some(at) => all[at] = condition,
        None => all.push(condition),
    }
    Value::from(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_up() {
        for (value, whole, expected) in
            [(json!(2), 9, 2), (json!("50%"), 3, 2), (json!("0%"), 3, 0), (json!("100%"), 3, 3)]
        {
            assert_eq!(share(&value, whole), expected, "{value} of {whole}");
        }
        assert!(share(&json!("100%"), i64::MAX) > 0, "no overflow");
    }
}
