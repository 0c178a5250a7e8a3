//! Reads and sets single fields of an object, such as those of its metadata.
//!
//! The functions work for all kinds; this module must not depend on a kind.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// `metadata` as a map; creates an empty map if `metadata` is absent.
#[inline]
pub fn metadata(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    let object = value.as_object_mut().expect("made an object above");
    // Looked up twice, because `entry` would allocate a key each time, and the field nearly always exists.
    if !object.get("metadata").is_some_and(Value::is_object) {
        object.insert("metadata".to_owned(), json!({}));
    }
    object.get_mut("metadata").and_then(Value::as_object_mut).expect("made an object above")
}

/// The text in the field `key` of `metadata`; empty if the field is absent.
#[inline]
pub fn meta<'a>(value: &'a Value, key: &str) -> &'a str {
    value["metadata"][key].as_str().unwrap_or_default()
}

/// Whether the object is being deleted and waits for its finalizers.
#[inline]
pub fn is_deleting(value: &Value) -> bool {
    !meta(value, "deletionTimestamp").is_empty()
}

pub fn finalizers(value: &Value) -> Vec<&str> {
    value["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Formats a time as the API does: RFC 3339 in whole seconds.
pub fn seconds(now: Timestamp) -> String {
    // Truncated, not rounded.
    format!("{now:.0}")
}

/// Sets `path.key` to `default` if the field is absent; does nothing if the path leads to a value other than an object.
pub fn set(value: &mut Value, path: &[&str], key: &str, default: Value) {
    let mut at = value;
    for part in path {
        let Some(object) = at.as_object_mut() else { return };
        at = object.entry(*part).or_insert_with(|| json!({}));
    }
    if let Some(object) = at.as_object_mut() {
        object.entry(key).or_insert(default);
    }
}

pub fn each(value: &mut Value, list: &str, mut change: impl FnMut(&mut Value)) {
    for item in value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
        change(item);
    }
}

/// Sets an absent list to `null`, because the real server's types show absent lists in this way.
pub fn shown_empty(value: &mut Value, path: &[&str], list: &str) {
    set(value, path, list, Value::Null);
    let at = path.iter().try_fold(&mut *value, |at, part| at.get_mut(*part));
    if let Some(found) = at.and_then(|at| at.get_mut(list)).filter(|found| found.as_array().is_some_and(Vec::is_empty))
    {
        *found = Value::Null;
    }
}
