//! The owners of the number of replicas, in an object and in its `Scale` (KEP-555, "Scale subresource").
//!
//! Converts field owners of the number of replicas from an object to its `Scale`, and back. This module must not decide
//! conflicts.

use mock_objects::catalogue::{Resource, Scale};
use mock_objects::object;
use serde_json::{Map, Value, json};

use super::API_VERSION;

/// The managers of an object that own its number of replicas, as `managedFields` of its `Scale`.
pub(super) fn of_scale(entries: &Value, resource: &Resource) -> Vec<Value> {
    let own = |entry: &&Value| steps(entry, resource).is_some_and(|steps| owns(&entry["fieldsV1"], &steps));
    let shown = |entry: &Value| {
        let mut entry = entry.clone();
        entry["apiVersion"] = Value::from(API_VERSION);
        entry["fieldsV1"] = json!({"f:spec": {"f:replicas": {}}});
        entry
    };
    entries.as_array().into_iter().flatten().filter(own).map(shown).collect()
}

/// Copies changes of ownership of the number of replicas from the `Scale` to the object: removes former owners and adds
/// new owners. New owners wrote the object as `api_version`; `scale` contains the path of the number of replicas in
/// that version.
pub(super) fn to_object(value: &mut Value, of_scale: &Value, resource: &Resource, api_version: &str, scale: &Scale) {
    let of_number = ["f:spec".to_owned(), "f:replicas".to_owned()];
    let new: Vec<&Value> = of_scale.as_array().into_iter().flatten().collect();
    let mut new: Vec<&Value> = new.into_iter().filter(|entry| owns(&entry["fieldsV1"], &of_number)).collect();
    let mut entries = match object::metadata(value).remove("managedFields") {
        Some(Value::Array(entries)) => entries,
        _ => Vec::new(),
    };
    entries.retain_mut(|entry| {
        let Some(steps) = steps(entry, resource).filter(|steps| owns(&entry["fieldsV1"], steps)) else { return true };
        if let Some(kept) = new.iter().position(|other| is_same(other, entry)) {
            new.remove(kept);
            return true;
        }
        let Some(fields) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut) else { return true };
        take(fields, &steps);
        !fields.is_empty()
    });
    for entry in new {
        let mut entry = entry.clone();
        entry["apiVersion"] = Value::from(api_version);
        entry["fieldsV1"] =
            steps_to(&scale.spec_replicas).iter().rev().fold(json!({}), |below, step| json!({step: below}));
        entries.push(entry);
    }
    if !entries.is_empty() {
        object::metadata(value).insert("managedFields".to_owned(), Value::Array(entries));
    }
}

/// The path of the number of replicas in the version of a `managedFields` entry.
fn steps(entry: &Value, resource: &Resource) -> Option<Vec<String>> {
    let version = resource.versions.iter().find(|version| entry["apiVersion"] == *version.api_version)?;
    Some(steps_to(&version.scale.as_ref()?.spec_replicas))
}

fn steps_to(pointer: &str) -> Vec<String> {
    pointer.split('/').filter(|part| !part.is_empty()).map(|part| format!("f:{part}")).collect()
}

fn owns(fields: &Value, steps: &[String]) -> bool {
    steps.iter().try_fold(fields, |at, step| at.get(step)).is_some()
}

/// Whether two `managedFields` entries belong to the same manager; their versions may differ.
fn is_same(one: &Value, other: &Value) -> bool {
    ["manager", "operation", "subresource"].iter().all(|key| one.get(key) == other.get(key))
}

/// Removes a path from a set of fields, and the parents that become empty.
fn take(fields: &mut Map<String, Value>, steps: &[String]) {
    let Some((step, below)) = steps.split_first() else { return };
    if below.is_empty() {
        fields.remove(step);
        return;
    }
    let Some(inner) = fields.get_mut(step).and_then(Value::as_object_mut) else { return };
    take(inner, below);
    if inner.keys().all(|key| key == ".") {
        fields.remove(step);
    }
}
