//! Conversion of `autoscaling/v1`. In `autoscaling/v1`, CPU utilization has fields of its own, and annotations contain
//! all other metrics and settings.

use serde_json::{Map, Value, json};

use crate::fields::{metadata, set};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// `(part of the object, field of the older version, pointer in a metric of the newer version)` of the CPU utilization.
const SHARES: [(&str, &str, &str); 2] = [
    ("/spec", "targetCPUUtilizationPercentage", "/resource/target/averageUtilization"),
    ("/status", "currentCPUUtilizationPercentage", "/resource/current/averageUtilization"),
];

/// The fields of metrics: `(types, field in the older version, pointer in the newer version)`. `@` is `target` in the
/// specification and `current` in the status.
const FIELDS: [(&[&str], &str, &str); 10] = [
    (&["object"], "target", "/describedObject"),
    (&["object", "pods", "external"], "metricName", "/metric/name"),
    (&["object", "pods"], "selector", "/metric/selector"),
    (&["external"], "metricSelector", "/metric/selector"),
    (&["resource", "containerResource"], "name", "/name"),
    (&["containerResource"], "container", "/container"),
    (&["resource", "containerResource"], "@AverageUtilization", "/@/averageUtilization"),
    (&["object", "external"], "@Value", "/@/value"),
    (&["pods", "resource", "containerResource", "external"], "@AverageValue", "/@/averageValue"),
    (&["object"], "averageValue", "/@/averageValue"),
];
/// Amounts that the older version shows as `0` if they are not set: `(types, field)`.
const SHOWN_OF_SPEC: [(&[&str], &str); 2] = [(&["object"], "targetValue"), (&["pods"], "targetAverageValue")];
const SHOWN_OF_STATUS: [(&[&str], &str); 2] =
    [(&["object", "external"], "currentValue"), (&["pods", "resource", "containerResource"], "currentAverageValue")];
/// The order of fields in the annotations, as in a real server's types.
const ORDER: [&str; 36] = [
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "target",
    "kind",
    "name",
    "apiVersion",
    "metricName",
    "metricSelector",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetValue",
    "currentValue",
    "targetAverageValue",
    "currentAverageValue",
    "selector",
    "averageValue",
    "container",
    "matchLabels",
    "matchExpressions",
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Type",
    "Value",
    "PeriodSeconds",
    "Tolerance",
];

/// Returns the part of a CPU metric at `pointer`; returns nothing for other metrics.
fn share<'a>(metric: &'a Value, pointer: &str) -> Option<&'a Value> {
    let is_cpu = metric["type"] == "Resource" && metric["resource"]["name"] == "cpu";
    metric.pointer(pointer).filter(|_| is_cpu)
}

pub(super) fn from_stored(value: &mut Value) {
    let mut hidden: Vec<(&str, Value)> = Vec::new();
    for (part, (pointer, field, of_share)) in ["metrics", "currentMetrics"].into_iter().zip(SHARES) {
        let Some(fields) = value.pointer_mut(pointer).and_then(Value::as_object_mut) else { continue };
        let Some(Value::Array(metrics)) = fields.remove(part) else { continue };
        if let Some(found) = metrics.iter().find_map(|metric| share(metric, of_share)) {
            fields.insert(field.to_owned(), found.clone());
        }
        let (is_spec, annotation) = if part == "metrics" { (true, METRICS) } else { (false, CURRENT) };
        let others = metrics.iter().filter(|metric| !is_spec || share(metric, of_share).is_none());
        let others: Vec<Value> = others.map(|metric| older(metric, is_spec)).collect();
        hidden.extend((!others.is_empty()).then(|| (annotation, others.into())));
    }
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(behavior) = spec.remove("behavior").filter(Value::is_object)
    {
        // In a real server's annotation, field names begin with a capital letter, and absent fields of rules are null.
        let mut behavior = renamed(&behavior, &|key| key[..1].to_uppercase() + &key[1..]);
        for direction in ["ScaleUp", "ScaleDown"] {
            for field in ["StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance"] {
                set(&mut behavior, &[direction], field, Value::Null);
            }
        }
        hidden.push((BEHAVIOR, behavior));
    }
    // The older version always has `currentReplicas`.
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        let conditions = status.remove("conditions").filter(|all| all.as_array().is_some_and(|all| !all.is_empty()));
        hidden.extend(conditions.map(|conditions| (CONDITIONS, conditions)));
        status.entry("currentReplicas").or_insert_with(|| json!(0));
    }
    if !hidden.is_empty() {
        let annotations = metadata(value).entry("annotations").or_insert_with(|| json!({}));
        for (annotation, hidden) in hidden {
            annotations[annotation] = Value::from(text(&hidden));
        }
    }
}

