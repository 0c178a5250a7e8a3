//! The two APIs of events: `v1` and `events.k8s.io/v1` show the same objects.
//!
//! Owns the conversion between the two APIs, and the requirements of each API ("Event v1 core" and "Event v1
//! events.k8s.io" in the API reference). Events are stored as objects of `v1`, as in a real cluster. This module must
//! not do I/O.

use serde_json::{Map, Value, json};

use crate::kinds::Causes;
use crate::status::Cause;

/// `(field of v1, field of events.k8s.io/v1)`; all other fields have equal names.
const NAMES: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];
/// Maximum length of an event's action, of its reason, and of the name of its reporting instance, in bytes.
const WORD_MAX_BYTES: usize = 128;
const MESSAGE_MAX_BYTES: usize = 1024;
/// The namespaces in which events about cluster-scoped objects may be.
const OF_THE_CLUSTER: &[&str] = &["", "default", "kube-system"];

/// Converts an event of `events.k8s.io/v1` into an event of `v1`, for storing.
pub(super) fn to_stored(value: &mut Value) {
    rename(value, |(core, other)| (other, core));
    fill(value);
}

/// Converts a stored event into an event of `events.k8s.io/v1`.
pub(super) fn from_stored(value: &mut Value) {
    rename(value, |(core, other)| (core, other));
    if let Some(series) = value.get_mut("series").and_then(Value::as_object_mut) {
        series.entry("count").or_insert(json!(0));
    }
    if let Some(object) = value.as_object_mut() {
        // That API omits them if they are empty.
        object.retain(|key, value| {
            !(matches!(key.as_str(), "reportingController" | "reportingInstance") && value.as_str() == Some(""))
        });
    }
}

/// Adds the fields that a stored event always has, because the real server's type always shows them.
pub(super) fn fill(value: &mut Value) {
    let Some(object) = value.as_object_mut() else { return };
    leave_out_zeros(object);
    for (key, unset) in [
        ("involvedObject", json!({})),
        ("source", json!({})),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        object.entry(key).or_insert(unset);
    }
    if let Some(series) = object.get_mut("series").and_then(Value::as_object_mut) {
        series.entry("lastObservedTime").or_insert(Value::Null);
    }
}

/// Removes zero numbers and empty names. The real server's type has no pointers for these fields, so a zero means "not
/// set".
fn leave_out_zeros(object: &mut Map<String, Value>) {
    object.retain(|key, value| key != "count" || *value != 0);
    if let Some(series) = object.get_mut("series").and_then(Value::as_object_mut) {
        series.retain(|key, value| key != "count" || *value != 0);
    }
    for reference in ["involvedObject", "related"] {
        if let Some(names) = object.get_mut(reference).and_then(Value::as_object_mut) {
            names.retain(|_, name| name.as_str() != Some(""));
        }
    }
}

/// Removes the fields that are present only because the real server's type always shows them.
pub(super) fn unfill(value: &mut Value) {
    let Some(object) = value.as_object_mut() else { return };
    object.retain(|key, field| match field {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        // `related` is present only if a client set it, even if it is empty.
        Value::Object(map) => !map.is_empty() || key == "related",
        _ => true,
    });
}

fn rename(value: &mut Value, order: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str)) {
    let Some(object) = value.as_object_mut() else { return };
    for (from, to) in NAMES.iter().copied().map(order) {
        if let Some(field) = object.remove(from) {
            object.insert(to.to_owned(), field);
        }
    }
}

fn is_set(value: &Value, key: &str) -> bool {
    match &value[key] {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_i64() != Some(0),
        Value::Object(map) => map.values().any(|field| field.as_str().is_none_or(|text| !text.is_empty())),
        _ => true,
    }
}

/// Checks an event of either API; errors use the field names of `v1`.
pub(super) fn check(value: &Value, causes: &mut Causes) {
    check_as(value, "reportingComponent", causes);
}

/// Checks an event of either API; errors use the field names of `events.k8s.io/v1`.
pub(super) fn check_newer(value: &Value, causes: &mut Causes) {
    check_as(value, "reportingController", causes);
}

