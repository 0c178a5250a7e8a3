//! `HorizontalPodAutoscaler` in `autoscaling/v1` and in `v2`.
//!
//! Owns what `v1` has no fields for and a real server keeps in annotations there: all metrics but the one for the processor, their
//! current values, the conditions and the behaviour ("`HorizontalPodAutoscaler` v1 autoscaling" of the API reference; the
//! texts are those of kube-apiserver 1.20.2). It also owns the defaults, which differ between the versions.

mod metrics;

use serde_json::{Map, Value, json};

use crate::fields;
use metrics::{CURRENT, WANTED};

/// The version that has annotations instead of fields.
const OLDER: &str = "autoscaling/v1";
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// The share of the processor that is aimed at when nothing is said, in per cent.
const PROCESSOR_DEFAULT: i64 = 80;
/// The rules of a behaviour go by the names of the real server's internal type: `(there, in v2)`.
const RULES: &[(&str, &str)] =
    &[("StabilizationWindowSeconds", "stabilizationWindowSeconds"), ("SelectPolicy", "selectPolicy")];
const POLICY: &[(&str, &str)] = &[("Type", "type"), ("Value", "value"), ("PeriodSeconds", "periodSeconds")];
const CONDITION: &[&str] = &["type", "status", "lastTransitionTime", "reason", "message"];

/// Turns `v2` into `v1`.
pub(super) fn to_older(value: &mut Value) {
    let mut notes: Vec<(&str, String)> = Vec::new();
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        let all = list(spec.remove("metrics"));
        let processor = all.iter().find(|metric| is_processor(metric)).and_then(|metric| utilization(metric, "target"));
        if let Some(per_cent) = processor {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), per_cent.clone());
        }
        let is_other = |metric: &&Value| !is_processor(metric) || utilization(metric, "target").is_none();
        let others: Vec<String> = all.iter().filter(is_other).map(|metric| metrics::older(metric, WANTED)).collect();
        if !others.is_empty() {
            notes.push((METRICS, in_brackets(&others)));
        }
        if let Some(behavior) = spec.remove("behavior").filter(Value::is_object) {
            notes.push((BEHAVIOR, older_behavior(&behavior)));
        }
    }
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        let current = list(status.remove("currentMetrics"));
        // The last that tells, where the first decides what is aimed at: the real server stops looking only there.
        let mut told = current.iter().filter(|metric| is_processor(metric)).filter_map(|m| utilization(m, "current"));
        let processor = told.next_back();
        if let Some(per_cent) = processor {
            status.insert("currentCPUUtilizationPercentage".to_owned(), per_cent.clone());
        }
        if !current.is_empty() {
            let texts: Vec<String> = current.iter().map(|metric| metrics::older(metric, CURRENT)).collect();
            notes.push((CURRENT_METRICS, in_brackets(&texts)));
        }
        let conditions = list(status.remove("conditions"));
        if !conditions.is_empty() {
            let texts: Vec<String> = conditions.iter().map(|one| metrics::in_order(one, CONDITION)).collect();
            notes.push((CONDITIONS, in_brackets(&texts)));
        }
        // Numbers that are always there in v1.
        for key in ["currentReplicas", "desiredReplicas"] {
            status.entry(key).or_insert_with(|| Value::from(0));
        }
    }
    for (key, text) in notes {
        let annotations = fields::metadata(value).entry("annotations").or_insert(Value::Null);
        if !annotations.is_object() {
            *annotations = json!({});
        }
        annotations[key] = Value::from(as_go_writes(&text));
    }
}

/// Turns `v1` into `v2`. What cannot be read in the annotations is gone, as it is on a real server.
pub(super) fn to_newer(value: &mut Value) {
    let mut note = |key: &str| take_note(value, key);
    let (wanted, current, conditions, behavior) =
        (note(METRICS), note(CURRENT_METRICS), note(CONDITIONS), note(BEHAVIOR));
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        let mut all: Vec<Value> = list(wanted).iter().map(|metric| metrics::newer(metric, WANTED)).collect();
        all.extend(spec.remove("targetCPUUtilizationPercentage").filter(Value::is_number).map(|per_cent| {
            let target = json!({"type": "Utilization", "averageUtilization": per_cent});
            json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
        }));
        if !all.is_empty() {
            spec.insert("metrics".to_owned(), Value::Array(all));
        }
        if let Some(behavior) = behavior.filter(Value::is_object) {
            spec.insert("behavior".to_owned(), newer_behavior(&behavior));
        }
    }
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        if status.get("currentReplicas").is_some_and(|replicas| replicas == 0) {
            status.remove("currentReplicas");
        }
        let processor = status.remove("currentCPUUtilizationPercentage").filter(Value::is_number).map(|per_cent| {
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": per_cent}}}])
        });
        let told = list(current).iter().map(|metric| metrics::newer(metric, CURRENT)).collect::<Vec<_>>();
        let current = if told.is_empty() { processor.unwrap_or(Value::Null) } else { Value::Array(told) };
        status.insert("currentMetrics".to_owned(), current);
        if let Some(conditions) = conditions.filter(Value::is_array) {
            status.insert("conditions".to_owned(), conditions);
        }
    }
}

