//! Access to single fields of an object: its metadata, and absent fields.
//!
//! Owns reading and setting them. It must not know kinds.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// `metadata` as a map, created if absent.
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

/// A text field of `metadata`; empty if absent.
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

/// A time as the API writes it: RFC 3339 in whole seconds.
pub fn seconds(now: Timestamp) -> String {
    // Truncated, not rounded.
    format!("{now:.0}")
}

/// Sets `path.key` if it is absent; does nothing if the path holds something other than an object.
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

/// Adds a list as `null` if it is absent, for types of the real server that always show it.
pub fn shown_empty(value: &mut Value, path: &[&str], list: &str) {
    set(value, path, list, Value::Null);
    let at = path.iter().try_fold(&mut *value, |at, part| at.get_mut(*part));
    if let Some(found) = at.and_then(|at| at.get_mut(list)).filter(|found| found.as_array().is_some_and(Vec::is_empty))
    {
        *found = Value::Null;
    }
}
