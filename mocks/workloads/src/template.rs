//! Makes Pods from the templates of their owners.

use serde_json::{Value, json};

use super::fields::{map, name, namespace, uid};
use super::kind::Kind;

/// A Pod made from the template of `owner`; the caller sets its name.
pub(crate) fn pod(owner: &Value, kind: Kind, template: &Value) -> Value {
    let mut metadata = json!({
        "namespace": namespace(owner),
        "labels": map(template, "/metadata/labels"),
        "ownerReferences": [controlled_by(owner, kind)],
    });
    for key in ["annotations", "finalizers"] {
        if let Some(value) = template["metadata"].get(key).filter(|value| !value.is_null()) {
            metadata[key] = value.clone();
        }
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
}

pub(crate) fn controlled_by(owner: &Value, kind: Kind) -> Value {
    let (version, _, kind) = kind.names();
    json!({
        "apiVersion": version, "kind": kind, "name": name(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

pub(crate) fn set(object: &mut Value, which: &str, key: &str, value: &str) {
    if !object["metadata"][which].is_object() {
        object["metadata"][which] = json!({});
    }
    object["metadata"][which][key] = Value::from(value);
}
