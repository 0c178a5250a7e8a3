//! The checks and defaults of a volume claim's specification, in a claim, a pod or a `StatefulSet`.

use mock_cel::Quantity;
use mock_cel::formats::{label, subdomain};
use serde_json::{Value, json};

use super::super::super::super::at::At;
use super::super::super::super::causes::Refuse;
use super::super::super::super::selectors;
use super::super::annotations::check_keys;
use super::super::{has, items, text, texts};
use crate::fields::set;
use crate::status::Cause;

/// Metadata fields that a claim template must not have, which are all except labels and annotations.
const NOT_IN_TEMPLATES: [&str; 12] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
];

pub(in crate::kinds) fn fill(value: &mut Value) {
    set(value, &["spec"], "volumeMode", json!("Filesystem"));
    for source in ["dataSource", "dataSourceRef"] {
        // The real server's type always shows it.
        if let Some(source) = value.pointer_mut(&format!("/spec/{source}")).filter(|source| source.is_object()) {
            set(source, &[], "apiGroup", Value::Null);
        }
    }
}

/// Checks the template of the claim that an ephemeral volume makes.
pub(super) fn check_template(template: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let metadata = &template["metadata"];
    let below = at.field("metadata");
    check_keys(metadata, below.field("annotations"), causes);
    selectors::check_labels(&metadata["labels"], below.field("labels"), causes);
    for key in NOT_IN_TEMPLATES.into_iter().filter(|key| has(metadata, key)) {
        // The name in a real server's messages.
        causes.forbidden(below.field(if key == "uid" { "uID" } else { key }), "cannot be set");
    }
    check(&template["spec"], at.field("spec"), causes);
}

pub(in crate::kinds) fn check(spec: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    if items(spec, "accessModes").is_empty() {
        causes.required(at.field("accessModes"), "at least 1 access mode is required");
    }
    selectors::check(&spec["selector"], at.field("selector"), causes);
    let known = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in texts(spec, "accessModes").filter(|mode| !known.contains(mode)) {
        causes.unsupported(at.field("accessModes"), mode, &known);
    }
    let (one, others) = ("ReadWriteOncePod", ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"]);
    if texts(spec, "accessModes").any(|mode| mode == one)
        && texts(spec, "accessModes").any(|mode| others.contains(&mode))
    {
        causes.forbidden(at.field("accessModes"), "may not use ReadWriteOncePod with other access modes");
    }
    let storage = &spec["resources"]["requests"]["storage"];
    let resources = at.field("resources");
    match storage.as_str().and_then(Quantity::parse) {
        None => causes.required(resources.key("storage"), ""),
        Some(amount) if amount.signum() <= 0 => {
            causes.invalid(resources.key("storage"), storage, "must be greater than zero");
        }
        Some(_) => {}
    }
    for key in ["storageClassName", "volumeAttributesClassName"] {
        let name = text(spec, key);
        if !name.is_empty() {
            causes.faults(at.field(key), name, subdomain(name));
        }
    }
    causes.one_of(&spec["volumeMode"], at.field("volumeMode"), &["Block", "Filesystem"]);
    data(spec, at, causes);
}

/// Checks `dataSource` and `dataSourceRef`, which name the source of a claim's initial content.
fn data(spec: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    for key in ["dataSource", "dataSourceRef"].into_iter().filter(|key| has(spec, key)) {
        source(&spec[key], at.field(key), causes);
    }
    let (older, newer) = (&spec["dataSource"], &spec["dataSourceRef"]);
    if !text(newer, "namespace").is_empty() {
        if !older.is_null() {
            let why = "may not be specified when dataSourceRef.namespace is specified";
            causes.invalid_text(at, &at.field("dataSource").to_string(), why);
        }
    } else if !older.is_null()
        && !newer.is_null()
        && ["apiGroup", "kind", "name"].into_iter().any(|key| older[key] != newer[key])
    {
        causes.invalid_text(at, &at.field("dataSource").to_string(), "must match dataSourceRef");
    }
}

fn source(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    causes.text_in(given, "name", at);
    let kind = causes.text_in(given, "kind", at);
    let (group, namespace) = (text(given, "apiGroup"), text(given, "namespace"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        causes.invalid_text(at, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    }
    if !group.is_empty() {
        causes.faults(at.field("apiGroup"), group, subdomain(group));
    }
    if !namespace.is_empty() {
        causes.faults(at.field("namespace"), namespace, label(namespace));
    }
}
