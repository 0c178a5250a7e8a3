//! The rules of objects: names, metadata that only the server sets, generations, immutable fields.
//!
//! The rules apply to a request's object between decoding and storing. This module must not do I/O; callers pass the
//! time and random values.

mod conform;
mod content;
mod names;
mod unknown;

use std::sync::Arc;

use jiff::Timestamp;
use mock_store::{Facts, Identity};
use serde_json::{Map, Value};

use super::OBJECT_MAX_BYTES;
use super::catalogue::{Field, Resource, Served};
use super::kinds::Generation;
use super::status::{Cause, Failure};

pub use super::fields::{finalizers, is_deleting, meta, metadata, seconds};

pub use conform::{Misfit, conform, fill_shown, read_as};
pub use content::{check as check_content, check_update};
pub use names::{check_finalizers_of_deleted, check_label_key, check_name, check_texts};
pub use unknown::drop_unknown;

/// Maximum number of bytes of data in a `ConfigMap` or `Secret` (Kubernetes documentation, "`ConfigMaps`": 1 MiB).
const DATA_MAX_BYTES: usize = 1_048_576;

/// Random values for a new object.
pub struct Fresh {
    pub uid: String,
    /// The suffix that is appended to `metadata.generateName`.
    pub suffix: String,
}

/// Checks that `apiVersion` and `kind` of a body match the path; fills them in if they are absent.
pub fn check_type(value: &mut Value, resource: &Resource, served: &Served) -> Result<(), Failure> {
    let Some(object) = value.as_object_mut() else {
        return Err(Failure::bad_request("the body of the request is not an object"));
    };
    if object.get("metadata").is_some_and(|metadata| !metadata.is_object() && !metadata.is_null()) {
        let kind = &resource.kind;
        return Err(Failure::bad_request(format!(
            "{kind} in version \"{}\" cannot be handled as a {kind}: metadata is not an object",
            served.name
        )));
    }
    let (api_version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    if !api_version.is_empty() && *api_version != *served.api_version {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            served.api_version
        )));
    }
    if resource.custom && (kind.is_empty() || api_version.is_empty()) {
        let missing = if kind.is_empty() { "Kind" } else { "apiVersion" };
        return Err(Failure::bad_request(format!("Object '{missing}' is missing in the body of the request")));
    }
    if !kind.is_empty() && *kind != *resource.kind && resource.custom {
        let cause = Cause::invalid("kind", &format!("\"{kind}\""), &format!("must be {}", resource.kind));
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        return Err(Failure::invalid(super::status::About { group: &resource.group, kind, name }, &[cause]));
    }
    if !kind.is_empty() && *kind != *resource.kind {
        return Err(Failure::bad_request(format!(
            "{kind} in version \"{}\" cannot be handled as a {}: no kind \"{kind}\" is registered",
            served.name, resource.kind
        )));
    }
    // Values that are present have been checked.
    let (no_version, no_kind) = (api_version.is_empty(), kind.is_empty());
    if no_version {
        object.insert("apiVersion".to_owned(), Value::from(&*served.api_version));
    }
    if no_kind {
        object.insert("kind".to_owned(), Value::from(&*resource.kind));
    }
    Ok(())
}

/// Removes fields that only the server may set from a new object, before a webhook sees the object.
pub fn begin_create(value: &mut Value, resource: &Resource, served: &Served, namespace: &str) -> Result<(), Failure> {
    let meta = metadata(value);
    check_namespace(resource, text(meta, "namespace"), namespace)?;
    if resource.namespaced {
        meta.insert("namespace".to_owned(), Value::from(namespace));
    } else {
        meta.remove("namespace");
    }
    for key in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        meta.remove(key);
    }
    if served.status && !resource.rules.keeps_status {
        value.as_object_mut().expect("metadata() made it an object").remove("status");
    }
    Ok(())
}

