//! `metadata.managedFields`: the managers of fields, in the format `FieldsV1` of server-side apply. Pure: no I/O.
//!
//! The output of kube-apiserver 1.20 for the same objects decides which lists are maps by a key, and which items have a
//! `.`. Releases after 1.20 write the same format.

use serde_json::{Map, Value, json};

use super::{CREATED, Kind};

/// The field manager of `kubectl apply --server-side`, which leaves no annotation.
pub(super) const SERVER_SIDE: &str = "kubectl";

/// Structs that Go stores by value, for which `managedFields` has no `.`.
const BY_VALUE: [&str; 9] =
    ["metadata", "spec", "template", "jobTemplate", "strategy", "updateStrategy", "status", "names", "loadBalancer"];
/// Fields of metadata that no manager owns.
const UNOWNED: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Lists that every object of their kind has, for which `managedFields` has no `.`.
const ALWAYS_THERE: [&str; 2] = ["containers", "conditions"];

/// How the schema of a kind is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Schema {
    BuiltIn,
    /// The schema below the template of a `ReplicationController`, the only template that Go stores by a pointer.
    ByPointer,
    /// The schema of custom resources: every list is one field.
    Custom,
}

/// The entry in `managedFields` for the manager that set the fields in `part`.
pub(in crate::admission) fn entry(manager: &str, kind: Kind, part: &Value) -> Value {
    let operation = if manager == SERVER_SIDE { "Apply" } else { "Update" };
    json!({
        "manager": manager, "operation": operation, "apiVersion": kind.api_version(), "time": CREATED,
        "fieldsType": "FieldsV1", "fieldsV1": root(part, kind)
    })
}

fn root(part: &Value, kind: Kind) -> Value {
    let schema = if kind == Kind::Worker { Schema::Custom } else { Schema::BuiltIn };
    let mut owned = Map::new();
    for (key, value) in part.as_object().into_iter().flatten() {
        let inner = match key.as_str() {
            "apiVersion" | "kind" => continue,
            "metadata" => metadata(value),
            "spec" if kind == Kind::ReplicationController => replication(value),
            _ => fields(key, value, schema),
        };
        if !is_left_out(key, &inner) {
            owned.insert(format!("f:{key}"), inner);
        }
    }
    owned.into()
}

fn metadata(value: &Value) -> Value {
    let owned = value.as_object().into_iter().flatten().filter(|(key, _)| !UNOWNED.contains(&key.as_str()));
    owned.map(|(key, inner)| (format!("f:{key}"), fields(key, inner, Schema::BuiltIn))).collect::<Map<_, _>>().into()
}

fn replication(spec: &Value) -> Value {
    let of = |key: &str| if key == "template" { Schema::ByPointer } else { Schema::BuiltIn };
    let members = spec.as_object().into_iter().flatten();
    members.map(|(key, inner)| (format!("f:{key}"), fields(key, inner, of(key)))).collect::<Map<_, _>>().into()
}

/// Whether a struct that is always present is left out, because no field in it is owned.
fn is_left_out(key: &str, inner: &Value) -> bool {
    ["metadata", "spec"].contains(&key) && inner.as_object().is_some_and(Map::is_empty)
}

fn fields(name: &str, value: &Value, schema: Schema) -> Value {
    match value {
        // Label selectors are one field.
        Value::Object(map) if map.contains_key("matchLabels") && schema != Schema::Custom => json!({}),
        Value::Object(map) => {
            let mut owned = Map::new();
            if !map.is_empty() && (schema != Schema::BuiltIn || !BY_VALUE.contains(&name)) {
                owned.insert(".".to_owned(), json!({}));
            }
            let unset = |key: &str, inner: &Value| key == "creationTimestamp" && inner.is_null();
            for (key, inner) in map.iter().filter(|(key, inner)| schema == Schema::ByPointer || !unset(key, inner)) {
                let inner = fields(key, inner, schema);
                if !is_left_out(key, &inner) {
                    owned.insert(format!("f:{key}"), inner);
                }
            }
            owned.into()
        }
        Value::Array(items) if schema != Schema::Custom => {
            let keys = list_keys(name, items);
            let mut owned = Map::new();
            if keys.is_empty() {
                return owned.into();
            }
            if schema == Schema::ByPointer || !ALWAYS_THERE.contains(&name) {
                owned.insert(".".to_owned(), json!({}));
            }
            for item in items {
                let key: Map<_, _> = keys.iter().map(|key| ((*key).to_owned(), item[key].clone())).collect();
                let mut inner = fields("", item, schema);
                inner["."] = json!({});
                owned.insert(format!("k:{}", Value::from(key)), inner);
            }
            owned.into()
        }
        _ => json!({}),
    }
}

/// The fields that identify the items of a list; empty for lists that are one field.
fn list_keys(name: &str, items: &[Value]) -> &'static [&'static str] {
    let keys: &[&str] = match name {
        "containers" | "initContainers" | "ephemeralContainers" | "env" | "volumes" | "imagePullSecrets" => &["name"],
        "volumeMounts" => &["mountPath"],
        "ports" if items.iter().any(|item| !item["containerPort"].is_null()) => &["containerPort", "protocol"],
        "ports" => &["port", "protocol"],
        "conditions" => &["type"],
        "ownerReferences" => &["uid"],
        "hostAliases" | "podIPs" => &["ip"],
        "topologySpreadConstraints" => &["topologyKey", "whenUnsatisfiable"],
        _ => &[],
    };
    if items.iter().all(|item| keys.iter().all(|key| !item[key].is_null())) { keys } else { &[] }
}
