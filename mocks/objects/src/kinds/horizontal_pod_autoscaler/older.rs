//! Conversion of `autoscaling/v1`. In `autoscaling/v1`, CPU utilization has fields of its own, and annotations contain
//! all other metrics and settings.

use serde_json::{Map, Value, json};

use crate::fields::metadata;

/// Fields of the newer version that the older version keeps in annotations: `(annotation, pointer of the parent,
/// field)`.
const HIDDEN: [(&str, &str, &str); 4] = [
    ("autoscaling.alpha.kubernetes.io/metrics", "/spec", "metrics"),
    ("autoscaling.alpha.kubernetes.io/behavior", "/spec", "behavior"),
    ("autoscaling.alpha.kubernetes.io/current-metrics", "/status", "currentMetrics"),
    ("autoscaling.alpha.kubernetes.io/conditions", "/status", "conditions"),
];
const TARGET: &str = "targetCPUUtilizationPercentage";
const CURRENT: &str = "currentCPUUtilizationPercentage";

fn is_share(metric: &Value) -> bool {
    metric["type"] == "Resource" && metric["resource"]["name"] == "cpu"
}

pub(super) fn from_stored(value: &mut Value) {
    for (annotation, pointer, field) in HIDDEN {
        let Some(part) = value.pointer_mut(pointer).and_then(Value::as_object_mut) else { continue };
        let Some(mut hidden) = part.remove(field) else { continue };
        if let Some(metrics) = hidden.as_array_mut() {
            let (name, share) = if pointer == "/spec" {
                (TARGET, "/resource/target/averageUtilization")
            } else {
                (CURRENT, "/resource/current/averageUtilization")
            };
            let found = metrics.iter().position(|metric| is_share(metric) && metric.pointer(share).is_some());
            if let Some(index) = found {
                part.insert(name.to_owned(), metrics.remove(index).pointer(share).cloned().unwrap_or_default());
            }
        }
        let is_empty = hidden.is_null() || hidden.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            let annotations = metadata(value).entry("annotations").or_insert_with(|| json!({}));
            annotations[annotation] = Value::from(hidden.to_string());
        }
    }
    // The older type shows both numbers.
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        status.entry("currentReplicas").or_insert_with(|| json!(0));
    }
}

pub(super) fn to_stored(value: &mut Value) {
    for (annotation, pointer, field) in HIDDEN {
        let annotations = metadata(value).get_mut("annotations").and_then(Value::as_object_mut);
        let hidden = annotations.and_then(|annotations| annotations.remove(annotation));
        let hidden = hidden.and_then(|text| serde_json::from_str::<Value>(text.as_str()?).ok());
        if let (Some(hidden), Some(part)) = (hidden, value.pointer_mut(pointer).and_then(Value::as_object_mut)) {
            part.insert(field.to_owned(), hidden);
        }
    }
    if metadata(value).get("annotations").and_then(Value::as_object).is_some_and(Map::is_empty) {
        metadata(value).remove("annotations");
    }
    for (pointer, field, list, now) in
        [("/spec", TARGET, "metrics", "target"), ("/status", CURRENT, "currentMetrics", "current")]
    {
        let Some(part) = value.pointer_mut(pointer).and_then(Value::as_object_mut) else { continue };
        let Some(share) = part.remove(field) else { continue };
        let mut amount = json!({"averageUtilization": share});
        if now == "target" {
            amount["type"] = json!("Utilization");
        }
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", now: amount}});
        match part.entry(list).or_insert_with(|| json!([])) {
            Value::Array(metrics) => metrics.insert(0, metric),
            other => *other = json!([metric]),
        }
    }
    // The newer type leaves out a zero, and always has the list.
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        if status.get("currentReplicas") == Some(&json!(0)) {
            status.remove("currentReplicas");
        }
        status.entry("currentMetrics").or_insert(Value::Null);
    }
}
