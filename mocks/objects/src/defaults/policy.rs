//! What rights, limits, priorities and nodes have without being asked.

use serde_json::{Value, json};

use super::{each, set, shown_empty};

const RIGHTS: &str = "rbac.authorization.k8s.io";

pub(super) fn role(value: &mut Value) {
    shown_empty(value, &[], "rules");
}

pub(super) fn binding(value: &mut Value) {
    set(value, &["roleRef"], "apiGroup", json!(RIGHTS));
    each(value, "subjects", |subject| {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            set(subject, &[], "apiGroup", json!(RIGHTS));
        }
    });
}

/// The limits of containers follow from each other.
pub(super) fn limits(value: &mut Value) {
    let Some(spec) = value.get_mut("spec") else { return };
    each(spec, "limits", |limit| {
        if limit["type"] != "Container" {
            return;
        }
        for (target, source) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
            for (resource, amount) in limit[source].as_object().cloned().into_iter().flatten() {
                set(limit, &[target], &resource, amount);
            }
        }
    });
}

/// A new node: what its kubelet has not said yet, and the taint that the admission plugin `TaintNodesByCondition` adds.
pub(super) fn node(value: &mut Value, is_new: bool) {
    set(value, &["spec"], "taints", json!([]));
    let not_ready = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    if let Some(taints) = value.pointer_mut("/spec/taints").and_then(Value::as_array_mut) {
        if is_new && !taints.contains(&not_ready) {
            taints.push(not_ready);
        }
        if taints.is_empty()
            && let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut)
        {
            spec.remove("taints");
        }
    }
    if let Some(range @ Value::String(_)) = value.pointer("/spec/podCIDR").cloned() {
        set(value, &["spec"], "podCIDRs", json!([range]));
    }
    set(value, &["status", "daemonEndpoints", "kubeletEndpoint"], "Port", json!(0));
    for key in [
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ] {
        set(value, &["status", "nodeInfo"], key, json!(""));
    }
}

pub(super) fn api_service(value: &mut Value) {
    if value.pointer("/spec/service").is_some_and(Value::is_object) {
        set(value, &["spec", "service"], "port", json!(443));
    }
}

pub(super) fn disruption_budget(value: &mut Value) {
    for key in ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"] {
        set(value, &["status"], key, json!(0));
    }
}
