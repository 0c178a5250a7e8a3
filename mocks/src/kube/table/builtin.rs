//! Columns of the built-in resources that people look at most, between `Name` and `Age`.

use jiff::Timestamp;
use serde_json::Value;

use crate::kube::catalogue::Resource;

/// `(name, priority)`; priority 1 shows with `-o wide` only.
type Columns = &'static [(&'static str, i64)];

pub(super) fn columns(resource: &Resource) -> Columns {
    match &*resource.full_name {
        "pods" => &[
            ("Ready", 0),
            ("Status", 0),
            ("Restarts", 0),
            ("IP", 1),
            ("Node", 1),
            ("Nominated Node", 1),
            ("Readiness Gates", 1),
        ],
        "namespaces" | "persistentvolumeclaims" | "nodes" => &[("Status", 0)],
        "configmaps" => &[("Data", 0)],
        "serviceaccounts" => &[("Secrets", 0)],
        "secrets" => &[("Type", 0), ("Data", 0)],
        "services" => &[("Type", 0), ("Cluster-IP", 0), ("External-IP", 0), ("Port(s)", 0)],
        "deployments.apps" => {
            &[("Ready", 0), ("Up-to-date", 0), ("Available", 0), ("Containers", 1), ("Images", 1), ("Selector", 1)]
        }
        "replicasets.apps" => &[("Desired", 0), ("Current", 0), ("Ready", 0)],
        "statefulsets.apps" => &[("Ready", 0)],
        "leases.coordination.k8s.io" => &[("Holder", 0)],
        "customresourcedefinitions.apiextensions.k8s.io" => &[("Created At", 0)],
        "networkpolicies.networking.k8s.io" => &[("Pod-Selector", 0)],
        "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io" => &[("Role", 0)],
        "validatingwebhookconfigurations.admissionregistration.k8s.io"
        | "mutatingwebhookconfigurations.admissionregistration.k8s.io" => &[("Webhooks", 0)],
        _ => &[],
    }
}

pub(super) fn cells(value: &Value, resource: &Resource) -> Vec<Value> {
    let at = |pointer: &str| value.pointer(pointer);
    let text = |pointer: &str, absent: &str| Value::from(at(pointer).and_then(Value::as_str).unwrap_or(absent));
    let number = |pointer: &str| at(pointer).and_then(Value::as_i64).unwrap_or(0);
    let entries = |pointer: &str| at(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len);
    let items = |pointer: &str| at(pointer).and_then(Value::as_array).map_or(0, Vec::len);
    let of = |ready: &str, wanted: &str| Value::from(format!("{}/{}", number(ready), number(wanted)));
    match &*resource.full_name {
        "pods" => pod(value),
        "namespaces" | "persistentvolumeclaims" => vec![text("/status/phase", "")],
        "nodes" => vec![Value::from(if condition(value, "Ready") { "Ready" } else { "NotReady" })],
        "configmaps" => vec![Value::from(entries("/data") + entries("/binaryData"))],
        "serviceaccounts" => vec![Value::from(items("/secrets"))],
        "secrets" => vec![text("/type", ""), Value::from(entries("/data"))],
        "services" => {
            let ports = at("/spec/ports").and_then(Value::as_array).into_iter().flatten();
            let ports: Vec<String> =
                ports.map(|port| format!("{}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP"))).collect();
            let external = Value::from("<none>");
            vec![text("/spec/type", ""), text("/spec/clusterIP", "<none>"), external, Value::from(ports.join(","))]
        }
        "deployments.apps" => vec![
            of("/status/readyReplicas", "/spec/replicas"),
            Value::from(number("/status/updatedReplicas")),
            Value::from(number("/status/availableReplicas")),
            Value::from(containers(value, "name")),
            Value::from(containers(value, "image")),
            Value::from(labels(at("/spec/selector/matchLabels"))),
        ],
        "replicasets.apps" => vec![
            Value::from(number("/spec/replicas")),
            Value::from(number("/status/replicas")),
            Value::from(number("/status/readyReplicas")),
        ],
        "statefulsets.apps" => vec![of("/status/readyReplicas", "/spec/replicas")],
        "leases.coordination.k8s.io" => vec![text("/spec/holderIdentity", "")],
        "customresourcedefinitions.apiextensions.k8s.io" => vec![text("/metadata/creationTimestamp", "")],
        "networkpolicies.networking.k8s.io" => {
            vec![Value::from(labels(at("/spec/podSelector/matchLabels")))]
        }
        "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io" => {
            let part = |key: &str| value["roleRef"][key].as_str().unwrap_or_default();
            vec![Value::from(format!("{}/{}", part("kind"), part("name")))]
        }
        "validatingwebhookconfigurations.admissionregistration.k8s.io"
        | "mutatingwebhookconfigurations.admissionregistration.k8s.io" => vec![Value::from(items("/webhooks"))],
        _ => Vec::new(),
    }
}

