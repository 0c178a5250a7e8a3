//! The `NetworkPolicy` objects for `spec.network.allow`, and the needed fields of existing network policies.
//!
//! A policy's name is derived from its content, so that a change of one entry, or of the order, does not affect other
//! policies. A digest of the applied fields (the whole spec, and this service's labels, annotation and owner reference)
//! shows whether a policy is unchanged. Fields that this service does not apply are not changed.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use service_watch::{Allow, Direction, Form, Kind, Object, RawObject, Source};

/// Label with the uid of the package to which a policy belongs.
pub(super) const UID_LABEL: &str = "longhaul.dev/package-uid";
/// Label with the generation that was last applied to the policy.
pub(super) const GENERATION_LABEL: &str = "longhaul.dev/generation";
/// Label of every object that this service makes.
const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
const MANAGED_BY: &str = "longhaul-service";
/// Annotation with the description in the package's entry for the connection.
const DESCRIPTION_ANNOTATION: &str = "longhaul.dev/description";
/// The keys of the owner reference that this service writes.
const OWNER_KEYS: [&str; 5] = ["apiVersion", "kind", "name", "uid", "controller"];
/// Maximum number of bytes of the package's name in a policy's name, so that the whole name stays below the 253 of a
/// DNS subdomain.
const NAME_BYTES_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Policy {
    pub namespace: String,
    pub name: String,
    pub digest: Digested,
    pub body: Value,
}

/// The first bytes of a SHA-256 hash; sixteen bytes are enough to detect a change.
pub type Digested = [u8; 16];

/// The fields of an existing policy that this service needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Name of the owning package; `None` without an owner reference that has the right uid.
    pub package: Option<Box<str>>,
    /// The package uid in the policy's label.
    pub package_uid: Box<str>,
    /// Digest of the fields that this service applies.
    pub digest: Digested,
}

impl Applied {
    /// The watch source of all network policies that this service has made.
    pub fn source() -> Source {
        let source = Source::new(
            "networkpolicies.networking.k8s.io",
            "watch/networkpolicies",
            "/apis/networking.k8s.io/v1/networkpolicies",
            Form::Whole,
        );
        source.labelled("app.kubernetes.io/managed-by=longhaul-service,longhaul.dev/package-uid")
    }
}

impl Kind for Applied {
    fn read(raw: &RawObject<'_>) -> Self {
        let labels = raw.labels();
        let package_uid = labels.get(UID_LABEL).cloned().unwrap_or_default();
        let owner = raw.owners().into_iter().find(|owner| owner["uid"] == *package_uid).unwrap_or_default();
        let description = json!(raw.annotations().get(DESCRIPTION_ANNOTATION));
        Self {
            package: owner["name"].as_str().map(Into::into),
            digest: digest(&raw.spec(), &json!(labels), &description, &owner),
            package_uid: package_uid.into(),
        }
    }
}

/// The merge patch that makes `known` equal to `policy` in all applied fields.
pub(super) fn correction(known: &Value, policy: &Policy) -> Value {
    let mut body = policy.body.clone();
    let meta = &mut body["metadata"];
    let owner = meta["ownerReferences"][0].clone();
    let mut owners = known["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    owners.retain(|known| known["uid"] != owner["uid"]);
    owners.push(owner);
    meta["ownerReferences"] = owners.into();
    // A write at the same moment is not overwritten unseen.
    meta["resourceVersion"] = known["metadata"]["resourceVersion"].clone();
    body["spec"] = difference(&known["spec"], &policy.body["spec"]);
    body
}

/// The merge patch (RFC 7386) that turns `from` into `to`.
fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let gone = from.keys().filter(|key| !to.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let kept =
        to.iter().map(|(key, value)| (key.clone(), from.get(key).map_or(value.clone(), |old| difference(old, value))));
    gone.chain(kept).collect::<serde_json::Map<_, _>>().into()
}

fn digest(spec: &Value, labels: &Value, description: &Value, owner: &Value) -> Digested {
    let labels = [MANAGED_BY_LABEL, UID_LABEL, GENERATION_LABEL].map(|key| &labels[key]);
    let owner = OWNER_KEYS.map(|key| &owner[key]);
    let content = json!({"spec": spec, "labels": labels, "description": description, "owner": owner});
    let whole: [u8; 32] = Sha256::digest(canonical(&content)).into();
    let mut front = Digested::default();
    front.copy_from_slice(&whole[..16]);
    front
}

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
        // The whole name is hashed, so that the cut does not make the policies of two packages equal.
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
    let generation = object.body.generation.to_string();
    let body = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": name,
            "namespace": &*object.key.namespace,
            "labels": {
                (MANAGED_BY_LABEL): MANAGED_BY,
                (UID_LABEL): &*object.uid,
                (GENERATION_LABEL): generation,
            },
            "annotations": {(DESCRIPTION_ANNOTATION): entry.description},
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
    let meta = &body["metadata"];
    let description = &meta["annotations"][DESCRIPTION_ANNOTATION];
    let digest = digest(&body["spec"], &meta["labels"], description, &meta["ownerReferences"][0]);
    Policy { namespace: object.key.namespace.to_string(), name, digest, body }
}

/// The beginning of `name`, to which a dash and a suffix can be appended: whole characters without a dot or dash at the
/// end.
fn stem(name: &str) -> &str {
    let end = name.floor_char_boundary(NAME_BYTES_MAX);
    if end == name.len() { name } else { name[..end].trim_end_matches(['.', '-']) }
}

/// The value as a text in which keys are sorted, so that equal values have equal texts.
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
