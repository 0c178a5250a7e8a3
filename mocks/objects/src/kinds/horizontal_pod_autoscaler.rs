//! `HorizontalPodAutoscaler`: changes a number of replicas according to measured load.

mod targets;

use serde_json::{Value, json};

use super::print::{Printer, UNSET, amount};
use super::{Generation, Kind};
use crate::fields::set;

pub(super) const HORIZONTAL_POD_AUTOSCALER: Kind = Kind {
    short_names: &["hpa"],
    categories: &["all"],
    about: "Changes a number of replicas by measured load.",
    status: true,
    messages: &[
        "HorizontalPodAutoscaler 1:metadata:ObjectMeta 2:spec:HorizontalPodAutoscalerSpec \
         3:status:HorizontalPodAutoscalerStatus",
        "HorizontalPodAutoscalerSpec 1:scaleTargetRef:CrossVersionObjectReference 2:minReplicas:i? 3:maxReplicas:i! \
         4:metrics:[MetricSpec] 5:behavior:HorizontalPodAutoscalerBehavior",
        "CrossVersionObjectReference 1:kind:s! 2:name:s! 3:apiVersion:s",
        "MetricSpec 1:type:s! 2:object:ObjectMetricSource 3:pods:PodsMetricSource 4:resource:ResourceMetricSource \
         5:external:ExternalMetricSource 7:containerResource:ContainerResourceMetricSource",
        "ObjectMetricSource 1:describedObject:CrossVersionObjectReference 2:target:MetricTarget \
         3:metric:MetricIdentifier",
        "MetricTarget 1:type:s! 2:value:Q? 3:averageValue:Q? 4:averageUtilization:i?",
        "MetricIdentifier 1:name:s! 2:selector:LabelSelector",
        "PodsMetricSource 1:metric:MetricIdentifier 2:target:MetricTarget",
        "ResourceMetricSource 1:name:s! 2:target:MetricTarget",
        "ContainerResourceMetricSource 1:name:s! 2:target:MetricTarget 3:container:s!",
        "ExternalMetricSource 1:metric:MetricIdentifier 2:target:MetricTarget",
        "HorizontalPodAutoscalerBehavior 1:scaleUp:HPAScalingRules 2:scaleDown:HPAScalingRules",
        "HPAScalingRules 1:selectPolicy:s? 2:policies:[HPAScalingPolicy] 3:stabilizationWindowSeconds:i? 4:tolerance:Q",
        "HPAScalingPolicy 1:type:s! 2:value:i! 3:periodSeconds:i!",
        "HorizontalPodAutoscalerStatus 1:observedGeneration:i? 2:lastScaleTime:T 3:currentReplicas:i! \
         4:desiredReplicas:i! 5:currentMetrics:[MetricStatus]! 6:conditions:[HorizontalPodAutoscalerCondition]!",
        "MetricStatus 1:type:s! 2:object:ObjectMetricStatus 3:pods:PodsMetricStatus 4:resource:ResourceMetricStatus \
         5:external:ExternalMetricStatus 7:containerResource:ContainerResourceMetricStatus",
        "ObjectMetricStatus 1:metric:MetricIdentifier 2:current:MetricValueStatus \
         3:describedObject:CrossVersionObjectReference",
        "MetricValueStatus 1:value:Q? 2:averageValue:Q? 3:averageUtilization:i?",
        "PodsMetricStatus 1:metric:MetricIdentifier 2:current:MetricValueStatus",
        "ResourceMetricStatus 1:name:s! 2:current:MetricValueStatus",
        "ContainerResourceMetricStatus 1:name:s! 2:current:MetricValueStatus 3:container:s!",
        "ExternalMetricStatus 1:metric:MetricIdentifier 2:current:MetricValueStatus",
        "HorizontalPodAutoscalerCondition 1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s",
    ],
    printer: PRINTER,
    defaults,
    new: |value| value["status"] = json!({"currentMetrics": null, "desiredReplicas": 0}),
    generation: Generation::None,
    ..Kind::namespaced("autoscaling", &["v2"], "horizontalpodautoscalers", "HorizontalPodAutoscaler")
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

const PRINTER: Printer = Printer {
    columns: "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age",
    cells: |row| {
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
    },
};
