//! Conditions in the status of objects; each kind of object has its own time fields.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::fields::{list, seconds, text};

pub(crate) fn find<'v>(status: &'v Value, kind: &str) -> Option<&'v Value> {
    list(status, "/conditions").iter().find(|condition| text(condition, "/type") == kind)
}

pub(crate) fn is_true(status: &Value, kind: &str) -> bool {
    find(status, kind).is_some_and(|condition| text(condition, "/status") == "True")
}

/// A new condition with the time fields `times`, which differ between kinds of objects.
pub(crate) fn new(kind: &str, status: &str, (reason, message): (&str, &str), times: &[&str], now: Timestamp) -> Value {
    let mut condition = json!({"type": kind, "status": status, "reason": reason, "message": message});
    for time in times {
        condition[*time] = seconds(now);
    }
    condition
}

/// Sets a condition as the Deployment controller does. If status and reason are unchanged, the condition stays; if only
/// the status is unchanged, the transition time stays.
pub(crate) fn set(status: &mut Value, mut condition: Value) {
    let kind = text(&condition, "/type").to_owned();
    if let Some(known) = find(status, &kind) {
        let same = known["status"] == condition["status"];
        if same && known["reason"] == condition["reason"] {
            return;
        }
        if same {
            condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
        }
    }
    remove(status, &kind);
    push(status, condition);
}

pub(crate) fn push(status: &mut Value, condition: Value) {
    match status.get_mut("conditions").and_then(Value::as_array_mut) {
        Some(conditions) => conditions.push(condition),
        None => status["conditions"] = json!([condition]),
    }
}

pub(crate) fn remove(status: &mut Value, kind: &str) {
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else { return };
    conditions.retain(|condition| text(condition, "/type") != kind);
    if conditions.is_empty()
        && let Some(status) = status.as_object_mut()
    {
        status.remove("conditions");
    }
}