/// Sets the name, uid and other identifying metadata of a new object; returns the name.
pub fn finish_create(value: &mut Value, resource: &Resource, fresh: &Fresh, now: Timestamp) -> Result<String, Failure> {
    let meta = metadata(value);
    let mut name = text(meta, "name").to_owned();
    let generate_name = text(meta, "generateName");
    if name.is_empty() && !generate_name.is_empty() {
        // The real server cuts the prefix, so that the name has at most 63 characters.
        let prefix: String = generate_name.chars().take(58).collect();
        name = format!("{prefix}{}", fresh.suffix);
        meta.insert("name".to_owned(), Value::from(name.clone()));
    }
    if name.is_empty() {
        let cause = Cause::required("metadata.name", "name or generateName is required");
        return Err(Failure::invalid(resource.about_kind(""), &[cause]));
    }
    meta.insert("uid".to_owned(), Value::from(fresh.uid.clone()));
    meta.insert("creationTimestamp".to_owned(), Value::from(seconds(now)));
    if !matches!(resource.rules.generation, Generation::None | Generation::Updates) {
        meta.insert("generation".to_owned(), Value::from(1));
    }
    Ok(name)
}

/// Refuses a new object with a `resourceVersion`. The real server's store makes this check after all other checks.
pub fn check_new(value: &Value) -> Result<(), Failure> {
    match meta(value, "resourceVersion") {
        "" => Ok(()),
        _ => Err(Failure::plain("resourceVersion should not be set on objects to be created")),
    }
}

/// Copies from the old object the fields that an update must not change.
pub fn carry_over(value: &mut Value, old: &Value, resource: &Resource, served: &Served, status_only: bool) {
    if status_only {
        let status = value.get("status").cloned();
        let given = value["metadata"].clone();
        *value = old.clone();
        let object = value.as_object_mut().expect("stored objects are objects");
        match status {
            Some(status) => object.insert("status".to_owned(), status),
            None => object.remove("status"),
        };
        (resource.rules.carry_status)(value, old);
        // An apply has recorded its ownership of the status.
        carry(metadata(value), &given, "managedFields");
        for key in resource.rules.status_metadata {
            carry(metadata(value), &given, key);
        }
    } else if served.status {
        let object = value.as_object_mut().expect("checked to be an object");
        match old.get("status") {
            Some(status) => object.insert("status".to_owned(), status.clone()),
            None => object.remove("status"),
        };
        (resource.rules.follow_status)(value);
    }
    let (meta, before) = (metadata(value), &old["metadata"]);
    for key in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "namespace",
        "generation",
        "name",
        "resourceVersion",
    ] {
        carry(meta, before, key);
    }
}

/// Increments `metadata.generation` if more than the status changed. A second call does not increment the generation
/// again.
pub fn count_generation(value: &mut Value, old: &Value, resource: &Resource, served: &Served, status_only: bool) {
    if resource.rules.generation == Generation::None || status_only {
        return;
    }
    let counted = match resource.rules.generation {
        Generation::SpecAndAnnotations => "annotations",
        Generation::SpecAndLabels => "labels",
        Generation::None | Generation::Updates | Generation::Spec => "",
    };
    let metadata_counts = !counted.is_empty() && value["metadata"][counted] != old["metadata"][counted];
    let before = old["metadata"]["generation"].as_i64().unwrap_or(0);
    if metadata_counts || differs_outside(value, old, served.status) {
        metadata(value).insert("generation".to_owned(), Value::from(before.saturating_add(1)));
    } else {
        carry(metadata(value), &old["metadata"], "generation");
    }
    (resource.rules.count)(value, old);
}

