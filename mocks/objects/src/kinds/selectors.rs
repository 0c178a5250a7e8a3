//! The checks of label selectors in objects, and their matching.
//!
//! Owns the rules for `LabelSelector` and for maps of labels. The module `selector` handles selectors in requests.

use mock_cel::formats::{label_value, qualified_name};
use serde_json::{Map, Value};

use super::at::At;
use super::causes::Refuse;
use crate::status::Cause;

/// The result of matching a selector with labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selected {
    /// The selector is invalid.
    Broken,
    /// The selector is empty and selects all labels.
    All,
    /// The selector selects the given labels.
    These,
    /// The selector does not select the given labels.
    Others,
}

/// Checks the keys and values of labels; as in a real server, every cause names the map instead of the entry.
pub(crate) fn check_labels(labels: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        causes.faults(at, key, qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        causes.faults(at, value, label_value(value));
    }
}

pub(crate) fn check(selector: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    check_labels(&selector["matchLabels"], at.field("matchLabels"), causes);
    let list = at.field("matchExpressions");
    for (index, expression) in selector["matchExpressions"].as_array().into_iter().flatten().enumerate() {
        requirement(expression, list.item(index), causes);
    }
}

fn requirement(expression: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let values = expression["values"].as_array().map_or(&[][..], Vec::as_slice);
    match expression["operator"].as_str().unwrap_or_default() {
        "In" | "NotIn" if values.is_empty() => {
            causes.required(at.field("values"), "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            causes.forbidden(at.field("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => causes.invalid_text(at.field("operator"), other, "not a valid selector operator"),
    }
    let key = expression["key"].as_str().unwrap_or_default();
    causes.faults(at.field("key"), key, qualified_name(key));
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        causes.faults(at.field("values").item(index), value, label_value(value));
    }
}

/// Whether a `LabelSelector` selects an object with these labels. An absent selector selects no object.
pub(crate) fn selects(selector: &Value, labels: &Value) -> Selected {
    let Some(fields) = selector.as_object() else { return Selected::Others };
    let mut faults = Vec::new();
    check(selector, At::from(""), &mut faults);
    if !faults.is_empty() {
        return Selected::Broken;
    }
    if is_empty(fields) {
        return Selected::All;
    }
    let equal =
        selector["matchLabels"].as_object().into_iter().flatten().all(|(key, text)| labels.get(key) == Some(text));
    let fits = |expression: &Value| {
        let label = labels.get(expression["key"].as_str().unwrap_or_default());
        let among = || expression["values"].as_array().into_iter().flatten().any(|value| Some(value) == label);
        match expression["operator"].as_str().unwrap_or_default() {
            "In" => among(),
            "NotIn" => !among(),
            "Exists" => label.is_some(),
            _ => label.is_none(),
        }
    };
    let all = equal && selector["matchExpressions"].as_array().into_iter().flatten().all(fits);
    if all { Selected::These } else { Selected::Others }
}

pub(crate) fn is_empty(selector: &Map<String, Value>) -> bool {
    ["matchLabels", "matchExpressions"].iter().all(|key| match selector.get(*key) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_select_labels_or_are_none() {
        let labels = json!({"a": "b"});
        let of = |selector: Value| selects(&selector, &labels);
        assert_eq!(of(Value::Null), Selected::Others);
        assert_eq!(of(json!({})), Selected::All);
        assert_eq!(of(json!({"matchLabels": {"a": "b"}})), Selected::These);
        assert_eq!(of(json!({"matchLabels": {"a": "c"}})), Selected::Others);
        let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
        assert_eq!(of(expression("In", json!(["b", "c"]))), Selected::These);
        assert_eq!(of(expression("NotIn", json!(["b"]))), Selected::Others);
        assert_eq!(of(expression("Exists", json!([]))), Selected::These);
        assert_eq!(of(expression("DoesNotExist", json!([]))), Selected::Others);
        assert_eq!(of(expression("In", json!([]))), Selected::Broken);
        assert_eq!(of(expression("Exists", json!(["b"]))), Selected::Broken);
        assert_eq!(of(expression("Is", json!(["b"]))), Selected::Broken);
        assert_eq!(of(json!({"matchLabels": {"a": "-"}})), Selected::Broken);
    }
}
