//! `Node`: a machine that runs pods.

use serde_json::{Value, json};

use super::print::{NONE, Printer, Row};
use super::{Generation, Kind};
use crate::fields::set;

pub(super) const NODE: Kind = Kind {
    short_names: &["no"],
    about: "A machine that runs pods.",
    status: true,
    messages: &[
        "Node 1:metadata:ObjectMeta 2:spec:NodeSpec 3:status:NodeStatus",
        "NodeSpec 1:podCIDR:s 2:externalID:s 3:providerID:s 4:unschedulable:b 5:taints:[Taint] \
         6:configSource:NodeConfigSource 7:podCIDRs:[s]",
        "Taint 1:key:s! 2:value:s 3:effect:s! 4:timeAdded:T",
        "NodeConfigSource 2:configMap:ConfigMapNodeConfigSource",
        "ConfigMapNodeConfigSource 1:namespace:s! 2:name:s! 3:uid:s 4:resourceVersion:s 5:kubeletConfigKey:s!",
        "NodeStatus 1:capacity:{Q} 2:allocatable:{Q} 3:phase:s 4:conditions:[NodeCondition] \
         5:addresses:[NodeAddress] 6:daemonEndpoints:NodeDaemonEndpoints 7:nodeInfo:NodeSystemInfo \
         8:images:[ContainerImage] 9:volumesInUse:[s] 10:volumesAttached:[AttachedVolume] 11:config:NodeConfigStatus \
         12:runtimeHandlers:[NodeRuntimeHandler] 13:features:NodeFeatures",
        "NodeCondition 1:type:s! 2:status:s! 3:lastHeartbeatTime:T 4:lastTransitionTime:T 5:reason:s 6:message:s",
        "NodeAddress 1:type:s! 2:address:s!",
        "NodeDaemonEndpoints 1:kubeletEndpoint:DaemonEndpoint",
        "DaemonEndpoint 1:Port:i!",
        "NodeSystemInfo 1:machineID:s! 2:systemUUID:s! 3:bootID:s! 4:kernelVersion:s! 5:osImage:s! \
         6:containerRuntimeVersion:s! 7:kubeletVersion:s! 8:kubeProxyVersion:s! 9:operatingSystem:s! \
         10:architecture:s!",
        "ContainerImage 1:names:[s]! 2:sizeBytes:i",
        "AttachedVolume 1:name:s! 2:devicePath:s!",
        "NodeConfigStatus 1:assigned:NodeConfigSource 2:active:NodeConfigSource 3:lastKnownGood:NodeConfigSource \
         4:error:s",
        "NodeRuntimeHandler 1:name:s! 2:features:NodeRuntimeHandlerFeatures",
        "NodeRuntimeHandlerFeatures 1:recursiveReadOnlyMounts:b? 2:userNamespaces:b?",
        "NodeFeatures 1:supplementalGroupsPolicy:b?",
    ],
    merge_keys: &[(&["status", "addresses"], "type")],
    published_merges: &[
        ("NodeSpec", "podCIDRs", "merge", ""),
        ("NodeStatus", "addresses", "merge", "type"),
        ("NodeStatus", "conditions", "merge", "type"),
    ],
    selectable: &[("spec.unschedulable", &[])],
    selectable_unset: &[("spec.unschedulable", "false")],
    keeps_status: true,
    printer: PRINTER,
    defaults,
    new,
    generation: Generation::None,
    ..Kind::cluster("", &["v1"], "nodes", "Node")
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
    set(value, &["status", "daemonEndpoints", "kubeletEndpoint"], "Port", json!(0));
    for key in "architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion kubeletVersion machineID \
        operatingSystem osImage systemUUID"
        .split(' ')
    {
        set(value, &["status", "nodeInfo"], key, json!(""));
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

const PRINTER: Printer = Printer {
    columns: "Name, Status, Roles, Age, Version, Internal-IP+, External-IP+, OS-Image+, Kernel-Version+, Container-Runtime+",
    cells: |row| {
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
    },
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
