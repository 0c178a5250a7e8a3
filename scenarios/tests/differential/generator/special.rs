//! Bodies of events in both APIs, and of the custom resource `Widget` that both servers have from the start.

use serde_json::{Value, json};

/// The definition of `Widget`: defaults, limits, lists of all types, both subresources and printer
/// columns.
pub fn definition(group: &str) -> Value {
    let entry = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "port": {"type": "integer", "default": 80}, "note": {"type": "string"},
    }});
    let port = json!({"type": "object", "required": ["port"], "properties": {
        "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "note": {"type": "string"},
    }});
    let spec = json!({"type": "object", "required": ["image"], "properties": {
        "image": {"type": "string", "minLength": 1, "pattern": "^[a-z0-9:./@-]+$"},
        "replicas": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
        "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
        "ratio": {"type": "number", "exclusiveMinimum": true, "minimum": 0},
        "maybe": {"type": "string", "nullable": true},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "plain": {"type": "array", "maxItems": 3, "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                  "items": port},
        "one": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "entries": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "items": entry},
    }});
    let status = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"}, "phase": {"type": "string"}, "selector": {"type": "string"},
        "conditions": {"type": "array", "items": {"type": "object", "properties": {
            "type": {"type": "string"}, "status": {"type": "string"},
        }}},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector",
                }},
                "additionalPrinterColumns": [
                    {"name": "Image", "type": "string", "jsonPath": ".spec.image"},
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                ],
            }],
        },
    })
}

pub fn event(variant: u8) -> Value {
    let about = json!({"kind": "Pod", "namespace": "{ns}", "name": "p", "apiVersion": "v1"});
    match variant % 4 {
        0 => json!({"involvedObject": about, "reason": "Pulled", "message": "text", "type": "Normal", "count": 1,
                    "source": {"component": "kubelet", "host": "n1"},
                    "firstTimestamp": "2024-02-03T04:05:06Z", "lastTimestamp": "2024-02-03T04:05:07Z"}),
        1 => json!({"involvedObject": about, "reason": "Failed", "type": "Warning",
                    "eventTime": "2024-02-03T04:05:06.000007Z", "action": "Pull",
                    "reportingComponent": "example.com/one", "reportingInstance": "one-1"}),
        2 => json!({"involvedObject": about, "reason": "Seen", "message": "more"}),
        _ => json!({"involvedObject": about, "reason": "Failed", "type": "Warning",
                    "eventTime": "2024-02-03T04:05:06.000007Z", "action": "Pull", "reportingComponent": "one",
                    "reportingInstance": "one-1", "related": {"kind": "Node", "name": "n1"},
                    "series": {"count": 3, "lastObservedTime": "2024-02-03T04:05:09.000001Z"}}),
    }
}

pub fn newer_event(variant: u8) -> Value {
    let about = json!({"kind": "Pod", "namespace": "{ns}", "name": "p", "apiVersion": "v1"});
    let mut event = json!({
        "regarding": about, "reason": "Failed", "type": "Warning", "eventTime": "2024-02-03T04:05:06.000007Z",
        "action": "Pull", "reportingController": "example.com/one", "reportingInstance": "one-1", "note": "text",
    });
    match variant % 3 {
        1 => event["series"] = json!({"count": 2, "lastObservedTime": "2024-02-03T04:05:09.000001Z"}),
        2 => event["related"] = json!({"kind": "Node", "name": "n1"}),
        _ => {}
    }
    event
}

pub fn break_event(object: &mut Value, flaw: u8) {
    match flaw {
        0 => object["type"] = json!("Strange"),
        1 => object["eventTime"] = json!("yesterday"),
        2 => object["eventTime"] = Value::Null,
        3 => object["reason"] = json!("r".repeat(130)),
        4 => object["series"] = json!({"count": 1}),
        _ => {
            object["involvedObject"] = json!({"kind": "Pod", "namespace": "elsewhere", "name": "p"});
            object["deprecatedCount"] = json!(4);
        }
    }
}

pub fn widget(variant: u8) -> Value {
    match variant % 6 {
        0 => json!({"spec": {"image": "a:1"}}),
        1 => json!({"spec": {"image": "b:1", "replicas": 3, "unknown": 1, "free": {"any": {"thing": [1]}}},
                    "stray": true}),
        2 => json!({"spec": {"image": "c:1", "mode": "slow", "plain": ["a", "a"], "set": ["x", "y"],
                             "labels": {"k": "v"}}}),
        3 => json!({"spec": {"image": "d:1", "entries": [{"name": "one"}, {"name": "two", "port": 8, "odd": 1}],
                             "maybe": null, "replicas": null}}),
        4 => json!({"spec": {"image": "e:1", "ratio": 0.5}}),
        _ => json!({"spec": {"image": "f:1", "ratio": 2, "set": []}}),
    }
}

pub fn break_widget(object: &mut Value, flaw: u8) {
    let spec = &mut object["spec"];
    match flaw {
        0 => *spec = json!({}),
        1 => spec["replicas"] = json!(11),
        2 => spec["mode"] = json!("Sideways"),
        3 => spec["set"] = json!(["x", "x"]),
        4 => spec["entries"] = json!([{"name": "one"}, {"name": "one"}, {"port": 5}]),
        _ => {
            *spec = json!({"image": "Bad Image", "replicas": "three", "ratio": 0, "labels": {"k": 1},
                            "plain": ["a", "b", "c", "d"]});
        }
    }
}