/// One field of all containers of a template.
fn containers(value: &Value, field: &str) -> String {
    let list = value.pointer("/spec/template/spec/containers").and_then(Value::as_array).into_iter().flatten();
    list.map(|container| container[field].as_str().unwrap_or_default()).collect::<Vec<_>>().join(",")
}

fn labels(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let labels: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if labels.is_empty() { "<none>".to_owned() } else { labels.join(",") }
}

fn pod(value: &Value) -> Vec<Value> {
    let statuses = value.pointer("/status/containerStatuses").and_then(Value::as_array);
    let ready = statuses.into_iter().flatten().filter(|status| status["ready"] == Value::Bool(true)).count();
    let restarts: i64 = statuses.into_iter().flatten().filter_map(|status| status["restartCount"].as_i64()).sum();
    let wanted = value.pointer("/spec/containers").and_then(Value::as_array).map_or(0, Vec::len);
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or("<none>").to_owned();
    let phase = if crate::kube::object::is_deleting(value) { "Terminating".to_owned() } else { text("/status/phase") };
    let ip = text("/status/podIP");
    vec![
        format!("{ready}/{wanted}").into(),
        phase.into(),
        restarts.into(),
        ip.into(),
        text("/spec/nodeName").into(),
        "<none>".into(),
        "<none>".into(),
    ]
}

/// The columns of events stand in an order of their own, and the name comes last.
pub(super) const EVENT: Columns = &[
    ("Last Seen", 0),
    ("Type", 0),
    ("Reason", 0),
    ("Object", 0),
    ("Subobject", 1),
    ("Source", 1),
    ("Message", 0),
    ("First Seen", 1),
    ("Count", 1),
    ("Name", 1),
];

/// Whether a resource is one of the two APIs of events.
pub(super) fn is_event(resource: &Resource) -> bool {
    matches!(&*resource.full_name, "events" | "events.events.k8s.io")
}

/// All cells of an event.
pub(super) fn event(value: &Value, now: Timestamp) -> Vec<Value> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let or = |one: &'static str, other: &'static str| if text(one).is_empty() { text(other) } else { text(one) };
    let first = or("/firstTimestamp", "/eventTime");
    let counted = |pointer: &str| value.pointer(pointer).and_then(Value::as_i64);
    let (last, count) = match counted("/series/count") {
        Some(count) => (text("/series/lastObservedTime"), count),
        None if text("/lastTimestamp").is_empty() => (first, counted("/count").unwrap_or(1)),
        None => (text("/lastTimestamp"), counted("/count").unwrap_or(1)),
    };
    let kind = text("/involvedObject/kind").to_lowercase();
    let name = text("/involvedObject/name");
    let object = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    let source = [or("/source/component", "/reportingComponent"), or("/source/host", "/reportingInstance")];
    let source = if source[1].is_empty() { source[0].to_owned() } else { source.join(", ") };
    vec![
        super::age(last, now).into(),
        text("/type").into(),
        text("/reason").into(),
        object.into(),
        text("/involvedObject/fieldPath").into(),
        source.into(),
        text("/message").trim().into(),
        super::age(first, now).into(),
        count.into(),
        crate::kube::object::meta(value, "name").into(),
    ]
}

fn condition(value: &Value, kind: &str) -> bool {
    let conditions = value.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| condition["type"] == kind && condition["status"] == "True")
}