/// Fills in what nobody set, in the version of the object.
pub(super) fn fill(value: &mut Value) {
    let older = value["apiVersion"] == OLDER;
    let has_note = !list(value["metadata"]["annotations"][METRICS].as_str().and_then(read)).is_empty();
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.entry("minReplicas").or_insert_with(|| Value::from(1));
    if older {
        if !has_note {
            spec.entry("targetCPUUtilizationPercentage").or_insert_with(|| Value::from(PROCESSOR_DEFAULT));
        }
        return;
    }
    if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let target = json!({"type": "Utilization", "averageUtilization": PROCESSOR_DEFAULT});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        spec.insert("metrics".to_owned(), json!([metric]));
    }
    if let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) {
        let per_cent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        let up = json!({"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, per_cent]});
        let down = json!({"selectPolicy": "Max", "policies": [per_cent]});
        for (direction, defaults) in [("scaleUp", up), ("scaleDown", down)] {
            let rules = behavior.entry(direction).or_insert_with(|| json!({}));
            for (key, default) in defaults.as_object().into_iter().flatten() {
                if rules.is_object() && rules[key].is_null() {
                    rules[key] = default.clone();
                }
            }
        }
    }
}

/// The status of a new one, as its version shows it.
pub(super) fn new_status(value: &Value) -> Value {
    if value["apiVersion"] == OLDER {
        json!({"currentReplicas": 0, "desiredReplicas": 0})
    } else {
        json!({"currentMetrics": null, "desiredReplicas": 0})
    }
}

/// Takes an annotation away; answers what it holds, if that can be read.
fn take_note(value: &mut Value, key: &str) -> Option<Value> {
    let metadata = fields::metadata(value);
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut)?;
    let text = annotations.remove(key);
    if text.is_some() && annotations.is_empty() {
        metadata.remove("annotations");
    }
    read(text?.as_str()?)
}

fn read(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn in_brackets(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

/// JSON as Go writes it: safe to stand in a page of HTML. Outside of texts none of these characters can be.
fn as_go_writes(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}

fn is_processor(metric: &Value) -> bool {
    metric["type"] == "Resource" && metric["resource"]["name"] == "cpu"
}

/// The per cents of a metric of a resource.
fn utilization<'a>(metric: &'a Value, which: &str) -> Option<&'a Value> {
    Some(&metric["resource"][which]["averageUtilization"]).filter(|per_cent| per_cent.is_number())
}

fn older_behavior(behavior: &Value) -> String {
    let renamed = |of: &Value, names: &[(&str, &str)]| -> Vec<String> {
        names.iter().map(|(older, newer)| format!("\"{older}\":{}", of[*newer])).collect()
    };
    let direction = |rules: &Value| {
        if !rules.is_object() {
            return "null".to_owned();
        }
        let policies = rules["policies"].as_array().map_or("null".to_owned(), |policies| {
            let texts: Vec<String> =
                policies.iter().map(|policy| format!("{{{}}}", renamed(policy, POLICY).join(","))).collect();
            in_brackets(&texts)
        });
        format!("{{{},\"Policies\":{policies}}}", renamed(rules, RULES).join(","))
    };
    format!("{{\"ScaleUp\":{},\"ScaleDown\":{}}}", direction(&behavior["scaleUp"]), direction(&behavior["scaleDown"]))
}

fn newer_behavior(behavior: &Value) -> Value {
    let renamed = |of: &Value, names: &[(&str, &str)]| -> Map<String, Value> {
        let set = names.iter().filter(|(older, _)| !of[*older].is_null());
        set.map(|(older, newer)| ((*newer).to_owned(), of[*older].clone())).collect()
    };
    let mut out = Map::new();
    for (older, newer) in [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")] {
        let rules = &behavior[older];
        if !rules.is_object() {
            continue;
        }
        let mut made = renamed(rules, RULES);
        if let Some(policies) = rules["Policies"].as_array() {
            let policies = policies.iter().map(|policy| Value::Object(renamed(policy, POLICY))).collect();
            made.insert("policies".to_owned(), policies);
        }
        out.insert(newer.to_owned(), Value::Object(made));
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests;
