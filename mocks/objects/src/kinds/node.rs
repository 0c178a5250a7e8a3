//! `Node`: a machine that runs pods.

use serde_json::{Value, json};

use super::print::{Cells, NONE, Row};
use super::{Generation, Kind};
use crate::fields::set;

pub(super) const NODE: Kind = Kind {
    about: "A machine that runs pods.",
    selectable_unset: &[("spec.unschedulable", "false")],
    keeps_status: true,
    // Its feature is gone.
    disabled: &[("/spec", "configSource")],
    cells: CELLS,
    defaults,
    new,
    generation: Generation::None,
    ..Kind::of("nodes")
};

/// Sets status fields that a kubelet has not reported yet.
fn defaults(value: &mut Value) {
    set(value, &["spec"], "taints", json!([]));
    if value.pointer("/spec/taints").and_then(Value::as_array).is_some_and(Vec::is_empty)
        && let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("taints");
    }
    if let Some(range @ Value::String(_)) = value.pointer("/spec/podCIDR").cloned() {
        set(value, &["spec"], "podCIDRs", json!([range]));
    }
    if let Some(capacity) = value.pointer("/status/capacity").cloned() {
        set(value, &["status"], "allocatable", capacity);
    }
}

/// Adds the taint that the admission plugin `TaintNodesByCondition` adds to new nodes.
fn new(value: &mut Value) {
    let not_ready = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    set(value, &["spec"], "taints", json!([]));
    if let Some(taints) = value.pointer_mut("/spec/taints").and_then(Value::as_array_mut)
        && !taints.contains(&not_ready)
    {
        taints.push(not_ready);
    }
}

const CELLS: Cells = |row| {
    let address = |kind: &str| {
        let found = row.items("/status/addresses").find(|address| address["type"] == kind);
        Value::from(found.and_then(|address| address["address"].as_str()).unwrap_or(NONE))
    };
    let system = |field: &str| row.text_or(&format!("/status/nodeInfo/{field}"), "<unknown>");
    vec![
        row.name(),
        node_status(row).into(),
        node_roles(row).into(),
        row.age(),
        row.text("/status/nodeInfo/kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        system("osImage"),
        system("kernelVersion"),
        system("containerRuntimeVersion"),
    ]
};

fn node_status(row: &Row<'_>) -> String {
    let ready = match row.condition("Ready") {
        None => "Unknown",
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    };
    let stopped = row.at("/spec/unschedulable") == Some(&Value::Bool(true));
    if stopped { format!("{ready},SchedulingDisabled") } else { ready.to_owned() }
}

fn node_roles(row: &Row<'_>) -> String {
    let labels = row.at("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let mut roles: Vec<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { NONE.to_owned() } else { roles.join(",") }
}
