//! `HorizontalPodAutoscaler`: changes the number of a workload's replicas according to measured load.

mod older;
mod targets;

use serde_json::{Value, json};

use super::at::At;
use super::causes::Refuse;
use super::print::{Cells, UNSET, amount};
use super::{Causes, Generation, Kind, Older};
use crate::fields::set;

pub(super) const HORIZONTAL_POD_AUTOSCALER: Kind = Kind {
    about: "Changes a number of replicas by measured load.",
    older: Some(Older { api_version: "autoscaling/v1", to_stored: older::to_stored, from_stored: older::from_stored }),
    cells: CELLS,
    defaults,
    check,
    generation: Generation::None,
    ..Kind::of("horizontalpodautoscalers.autoscaling")
};

/// The default target for CPU utilisation, in per cent.
const PROCESSOR_DEFAULT: i64 = 80;

fn defaults(value: &mut Value) {
    set(value, &["spec"], "minReplicas", json!(1));
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let target = json!({"type": "Utilization", "averageUtilization": PROCESSOR_DEFAULT});
        spec.insert("metrics".into(), json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
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

fn check(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], At::from("spec"));
    let (least, most) = (spec["minReplicas"].as_i64(), spec["maxReplicas"].as_i64().unwrap_or(0));
    if let Some(least) = least.filter(|least| *least < 1) {
        causes.invalid(at.field("minReplicas"), &least, "must be greater than or equal to 1");
    }
    if most < 1 {
        causes.invalid(at.field("maxReplicas"), &most, "must be greater than 0");
    }
    if least.is_some_and(|least| most < least) {
        causes.invalid(at.field("maxReplicas"), &most, "must be greater than or equal to `minReplicas`");
    }
    let target = at.field("scaleTargetRef");
    for key in ["kind", "name"] {
        causes.text_in(&spec["scaleTargetRef"], key, target);
    }
    let api_version = spec["scaleTargetRef"]["apiVersion"].as_str().unwrap_or_default();
    if !api_version.contains('/') && spec["scaleTargetRef"]["kind"] != "ReplicationController" {
        causes.invalid_text(target.field("apiVersion"), api_version, "apiVersion must specify API group");
    }
    for (index, metric) in spec["metrics"].as_array().into_iter().flatten().enumerate() {
        let share = metric["resource"]["target"]["averageUtilization"].as_i64();
        if let Some(share) = share.filter(|share| *share < 1) {
            let list = at.field("metrics");
            let (one, field) = (list.item(index), "resource.target.averageUtilization");
            causes.invalid(one.field(field), &share, "must be greater than 0");
        }
    }
}

const CELLS: Cells = |row| {
    let target = |key: &str| row.text(&format!("/spec/scaleTargetRef/{key}"));
    vec![
        row.name(),
        format!("{}/{}", target("kind"), target("name")).into(),
        targets::targets(row),
        amount(row.at("/spec/minReplicas"), UNSET),
        row.number("/spec/maxReplicas").into(),
        row.number("/status/currentReplicas").into(),
        row.age(),
    ]
};
