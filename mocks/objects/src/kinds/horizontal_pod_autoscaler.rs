//! `HorizontalPodAutoscaler`: changes a number of replicas by measured load. What `v1` makes of it is below.

mod targets;
mod v1;

use super::print::{AGE, NAME, Printer, UNSET, amount};
use super::{Generation, Kind, Older};

pub(super) const HORIZONTAL_POD_AUTOSCALER: Kind = Kind {
    short_names: &["hpa"],
    categories: &["all"],
    about: "Changes a number of replicas by measured load.",
    status: true,
    messages: &[
        (
            "HorizontalPodAutoscaler",
            "1:metadata:ObjectMeta 2:spec:HorizontalPodAutoscalerSpec 3:status:HorizontalPodAutoscalerStatus",
        ),
        (
            "HorizontalPodAutoscalerSpec",
            "1:scaleTargetRef:CrossVersionObjectReference 2:minReplicas:i? 3:maxReplicas:i! \
             4:metrics:[MetricSpec] 5:behavior:HorizontalPodAutoscalerBehavior",
        ),
        ("CrossVersionObjectReference", "1:kind:s! 2:name:s! 3:apiVersion:s"),
        (
            "MetricSpec",
            "1:type:s! 2:object:ObjectMetricSource 3:pods:PodsMetricSource 4:resource:ResourceMetricSource \
             5:external:ExternalMetricSource 7:containerResource:ContainerResourceMetricSource",
        ),
        (
            "ObjectMetricSource",
            "1:describedObject:CrossVersionObjectReference 2:target:MetricTarget 3:metric:MetricIdentifier",
        ),
        ("MetricTarget", "1:type:s! 2:value:Q? 3:averageValue:Q? 4:averageUtilization:i?"),
        ("MetricIdentifier", "1:name:s! 2:selector:LabelSelector"),
        ("PodsMetricSource", "1:metric:MetricIdentifier 2:target:MetricTarget"),
        ("ResourceMetricSource", "1:name:s! 2:target:MetricTarget"),
        ("ContainerResourceMetricSource", "1:name:s! 2:target:MetricTarget 3:container:s!"),
        ("ExternalMetricSource", "1:metric:MetricIdentifier 2:target:MetricTarget"),
        ("HorizontalPodAutoscalerBehavior", "1:scaleUp:HPAScalingRules 2:scaleDown:HPAScalingRules"),
        (
            "HPAScalingRules",
            "1:selectPolicy:s? 2:policies:[HPAScalingPolicy] 3:stabilizationWindowSeconds:i? 4:tolerance:Q",
        ),
        ("HPAScalingPolicy", "1:type:s! 2:value:i! 3:periodSeconds:i!"),
        (
            "HorizontalPodAutoscalerStatus",
            "1:observedGeneration:i? 2:lastScaleTime:T 3:currentReplicas:i! 4:desiredReplicas:i! \
             5:currentMetrics:[MetricStatus]! 6:conditions:[HorizontalPodAutoscalerCondition]!",
        ),
        (
            "MetricStatus",
            "1:type:s! 2:object:ObjectMetricStatus 3:pods:PodsMetricStatus 4:resource:ResourceMetricStatus \
             5:external:ExternalMetricStatus 7:containerResource:ContainerResourceMetricStatus",
        ),
        (
            "ObjectMetricStatus",
            "1:metric:MetricIdentifier 2:current:MetricValueStatus 3:describedObject:CrossVersionObjectReference",
        ),
        ("MetricValueStatus", "1:value:Q? 2:averageValue:Q? 3:averageUtilization:i?"),
        ("PodsMetricStatus", "1:metric:MetricIdentifier 2:current:MetricValueStatus"),
        ("ResourceMetricStatus", "1:name:s! 2:current:MetricValueStatus"),
        ("ContainerResourceMetricStatus", "1:name:s! 2:current:MetricValueStatus 3:container:s!"),
        ("ExternalMetricStatus", "1:metric:MetricIdentifier 2:current:MetricValueStatus"),
        ("HorizontalPodAutoscalerCondition", "1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s"),
        (
            "HorizontalPodAutoscalerV1",
            "1:metadata:ObjectMeta 2:spec:HorizontalPodAutoscalerSpecV1 3:status:HorizontalPodAutoscalerStatusV1",
        ),
        (
            "HorizontalPodAutoscalerSpecV1",
            "1:scaleTargetRef:CrossVersionObjectReference 2:minReplicas:i? 3:maxReplicas:i! \
             4:targetCPUUtilizationPercentage:i?",
        ),
        (
            "HorizontalPodAutoscalerStatusV1",
            "1:observedGeneration:i? 2:lastScaleTime:T 3:currentReplicas:i! 4:desiredReplicas:i! \
             5:currentCPUUtilizationPercentage:i?",
        ),
    ],
    message_of: &[("autoscaling/v1", "HorizontalPodAutoscalerV1")],
    printer: PRINTER,
    older: Some(Older { to_newer: v1::to_newer, to_older: v1::to_older }),
    defaults: v1::fill,
    new: |value| value["status"] = v1::new_status(value),
    generation: Generation::None,
    ..Kind::namespaced("autoscaling", &["v2", "v1"], "horizontalpodautoscalers", "HorizontalPodAutoscaler")
};

const PRINTER: Printer = Printer {
    columns: &[
        NAME,
        ("Reference", "string", 0),
        ("Targets", "string", 0),
        ("MinPods", "string", 0),
        ("MaxPods", "integer", 0),
        ("Replicas", "integer", 0),
        AGE,
    ],
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
