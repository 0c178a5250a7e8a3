//! From `spec.network.allow` to `NetworkPolicy` objects.
//!
//! Pure. A policy's name comes from its content, so that reordering or editing one entry leaves the others alone.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::watch::object::{Allow, Direction, Object};

/// Label that ties a policy to one package, and only to that incarnation of it.
pub(super) const UID_LABEL: &str = "longhaul.dev/package-uid";
/// Label with the generation that the policy was last brought up to.
pub(super) const GENERATION_LABEL: &str = "longhaul.dev/generation";
/// Bytes of the package's name in a policy's name, so that the whole stays under the 253 of a DNS subdomain.
const NAME_BYTES_MAX: usize = 200;

/// A policy to have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Policy {
    pub namespace: String,
    pub name: String,
    pub generation: String,
    pub body: Value,
}

/// One policy for each entry.
pub(super) fn for_package(object: &Object, allow: &[Allow]) -> Vec<Policy> {
    let mut names = BTreeSet::new();
    allow.iter().map(|entry| policy(object, entry, &mut names)).collect()
}

fn policy(object: &Object, entry: &Allow, names: &mut BTreeSet<String>) -> Policy {
    let spec = spec(entry);
    let (direction, _) = words(entry.direction);
    let stem = stem(&object.key.name);
    let mut content = canonical(&spec);
    if stem.len() < object.key.name.len() {
        // What was cut off still tells the policies of two packages apart.
        content.push_str(&object.key.name);
    }
    let hash = hex::encode(&Sha256::digest(content)[..5]);
    let base = format!("{stem}-{}-{hash}", direction.to_lowercase());
    // Equal entries make equal policies; they are counted so that each entry has its own.
    let mut name = base.clone();
    for copy in 2u32.. {
        if names.insert(name.clone()) {
            break;
        }
        name = format!("{base}-{copy}");
    }
    let generation = object.generation.to_string();
    let body = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": name,
            "namespace": &*object.key.namespace,
            "labels": {
                "app.kubernetes.io/managed-by": "longhaul-service",
                (UID_LABEL): &*object.uid,
                (GENERATION_LABEL): generation,
            },
            "annotations": {"longhaul.dev/description": entry.description},
            "ownerReferences": [{
                "apiVersion": "longhaul.dev/v1alpha1",
                "kind": "Package",
                "name": &*object.key.name,
                "uid": &*object.uid,
                "controller": true,
            }],
        },
        "spec": spec,
    });
    Policy { namespace: object.key.namespace.to_string(), name, generation, body }
}

/// The front of a name that something can be appended to with a dash: whole characters, and no dot or dash at its end.
fn stem(name: &str) -> &str {
    let end = name.floor_char_boundary(NAME_BYTES_MAX);
    if end == name.len() { name } else { name[..end].trim_end_matches(['.', '-']) }
}

/// The same text for the same value, whatever the order of its keys.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let sorted: std::collections::BTreeMap<_, _> =
                map.iter().map(|(key, value)| (key, canonical(value))).collect();
            let pairs: Vec<_> = sorted.into_iter().map(|(key, value)| format!("{}:{value}", json!(key))).collect();
            format!("{{{}}}", pairs.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        plain => plain.to_string(),
    }
}

fn spec(entry: &Allow) -> Value {
    let (direction, peers) = words(entry.direction);
    let mut rule = serde_json::Map::new();
    let mut peer = serde_json::Map::new();
    match &entry.remote_namespace {
        Some(namespace) => {
            let labels = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
            peer.insert("namespaceSelector".into(), labels);
        }
        None => drop(peer.insert("namespaceSelector".into(), json!({}))),
    }
    if !entry.remote_labels.is_empty() {
        peer.insert("podSelector".into(), json!({"matchLabels": entry.remote_labels}));
    }
    rule.insert(peers.into(), json!([peer]));
    if let Some(port) = entry.port {
        rule.insert("ports".into(), json!([{"protocol": "TCP", "port": port}]));
    }
    let selector = if entry.pod_labels.is_empty() { json!({}) } else { json!({"matchLabels": entry.pod_labels}) };
    json!({"podSelector": selector, "policyTypes": [direction], (direction.to_lowercase()): [rule]})
}

fn words(direction: Direction) -> (&'static str, &'static str) {
    match direction {
        Direction::Ingress => ("Ingress", "from"),
        Direction::Egress => ("Egress", "to"),
    }
}
