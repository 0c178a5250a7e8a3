//! The conditions under which an object in deletion is removed.

use mock_objects::catalogue::Resource;
use mock_objects::kinds::Ending;
use mock_objects::object;
use serde_json::Value;

/// Whether no finalizer holds the object any more.
pub(crate) fn is_unheld(value: &Value, resource: &Resource) -> bool {
    // The namespace controller removes this one when the namespace is empty.
    let holds = || value.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty());
    let held_by_content = resource.rules.ending == Ending::Emptied && holds();
    object::finalizers(value).is_empty() && !held_by_content
}

/// Whether no finalizer holds the object and no grace period runs.
pub(crate) fn is_due(value: &Value, resource: &Resource) -> bool {
    let grace_s = value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    grace_s == 0 && is_unheld(value, resource)
}
