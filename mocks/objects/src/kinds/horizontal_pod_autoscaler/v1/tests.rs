//! What kube-apiserver 1.20.2 showed in `v1` of what was written in `v2`, and back.

use serde_json::{Value, json};

use super::{fill, to_newer, to_older};

fn newer() -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "d", "annotations": {"x": "y"}},
        "spec": {"maxReplicas": 3, "minReplicas": 1, "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "metrics": [
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "500Mi"}}},
            {"type": "Pods", "pods": {"metric": {"name": "pps", "selector": {"matchLabels": {"a": "b"}}},
                "target": {"type": "AverageValue", "averageValue": "1k"}}},
            {"type": "Object", "object": {"metric": {"name": "rps"}, "target": {"type": "Value", "value": "10k"},
                "describedObject": {"kind": "Ingress", "name": "i", "apiVersion": "networking.k8s.io/v1"}}},
            {"type": "External", "external": {"metric": {"name": "q", "selector": {"matchLabels": {"q": "z"}}},
                "target": {"type": "AverageValue", "averageValue": "30"}}},
            {"type": "Object", "object": {"metric": {"name": "rps"}, "describedObject": {"kind": "Ingress", "name": "i"},
                "target": {"type": "AverageValue", "averageValue": "10"}}},
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
        ], "behavior": {
            "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [
                {"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]},
            "scaleDown": {"stabilizationWindowSeconds": 60, "selectPolicy": "Max", "policies": [
                {"type": "Percent", "value": 10, "periodSeconds": 60}]},
        }},
        "status": {"currentReplicas": 1, "desiredReplicas": 2, "currentMetrics": [
            {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "400Mi"}}},
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 70, "averageValue": "2"}}},
            {"type": "Pods", "pods": {"metric": {"name": "pps"}, "current": {"averageValue": "1k"}}},
            {"type": "Object", "object": {"describedObject": {"kind": "Ingress", "name": "i"}, "metric": {"name": "rps"},
                "current": {"value": "9k"}}},
            {"type": "External", "external": {"metric": {"name": "q"}, "current": {"averageValue": "3", "value": "4"}}},
        ], "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2024-01-02T03:04:05Z",
            "reason": "R", "message": "m"}]},
    })
}

