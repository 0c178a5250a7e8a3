//! How lists of built-in types merge: by which key, or as a set.
//!
//! Owns the table, read from the API reference ("patch strategy: merge", "patch merge key"). Lists that are not in
//! it are replaced as a whole, which is also the rule of custom resources without list types.

use crate::kube::catalogue::Resource;

/// How the items of a list find their partners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListRule {
    /// By the value of this field.
    ByKey(&'static str),
    /// Items are plain values; the list is a set.
    Set,
    /// The whole list is one value.
    Atomic,
}

/// `(field name, rule)` inside a pod spec, at any depth below it.
const POD_SPEC: &[(&str, ListRule)] = &[
    ("containers", ListRule::ByKey("name")),
    ("initContainers", ListRule::ByKey("name")),
    ("ephemeralContainers", ListRule::ByKey("name")),
    ("volumes", ListRule::ByKey("name")),
    ("imagePullSecrets", ListRule::ByKey("name")),
    ("hostAliases", ListRule::ByKey("ip")),
    ("topologySpreadConstraints", ListRule::ByKey("topologyKey")),
    ("env", ListRule::ByKey("name")),
    ("ports", ListRule::ByKey("containerPort")),
    ("volumeMounts", ListRule::ByKey("mountPath")),
    ("volumeDevices", ListRule::ByKey("devicePath")),
    ("schedulingGates", ListRule::ByKey("name")),
    ("resourceClaims", ListRule::ByKey("name")),
];

/// Whether the object in this field of a built-in type is one value: selectors are (`structType: atomic` of the type
/// `LabelSelector`), because half of one would mean something else.
pub(super) fn is_one_value(resource: &Resource, field: &str) -> bool {
    !resource.custom && matches!(field, "selector" | "podSelector" | "namespaceSelector" | "labelSelector")
}

/// Whether a value can be what an item is known by: plain values only, an object would have owners inside it.
pub(super) fn is_key(value: &serde_json::Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// The rule of the list at `path` (field names only, without indices) of a resource.
pub(super) fn list_rule(resource: &Resource, path: &[&str]) -> ListRule {
    if resource.custom {
        return ListRule::Atomic;
    }
    let Some(field) = path.last() else { return ListRule::Atomic };
    match path {
        ["metadata", "finalizers"] => return ListRule::Set,
        ["metadata", "ownerReferences"] => return ListRule::ByKey("uid"),
        ["status", "conditions"] if !matches!(&*resource.kind, "Event") => return ListRule::ByKey("type"),
        _ => {}
    }
    let in_pod_spec = match &*resource.kind {
        "Pod" => path.first() == Some(&"spec"),
        "CronJob" => path.starts_with(&["spec", "jobTemplate", "spec", "template", "spec"]),
        "PodTemplate" => path.starts_with(&["template", "spec"]),
        _ => path.starts_with(&["spec", "template", "spec"]),
    };
    if in_pod_spec {
        return POD_SPEC.iter().find(|(name, _)| name == field).map_or(ListRule::Atomic, |(_, rule)| *rule);
    }
    match (&*resource.kind, path) {
        ("Service", ["spec", "ports"]) => ListRule::ByKey("port"),
        ("ServiceAccount", ["secrets"])
        | ("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration", ["webhooks"]) => ListRule::ByKey("name"),
        ("Node", ["spec", "taints"]) => ListRule::ByKey("key"),
        ("Node" | "Pod", ["status", "addresses"]) => ListRule::ByKey("type"),
        _ => ListRule::Atomic,
    }
}