fn older(metric: &Value, is_spec: bool) -> Value {
    let (now, shown) = if is_spec { ("target", SHOWN_OF_SPEC) } else { ("current", SHOWN_OF_STATUS) };
    let mut out = Map::from_iter([("type".to_owned(), metric["type"].clone())]);
    for (kind, newer) in metric.as_object().into_iter().flatten().filter(|(_, newer)| newer.is_object()) {
        let mut source = Map::new();
        for (_, field, pointer) in FIELDS.iter().filter(|(kinds, ..)| kinds.contains(&&**kind)) {
            if let Some(found) = newer.pointer(&pointer.replace('@', now)) {
                source.insert(field.replace('@', now), found.clone());
            }
        }
        for (_, field) in shown.iter().filter(|(kinds, _)| kinds.contains(&&**kind)) {
            source.entry(*field).or_insert_with(|| json!("0"));
        }
        out.insert(kind.clone(), source.into());
    }
    out.into()
}

fn newer(metric: &Value, is_spec: bool) -> Value {
    let now = if is_spec { "target" } else { "current" };
    let mut out = Map::from_iter([("type".to_owned(), metric["type"].clone())]);
    for (kind, older) in metric.as_object().into_iter().flatten().filter(|(_, older)| older.is_object()) {
        let mut source = json!({now: {}});
        for (_, field, pointer) in FIELDS.iter().filter(|(kinds, ..)| kinds.contains(&&**kind)) {
            let Some(found) = older.get(field.replace('@', now)) else { continue };
            match *pointer.replace('@', now).split('/').collect::<Vec<_>>() {
                [_, only] => source[only] = found.clone(),
                [_, outer, inner, ..] => source[outer][inner] = found.clone(),
                _ => {}
            }
        }
        if is_spec {
            let has = |key: &str| older.get(key).is_some_and(|found| !found.is_null());
            source["target"]["type"] = json!(match kind.as_str() {
                "object" if !has("averageValue") => "Value",
                "external" if has("targetValue") => "Value",
                "resource" | "containerResource" if has("targetAverageUtilization") => "Utilization",
                _ => "AverageValue",
            });
        }
        out.insert(kind.clone(), source);
    }
    out.into()
}

pub(super) fn to_stored(value: &mut Value) {
    let mut read = |annotation: &str| {
        let annotations = metadata(value).get_mut("annotations").and_then(Value::as_object_mut);
        let hidden = annotations.and_then(|annotations| annotations.remove(annotation));
        hidden.and_then(|text| serde_json::from_str::<Value>(text.as_str()?).ok())
    };
    let [metrics, behavior, current, conditions] = [METRICS, BEHAVIOR, CURRENT, CONDITIONS].map(&mut read);
    if metadata(value).get("annotations").and_then(Value::as_object).is_some_and(Map::is_empty) {
        metadata(value).remove("annotations");
    }
    let lists = [("metrics", metrics), ("currentMetrics", current)];
    for ((list, hidden), (pointer, field, _)) in lists.into_iter().zip(SHARES) {
        let Some(part) = value.pointer_mut(pointer).and_then(Value::as_object_mut) else { continue };
        let is_spec = list == "metrics";
        let share = part.remove(field);
        let known = hidden.as_ref().and_then(Value::as_array);
        let mut metrics: Vec<Value> = known.into_iter().flatten().map(|metric| newer(metric, is_spec)).collect();
        // In a status, an annotation with metrics already contains the CPU metric.
        if let Some(share) = share.filter(|_| is_spec || known.is_none()) {
            let mut source = json!({"name": "cpu"});
            if is_spec {
                source["target"] = json!({"type": "Utilization", "averageUtilization": share});
            } else {
                source["current"] = json!({"averageUtilization": share});
            }
            metrics.push(json!({"type": "Resource", "resource": source}));
        }
        if !metrics.is_empty() {
            part.insert(list.to_owned(), metrics.into());
        }
    }
    if let (Some(behavior), Some(spec)) = (behavior, value.get_mut("spec").and_then(Value::as_object_mut)) {
        spec.insert("behavior".to_owned(), renamed(&behavior, &|key| key[..1].to_lowercase() + &key[1..]));
    }
    // The newer version omits `currentReplicas: 0`, and always has `currentMetrics`.
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        status.extend(conditions.map(|conditions| ("conditions".to_owned(), conditions)));
        if status.get("currentReplicas") == Some(&json!(0)) {
            status.remove("currentReplicas");
        }
        status.entry("currentMetrics").or_insert(Value::Null);
    }
}

/// Renames all fields of a value, and leaves out fields that are null.
fn renamed(value: &Value, name: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(key, value)| !value.is_null() && key.is_ascii() && !key.is_empty());
            fields.map(|(key, value)| (name(key), renamed(value, name))).collect()
        }
        Value::Array(items) => items.iter().map(|item| renamed(item, name)).collect(),
        other => other.clone(),
    }
}

/// JSON with the fields in the order of [`ORDER`].
fn text(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| ORDER.iter().position(|known| known == key).unwrap_or(ORDER.len()));
            let fields =
                fields.into_iter().map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), text(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}