/// The facts about an object that selectors, the garbage collector and deletions need.
pub fn facts(value: &Value, resource: &Resource) -> Facts {
    let mut labels: Vec<(Box<str>, Box<str>)> = value["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
        .collect();
    labels.sort();
    let field = |pointer: &str| -> Box<str> {
        match value.pointer(pointer) {
            Some(Value::String(text)) => text.as_str().into(),
            Some(other @ (Value::Number(_) | Value::Bool(_))) => other.to_string().into(),
            _ => "".into(),
        }
    };
    let owners = value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    Facts {
        labels: labels.into(),
        fields: resource.fields.iter().map(|f| selectable(f, &field)).collect(),
        owners: owners.filter_map(|owner| owner["uid"].as_str()).map(Arc::from).collect(),
        finalizing: is_deleting(value),
        ..Facts::default()
    }
}

/// The value of a selectable field: the value at the first pointer that exists.
fn selectable(of: &Field, value_at: &impl Fn(&str) -> Box<str>) -> Box<str> {
    of.pointers
        .iter()
        .map(|pointer| value_at(pointer))
        .find(|found| !found.is_empty())
        .unwrap_or_else(|| of.unset.into())
}

/// The identity of an object, which all its versions share.
pub fn identity(value: &Value, resource: &Resource) -> Identity {
    let text = |key: &str| -> Arc<str> { meta(value, key).into() };
    Identity {
        resource: resource.id,
        resource_name: resource.full_name.clone(),
        namespace: text("namespace"),
        name: text("name"),
        uid: text("uid"),
    }
}

/// Checks the size limits of stored objects; the limit of request bodies is checked elsewhere.
pub fn check_size(value: &Value, resource: &Resource) -> Result<(), Failure> {
    // Nearly every object is so small that its exact size does not matter.
    let bytes = if bytes_at_most(value) > OBJECT_MAX_BYTES { serialised_bytes(value) } else { 0 };
    if bytes > OBJECT_MAX_BYTES {
        return Err(Failure::too_large(format!(
            "etcdserver: request is too large: {bytes} bytes, the limit is {OBJECT_MAX_BYTES}"
        )));
    }
    let size = |&(key, base64): &(&str, bool)| -> usize {
        let chars = value[key].as_object().map_or(0, |map| map.values().filter_map(Value::as_str).map(str::len).sum());
        // Four characters encode three bytes.
        if base64 { chars / 4 * 3 } else { chars }
    };
    let total: usize = resource.rules.data.iter().map(size).sum();
    if total > DATA_MAX_BYTES {
        let cause = Cause {
            reason: "FieldValueTooLong",
            field: String::new(),
            message: format!("Too long: may not be more than {DATA_MAX_BYTES} bytes"),
        };
        return Err(Failure::invalid(resource.about_kind(meta(value, "name")), &[cause]));
    }
    Ok(())
}

/// An upper bound of a value's serialised size in bytes, which is computed without serialising.
fn bytes_at_most(value: &Value) -> usize {
    // A control character becomes `\u0000`; quotes, a colon and a comma are added.
    let text = |text: &str| text.len() * 6 + 4;
    match value {
        // The longest are numbers such as -2.2250738585072014e-308.
        Value::Null | Value::Bool(_) | Value::Number(_) => 28,
        Value::String(string) => text(string),
        Value::Array(items) => 3 + items.iter().map(bytes_at_most).sum::<usize>(),
        Value::Object(map) => 3 + map.iter().map(|(key, value)| text(key) + bytes_at_most(value)).sum::<usize>(),
    }
}

/// The serialised size of a value in bytes, counted without storing the text.
fn serialised_bytes(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).expect("a JSON value with text keys always serialises");
    counter.0
}

/// Requires that the namespace in the body equals the namespace in the path.
pub fn check_namespace(resource: &Resource, body: &str, path: &str) -> Result<(), Failure> {
    if resource.namespaced && !body.is_empty() && body != path {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> &'a str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn carry(meta: &mut Map<String, Value>, from: &Value, key: &str) {
    match from.get(key) {
        Some(value) => meta.insert(key.to_owned(), value.clone()),
        None => meta.remove(key),
    };
}

fn differs_outside(new: &Value, old: &Value, status_apart: bool) -> bool {
    let relevant = |key: &str| key != "metadata" && !(status_apart && key == "status");
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return true };
    let in_new = new.iter().any(|(key, value)| relevant(key) && old.get(key) != Some(value));
    in_new || old.keys().any(|key| relevant(key) && !new.contains_key(key))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::patch::tests::json;
    use serde_json::json;

    #[test]
    fn a_time_is_cut_to_whole_seconds() {
        let now = Timestamp::new(1_763_780_399, 999_999_999).unwrap();
        assert_eq!(seconds(now), "2025-11-22T02:59:59Z");
        assert_eq!(seconds(Timestamp::UNIX_EPOCH), "1970-01-01T00:00:00Z");
    }

    proptest! {
        /// The upper bound is never below the serialised size, so no object that is too large passes the cheap check.
        #[test]
        fn the_bound_is_above_the_size(value in json(), text in "\\PC{0,9}[\u{0}-\u{1f}]{0,9}", number in any::<f64>()) {
            let value = json!({ text.clone(): value, "text": [text, "\u{1}\"\\"], "number": number, "least": i64::MIN });
            prop_assert!(bytes_at_most(&value) >= value.to_string().len());
            prop_assert_eq!(serialised_bytes(&value), value.to_string().len());
        }
    }
}
