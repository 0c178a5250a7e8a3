//! Sets fields of a whole pod that follow from its containers.

use mock_cel::Quantity;
use serde_json::{Value, json};

use super::super::pod_spec;
use crate::fields::{each, set};

/// Sets missing requests and limits of the whole pod if the pod has other requests or limits already (KEP-2837,
/// "Proposed Validation & Defaulting Rules").
pub(super) fn fill(spec: &mut Value) {
    let given = |spec: &Value, which: &str| spec["resources"][which].as_object().cloned().unwrap_or_default();
    let (mut limits, mut requests) = (given(spec, "limits"), given(spec, "requests"));
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    for (name, sum) in pod_spec::total::of(spec, "limits") {
        let pages = pod_spec::of_whole_pod(name) && !pod_spec::overcommits(name);
        if pages && !requests.contains_key(name) {
            limits.entry(name).or_insert_with(|| sum.canonical().into());
        }
    }
    if limits.is_empty() {
        return;
    }
    for (name, sum) in pod_spec::total::of(spec, "requests") {
        if pod_spec::of_whole_pod(name) && pod_spec::overcommits(name) {
            requests.entry(name).or_insert_with(|| sum.canonical().into());
        }
    }
    for (name, limit) in limits.iter().filter(|(name, _)| pod_spec::of_whole_pod(name)) {
        requests.entry(name).or_insert_with(|| limit.clone());
    }
    spec["resources"]["limits"] = Value::from(limits);
    if !requests.is_empty() {
        spec["resources"]["requests"] = Value::from(requests);
    }
}

/// Converts the old `AppArmor` annotations of containers into the field that replaced them.
pub(super) fn confine(pod: &mut Value) {
    if pod["spec"]["os"]["name"] == "windows" {
        return;
    }
    let annotations = pod["metadata"]["annotations"].clone();
    let whole = pod.pointer("/spec/securityContext/appArmorProfile").cloned();
    let Some(spec) = pod.get_mut("spec") else { return };
    for list in ["initContainers", "containers"] {
        each(spec, list, |container| {
            let name = container["name"].as_str().unwrap_or_default();
            let Some(said) = annotations[format!("{}{name}", pod_spec::APP_ARMOR_OF)].as_str() else { return };
            let profile = match said {
                "runtime/default" => json!({"type": "RuntimeDefault"}),
                "unconfined" => json!({"type": "Unconfined"}),
                _ => match said.strip_prefix("localhost/") {
                    Some(name) => json!({"type": "Localhost", "localhostProfile": name}),
                    None => return,
                },
            };
            if pod_spec::app_armor_faults(&profile) == 0 && whole.as_ref() != Some(&profile) {
                set(container, &["securityContext"], "appArmorProfile", profile);
            }
        });
    }
}

/// Copies each limit of a container that has no request into the requests.
pub(super) fn requests(container: &mut Value) {
    let limits = container.pointer("/resources/limits").and_then(Value::as_object).cloned().unwrap_or_default();
    for (resource, amount) in limits {
        set(container, &["resources", "requests"], &resource, amount);
    }
}

/// The quality-of-service class of a pod ("Pod Quality of Service Classes").
pub(super) fn quality(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    // Pod-level resources replace those of the containers.
    let all: Vec<&Value> = if spec["resources"].is_object() {
        vec![spec]
    } else {
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(|list| spec[list].as_array().into_iter().flatten())
            .collect()
    };
    let amount = |of: &Value, which: &str, resource: &str| {
        let amount = of["resources"][which][resource].as_str().and_then(Quantity::parse);
        amount.filter(|amount| amount.signum() > 0)
    };
    let sum =
        |which: &str, resource: &str| all.iter().filter_map(|of| amount(of, which, resource)).reduce(Quantity::plus);
    let limited = |of: &&Value| ["cpu", "memory"].into_iter().all(|resource| amount(of, "limits", resource).is_some());
    let sums = ["cpu", "memory"].map(|resource| (sum("requests", resource), sum("limits", resource)));
    if sums == [(None, None); 2] {
        "BestEffort"
    } else if all.iter().all(limited) && sums.iter().all(|(requests, limits)| requests == limits) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