/// Checks an event. An event with an `eventTime` must follow the rules of `events.k8s.io/v1`.
fn check_as(value: &Value, controller: &str, causes: &mut Causes) {
    let namespace = value["metadata"]["namespace"].as_str().unwrap_or_default();
    let of_object = value["involvedObject"]["namespace"].as_str().unwrap_or_default();
    let newer = is_set(value, "eventTime");
    let fits = match (of_object, newer) {
        ("", true) => OF_THE_CLUSTER.contains(&namespace),
        ("", false) => matches!(namespace, "" | "default"),
        (_, true) => true,
        (of_object, false) => of_object == namespace,
    };
    if !fits {
        let shown = format!("\"{of_object}\"");
        causes.push(Cause::invalid("involvedObject.namespace", &shown, "does not match event.namespace"));
    }
    if !newer {
        return;
    }
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    if text("reportingComponent").is_empty() {
        causes.push(Cause::required(controller, ""));
    }
    let component = text("reportingComponent");
    let name = component.rsplit_once('/').map_or(component, |(_, name)| name);
    if name.is_empty() || name.len() > 63 || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
        let why = "name part must consist of alphanumeric characters, '-', '_' or '.'";
        causes.push(Cause::invalid(controller, &format!("\"{component}\""), why));
    }
    for key in ["reportingInstance", "action", "reason"] {
        match text(key).len() {
            0 => causes.push(Cause::required(key, "")),
            1..=WORD_MAX_BYTES => {}
            _ => causes.push(Cause::invalid(key, "\"\"", "can have at most 128 characters")),
        }
    }
    if text("message").len() > MESSAGE_MAX_BYTES {
        causes.push(Cause::invalid("message", "\"\"", "can have at most 1024 characters"));
    }
}

/// Checks a new event against the requirements of `events.k8s.io/v1`.
pub(super) fn check_new(value: &Value, causes: &mut Causes) {
    series(value, causes);
    if !is_set(value, "eventTime") {
        causes.push(Cause::required("eventTime", ""));
    }
    let kind = value["type"].as_str().unwrap_or_default();
    if !matches!(kind, "Normal" | "Warning") {
        causes.push(Cause::invalid("type", "\"\"", &format!("has invalid value: {kind}")));
    }
    for key in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        if is_set(value, key) {
            causes.push(Cause::invalid(key, "\"\"", "needs to be unset"));
        }
    }
}

/// Refuses an update of an `events.k8s.io/v1` event that changes more than the series and the metadata.
pub(super) fn check_update(value: &Value, old: &Value, causes: &mut Causes) {
    if value["series"] != old["series"] {
        series(value, causes);
    }
    for key in "involvedObject reason message source firstTimestamp lastTimestamp count type eventTime action related \
        reportingComponent reportingInstance"
        .split(' ')
    {
        if is_set(value, key) != is_set(old, key) || (is_set(value, key) && value[key] != old[key]) {
            let field = if key == "reportingComponent" { "reportingController" } else { key };
            causes.push(Cause::invalid(field, &value[key].to_string(), "field is immutable"));
        }
    }
}

fn series(value: &Value, causes: &mut Causes) {
    let Some(series) = value["series"].as_object() else { return };
    if series.get("count").and_then(Value::as_i64).unwrap_or(0) < 2 {
        causes.push(Cause::invalid("series.count", "\"\"", "should be at least 2"));
    }
    if series.get("lastObservedTime").is_none_or(Value::is_null) {
        causes.push(Cause::required("series.lastObservedTime", ""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zero values are omitted where the real server's type has no pointer; a series of the newer API shows a count of
    /// 0.
    #[test]
    fn nothing_is_not_said() {
        let mut value = json!({
            "count": 0, "involvedObject": {"name": "", "kind": "Pod"}, "related": {}, "series": {"count": 0},
        });
        fill(&mut value);
        assert_eq!((value.get("count"), &value["involvedObject"]), (None, &json!({"kind": "Pod"})));
        assert_eq!((&value["related"], &value["series"]), (&json!({}), &json!({"lastObservedTime": null})));
        unfill(&mut value);
        assert_eq!(value["related"], json!({}), "who wrote it owns it");
        from_stored(&mut value);
        assert_eq!(value["series"], json!({"lastObservedTime": null, "count": 0}));
    }

    /// An event stays the same after a conversion to the other API and back.
    #[test]
    fn the_forms_turn_into_each_other() {
        let newer = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a", "namespace": "default"},
            "eventTime": "2026-01-02T03:04:05.000006Z", "note": "text", "reason": "Why", "action": "Do",
            "type": "Normal", "regarding": {"kind": "Pod", "name": "p"}, "reportingController": "c",
            "reportingInstance": "i", "deprecatedCount": 3, "deprecatedSource": {"component": "s"},
            "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": "2026-01-02T03:04:05Z",
        });
        let mut value = newer.clone();
        to_stored(&mut value);
        assert_eq!((&value["message"], &value["involvedObject"]["name"]), (&json!("text"), &json!("p")));
        assert_eq!((&value["reportingComponent"], &value["count"]), (&json!("c"), &json!(3)));
        assert!(value.get("note").is_none() && value.get("regarding").is_none(), "{value}");
        from_stored(&mut value);
        assert_eq!(value, newer);
    }
}
