//! `HorizontalPodAutoscaler` in `v1`: what it has no fields for stands in annotations, which are read and written anew.

use serde_json::{Value, json};

use crate::sequence::{Sequence, Step};

const PATH: &str = "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers";
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

pub fn all() -> Vec<Sequence> {
    let one = |name: &str, steps: Vec<Step>| Sequence { name: name.to_owned(), steps };
    vec![
        one("autoscalers", plain()),
        one("autoscalers with annotations", noted()),
        one("the status of autoscalers", status()),
    ]
}

fn scaler(name: &str, annotations: &Value, more: &Value) -> Value {
    let mut spec =
        json!({"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let mut metadata = json!({"name": name});
    if annotations.is_object() {
        metadata["annotations"] = annotations.clone();
    }
    json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec})
}

fn plain() -> Vec<Step> {
    let post = |name: &str, more: Value| Step::post(PATH, scaler(name, &Value::Null, &more));
    let merged = |name: &str, patch: Value| Step::patch(format!("{PATH}/{name}"), "merge-patch", patch);
    vec![
        Step::get(PATH),
        post("a", json!({"targetCPUUtilizationPercentage": 50})),
        post("b", json!({})),
        post("c", json!({"minReplicas": 2, "metrics": [], "odd": 1})),
        merged("a", json!({"spec": {"targetCPUUtilizationPercentage": 60, "metrics": []}})),
        merged("a", json!({"spec": {"targetCPUUtilizationPercentage": null}})),
        merged("b", json!({"spec": {"maxReplicas": 5}})),
        merged("b", json!({"spec": {"maxReplicas": 5}})),
        Step::put(format!("{PATH}/c"), scaler("c", &Value::Null, &json!({"minReplicas": 1}))),
        Step::apply(
            format!("{PATH}/d?fieldManager=one"),
            scaler("d", &Value::Null, &json!({"targetCPUUtilizationPercentage": 70})),
        ),
        Step::apply(
            format!("{PATH}/d?fieldManager=one"),
            scaler("d", &Value::Null, &json!({"targetCPUUtilizationPercentage": 75})),
        ),
        Step::get(PATH),
        Step::delete(format!("{PATH}/a")),
        Step::get(PATH),
    ]
}

/// Other names of fields and another order than the server's would show that it writes the texts itself.
fn noted() -> Vec<Step> {
    let metrics = json!([
        {"type": "Resource", "resource": {"targetAverageValue": "500Mi", "name": "memory"}},
        {"type": "Pods", "pods": {"targetAverageValue": "1k", "metricName": "pps", "selector": {"matchLabels": {"a": "b"}}}},
        {"type": "Object", "object": {"target": {"name": "i", "kind": "Ingress", "apiVersion": "networking.k8s.io/v1"},
            "targetValue": "10k", "metricName": "rps"}},
        {"type": "External", "external": {"targetAverageValue": "30", "metricName": "q", "metricSelector": {"matchLabels": {"q": "z"}}}},
    ]);
    let rules = |value: i64| json!({"Policies": [{"Value": value, "Type": "Percent", "PeriodSeconds": 60}], "SelectPolicy": "Max", "StabilizationWindowSeconds": 60});
    let behavior = json!({"ScaleDown": rules(10), "ScaleUp": rules(20)});
    let notes = json!({"x": "y", METRICS: metrics.to_string(), BEHAVIOR: behavior.to_string()});
    let merged = |name: &str, patch: Value| Step::patch(format!("{PATH}/{name}"), "merge-patch", patch);
    let cpu = json!({"targetCPUUtilizationPercentage": 50});
    vec![
        Step::post(PATH, scaler("a", &notes, &json!({}))),
        Step::post(PATH, scaler("b", &notes, &cpu)),
        Step::post(PATH, scaler("c", &json!({METRICS: "nonsense", BEHAVIOR: "[1]"}), &cpu)),
        Step::get(PATH),
        merged("a", json!({"spec": {"targetCPUUtilizationPercentage": 40}})),
        merged("a", json!({"metadata": {"annotations": {METRICS: null}}})),
        merged("a", json!({"metadata": {"annotations": {BEHAVIOR: null}}})),
        merged("b", json!({"metadata": {"annotations": null}, "spec": {"targetCPUUtilizationPercentage": null}})),
        merged("c", json!({"metadata": {"annotations": {METRICS: metrics.to_string()}}})),
        Step::get(PATH),
    ]
}

fn status() -> Vec<Step> {
    let current = json!([
        {"type": "Resource", "resource": {"name": "memory", "currentAverageValue": "400Mi"}},
        {"type": "Pods", "pods": {"metricName": "pps", "currentAverageValue": "1k"}},
    ]);
    let condition = json!([{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2024-01-02T03:04:05Z", "reason": "R", "message": "m"}]);
    let mut noted = scaler(
        "a",
        &json!({
            "autoscaling.alpha.kubernetes.io/current-metrics": current.to_string(),
            "autoscaling.alpha.kubernetes.io/conditions": condition.to_string(),
        }),
        &json!({}),
    );
    noted["status"] = json!({"currentReplicas": 1, "desiredReplicas": 2, "lastScaleTime": "2024-01-02T03:04:05Z"});
    let path = format!("{PATH}/a/status");
    let of_cpu = json!({"status": {"currentReplicas": 2, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 70}});
    vec![
        Step::post(PATH, scaler("a", &Value::Null, &json!({}))),
        Step::patch(&path[..], "merge-patch", of_cpu),
        Step::get(format!("{PATH}/a")),
        Step::put(&path[..], noted),
        Step::get(format!("{PATH}/a")),
    ]
}