#[test]
fn what_has_no_field_is_an_annotation() {
    let mut value = newer();
    to_older(&mut value);
    let wanted = r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"500Mi"}},{"type":"Pods","pods":{"metricName":"pps","targetAverageValue":"1k","selector":{"matchLabels":{"a":"b"}}}},{"type":"Object","object":{"target":{"kind":"Ingress","name":"i","apiVersion":"networking.k8s.io/v1"},"metricName":"rps","targetValue":"10k"}},{"type":"External","external":{"metricName":"q","metricSelector":{"matchLabels":{"q":"z"}},"targetAverageValue":"30"}},{"type":"Object","object":{"target":{"kind":"Ingress","name":"i"},"metricName":"rps","targetValue":"0","averageValue":"10"}}]"#;
    let current = r#"[{"type":"Resource","resource":{"name":"memory","currentAverageValue":"400Mi"}},{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":70,"currentAverageValue":"2"}},{"type":"Pods","pods":{"metricName":"pps","currentAverageValue":"1k"}},{"type":"Object","object":{"target":{"kind":"Ingress","name":"i"},"metricName":"rps","currentValue":"9k"}},{"type":"External","external":{"metricName":"q","currentValue":"4","currentAverageValue":"3"}}]"#;
    let conditions = r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":"2024-01-02T03:04:05Z","reason":"R","message":"m"}]"#;
    let behavior = r#"{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15},{"Type":"Percent","Value":100,"PeriodSeconds":15}]},"ScaleDown":{"StabilizationWindowSeconds":60,"SelectPolicy":"Max","Policies":[{"Type":"Percent","Value":10,"PeriodSeconds":60}]}}"#;
    let annotations = json!({
        "x": "y", "autoscaling.alpha.kubernetes.io/metrics": wanted, "autoscaling.alpha.kubernetes.io/behavior": behavior,
        "autoscaling.alpha.kubernetes.io/current-metrics": current, "autoscaling.alpha.kubernetes.io/conditions": conditions,
    });
    assert_eq!(value["metadata"]["annotations"], annotations);
    let spec = json!({"maxReplicas": 3, "minReplicas": 1, "scaleTargetRef": {"kind": "Deployment", "name": "d"},
        "targetCPUUtilizationPercentage": 70});
    assert_eq!(value["spec"], spec);
    let status = json!({"currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 70});
    assert_eq!(value["status"], status);
}

/// Nothing is lost on the way to v1 and back.
#[test]
fn there_and_back_is_the_same() {
    let mut value = newer();
    to_older(&mut value);
    to_newer(&mut value);
    assert_eq!(value, newer());
    let plain = json!({"metadata": {"name": "a"}, "spec": {"metrics": [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
    ], "behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}});
    let mut value = plain.clone();
    to_older(&mut value);
    to_newer(&mut value);
    assert_eq!(value, plain);
}

#[test]
fn what_cannot_be_read_is_gone() {
    let notes = json!({"autoscaling.alpha.kubernetes.io/metrics": "nonsense", "autoscaling.alpha.kubernetes.io/behavior": "[1]"});
    let mut value = json!({"metadata": {"name": "a", "annotations": notes}, "spec": {"maxReplicas": 1}});
    to_newer(&mut value);
    assert_eq!(value, json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 1}}));
}

#[test]
fn each_version_has_its_defaults() {
    let mut older = json!({"apiVersion": "autoscaling/v1", "metadata": {}, "spec": {"maxReplicas": 3}});
    fill(&mut older);
    assert_eq!(older["spec"], json!({"maxReplicas": 3, "minReplicas": 1, "targetCPUUtilizationPercentage": 80}));
    let note = r#"[{"type":"Pods","pods":{"metricName":"p","targetAverageValue":"1"}}]"#;
    let mut noted = json!({"apiVersion": "autoscaling/v1", "spec": {"maxReplicas": 3},
        "metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": note}}});
    fill(&mut noted);
    assert_eq!(noted["spec"], json!({"maxReplicas": 3, "minReplicas": 1}));
    let mut newer = json!({"apiVersion": "autoscaling/v2", "spec": {"maxReplicas": 3, "behavior": {}}});
    fill(&mut newer);
    let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}});
    assert_eq!(newer["spec"]["metrics"], json!([{"type": "Resource", "resource": cpu}]));
    let down = json!({"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]});
    assert_eq!(newer["spec"]["behavior"]["scaleDown"], down);
}

/// Of several metrics of the processor the first is aimed at and the last is told, as in kube-apiserver's conversion.
#[test]
fn the_first_processor_decides_and_the_last_is_told() {
    let metric = |which: &str, per_cent: u32| json!({"type": "Resource", "resource": {"name": "cpu", which: {"type": "Utilization", "averageUtilization": per_cent}}});
    let raw = json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "2"}}});
    let mut value = json!({"spec": {"metrics": [metric("target", 10), metric("target", 20)]},
        "status": {"currentMetrics": [metric("current", 30), metric("current", 40), raw]}});
    to_older(&mut value);
    assert_eq!(value["spec"]["targetCPUUtilizationPercentage"], 10);
    assert_eq!(value["status"]["currentCPUUtilizationPercentage"], 40);
}

/// Go's texts have no bare signs of HTML, and say the same.
#[test]
fn texts_are_written_as_go_writes_them() {
    let conditions = json!([{"type": "ScalingActive", "status": "True", "message": "<5 & >2\u{2028}"}]);
    let mut value = json!({"spec": {}, "status": {"conditions": conditions}});
    to_older(&mut value);
    let text = value["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/conditions"].as_str().unwrap();
    assert_eq!(text, r#"[{"type":"ScalingActive","status":"True","message":"\u003c5 \u0026 \u003e2\u2028"}]"#);
    to_newer(&mut value);
    assert_eq!(value["status"]["conditions"], conditions);
}
