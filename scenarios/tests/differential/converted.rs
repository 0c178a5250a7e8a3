//! Tests of objects that are written in one form (an API group or a version) and read in all other forms. The tests
//! cover both APIs of events, the versions of a custom resource without a conversion webhook, and the `Scale` of
//! scalable resources.
//!
//! Each object differs from a plain object in one field, because a conversion can lose values that are unset, null or
//! written in an unusual way.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::driver::{self, Endpoint, Raw};
use crate::sequence::{Sequence, Step};

/// The resources with several forms that these tests cover, as `plural/kind`.
const COVERED: &[&str] = &["events/Event", "horizontalpodautoscalers/HorizontalPodAutoscaler"];
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "{ns}.example.com";
const PLURAL: &str = "shapes";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// One form in which the objects can be written and read.
#[derive(Clone, Copy)]
struct Form {
    api_version: &'static str,
    /// The path of the collection in this form.
    path: &'static str,
}

const EVENTS: [Form; 2] = [
    Form { api_version: "v1", path: "/api/v1/namespaces/{ns}/events" },
    Form { api_version: "events.k8s.io/v1", path: "/apis/events.k8s.io/v1/namespaces/{ns}/events" },
];

const AUTOSCALERS: [Form; 2] = [
    Form { api_version: "autoscaling/v1", path: "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers" },
    Form { api_version: "autoscaling/v2", path: "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers" },
];

/// `(field of v1, field of events.k8s.io/v1, values in JSON)`.
const EVENT_FIELDS: &[(&str, &str, &[&str])] = &[
    (
        "involvedObject",
        "regarding",
        &[
            "null",
            "{}",
            r#"{"kind": "Pod", "namespace": "{ns}"}"#,
            r#"{"kind": "Pod", "namespace": "{ns}", "name": "p", "uid": "u", "apiVersion": "v1", "resourceVersion": "7",
                "fieldPath": "spec.containers{a}"}"#,
            r#"{"kind": "", "namespace": "{ns}", "name": ""}"#,
        ],
    ),
    ("reason", "reason", &["null", r#""""#, r#""Other""#]),
    ("message", "note", &["null", r#""""#, r#"" a\nb ü\u0000 ""#]),
    (
        "source",
        "deprecatedSource",
        &["null", "{}", r#"{"component": "c"}"#, r#"{"host": "h"}"#, r#"{"component": "", "host": ""}"#],
    ),
    (
        "firstTimestamp",
        "deprecatedFirstTimestamp",
        &["null", r#""2024-02-03T04:05:06Z""#, r#""2024-02-03T04:05:06.789+01:00""#],
    ),
    (
        "lastTimestamp",
        "deprecatedLastTimestamp",
        &["null", r#""2024-02-03T04:05:06Z""#, r#""2024-02-03T04:05:06-11:30""#],
    ),
    ("count", "deprecatedCount", &["null", "0", "3", "2147483647"]),
    ("type", "type", &["null", r#""""#, r#""Warning""#]),
    (
        "eventTime",
        "eventTime",
        &[
            "null",
            r#""2024-02-03T04:05:06Z""#,
            r#""2024-02-03T04:05:06.1234567+01:00""#,
            r#""2024-02-03T04:05:06.100Z""#,
        ],
    ),
    (
        "series",
        "series",
        &[
            "null",
            "{}",
            r#"{"count": 0}"#,
            r#"{"count": 3, "lastObservedTime": null}"#,
            r#"{"count": 3, "lastObservedTime": "2024-02-03T04:05:09Z"}"#,
            r#"{"count": 0, "lastObservedTime": "2024-02-03T04:05:09.500000Z"}"#,
            r#"{"count": 3, "lastObservedTime": "2024-02-03T04:05:09.500000-03:00", "state": "Ongoing"}"#,
            r#"{"count": 3, "lastObservedTime": "2024-02-03T04:05:09.5+02:00", "state": "Ongoing"}"#,
        ],
    ),
    ("action", "action", &["null", r#""""#, r#""Push""#]),
    ("related", "related", &["null", "{}", r#"{"kind": "Node", "name": "n1"}"#, r#"{"kind": "", "uid": "u"}"#]),
    ("reportingComponent", "reportingController", &["null", r#""""#, r#""other""#]),
    ("reportingInstance", "reportingInstance", &["null", r#""""#, r#""other""#]),
];

/// `(field, its schema in v1beta1, v1 and v2, values in JSON)`. A field without a schema is unknown in the version of
/// the custom resource.
const SHAPE_FIELDS: &[(&str, [&str; 3], &[&str])] = &[
    ("text", [r#"{"type": "string"}"#; 3], &["null", r#""""#, r#""x""#]),
    (
        "late",
        ["", r#"{"type": "string", "default": "stored"}"#, r#"{"type": "string", "default": "newer"}"#],
        &["null", r#""set""#],
    ),
    ("early", [r#"{"type": "integer", "default": 1}"#, "", ""], &["null", "0", "2"]),
    (
        "maybe",
        [
            r#"{"type": "string", "nullable": true, "default": "old"}"#,
            r#"{"type": "string", "nullable": true}"#,
            r#"{"type": "string", "default": "new"}"#,
        ],
        &["null", r#""set""#],
    ),
    (
        "whole",
        [r#"{"type": "number"}"#, r#"{"type": "integer"}"#, r#"{"x-kubernetes-int-or-string": true}"#],
        &["0", "1", r#""1""#, "9007199254740993"],
    ),
    (
        "inner",
        [
            r#"{"type": "object", "properties": {"a": {"type": "string", "default": "one"}}}"#,
            r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "two"}}}"#,
            r#"{"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"c": {"type": "string", "default": "three"}}}"#,
        ],
        &["null", "{}", r#"{"a": "x"}"#, r#"{"b": "x", "c": "y", "d": "z"}"#],
    ),
    (
        "list",
        [
            r#"{"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}}}"#,
            r#"{"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"},
                "p": {"type": "integer", "default": 80}}}}"#,
            r#"{"type": "array", "items": {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"},
                "q": {"type": "string", "default": "TCP"}}}}"#,
        ],
        &["null", "[]", "[{}]", r#"[{"n": "a"}, {"n": "b", "p": 1, "q": "UDP"}]"#],
    ),
    (
        "map",
        [
            r#"{"type": "object", "additionalProperties": {"type": "string"}}"#,
            r#"{"type": "object", "additionalProperties": {"type": "string"}, "default": {"k": "v"}}"#,
            r#"{"type": "object", "additionalProperties": {"type": "string", "maxLength": 1}}"#,
        ],
        &["null", "{}", r#"{"a": ""}"#, r#"{"a": "long"}"#],
    ),
];
/// The versions of the custom resource. Objects are stored in the second version.
const SHAPE_VERSIONS: [&str; 3] = ["v1beta1", "v1", "v2"];

/// `(apiVersion, kind, path of the collection, whether its selector is a map)`.
const SCALED: &[(&str, &str, &str, bool)] = &[
    ("apps/v1", "Deployment", "/apis/apps/v1/namespaces/{ns}/deployments", false),
    ("apps/v1", "ReplicaSet", "/apis/apps/v1/namespaces/{ns}/replicasets", false),
    ("apps/v1", "StatefulSet", "/apis/apps/v1/namespaces/{ns}/statefulsets", false),
    ("v1", "ReplicationController", "/api/v1/namespaces/{ns}/replicationcontrollers", true),
];
const SELECTORS: &[&str] = &[
    r#"{"matchLabels": {"a": "b"}}"#,
    r#"{"matchLabels": {"b": "2", "a": "b"}}"#,
    r#"{"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "b", "operator": "In", "values": ["2", "1"]}]}"#,
    r#"{"matchExpressions": [{"key": "b", "operator": "Exists"}, {"key": "c", "operator": "DoesNotExist"},
        {"key": "a", "operator": "NotIn", "values": ["z", "y"]}]}"#,
];

/// One sequence for each object and each form in which it is written.
pub fn all() -> Vec<Sequence> {
    let mut all = Vec::new();
    all.extend(events());
    all.extend(autoscalers());
    all.extend(shapes());
    all.extend(scales());
    all
}

fn parse(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

/// Adds requests that read the object in every form, alone and in lists.
fn read(forms: &[Form], steps: &mut Vec<Step>) {
    for form in forms {
        steps.push(Step::get(format!("{}/a", form.path)));
        steps.push(Step::get(form.path));
        steps.push(Step::get(form.path).accepting(TABLE));
    }
}

fn events() -> Vec<Sequence> {
    let about = r#"{"kind": "Pod", "namespace": "{ns}", "name": "p"}"#;
    let older =
        [("involvedObject", about), ("reason", r#""Pulled""#), ("message", r#""text""#), ("type", r#""Normal""#)];
    let newer = [
        ("eventTime", r#""2024-02-03T04:05:06.000007Z""#),
        ("action", r#""Pull""#),
        ("reportingComponent", r#""example.com/one""#),
        ("reportingInstance", r#""one-1""#),
    ];
    let mut all = Vec::new();
    for (written, form) in EVENTS.iter().enumerate() {
        for is_newer in [false, true] {
            let set: BTreeMap<&str, &str> = older.into_iter().chain(newer.into_iter().filter(|_| is_newer)).collect();
            let changed =
                EVENT_FIELDS.iter().flat_map(|(field, _, values)| values.iter().map(move |value| (*field, *value)));
            for change in std::iter::once(None).chain(changed.map(Some)) {
                let mut set = set.clone();
                set.extend(change);
                let mut event = json!({"apiVersion": form.api_version, "kind": "Event", "metadata": {"name": "a"}});
                for (core, other, _) in EVENT_FIELDS {
                    if let Some(value) = set.get(core) {
                        event[if written == 0 { *core } else { *other }] = parse(value);
                    }
                }
                let mut steps = vec![Step::post(form.path, event)];
                read(&EVENTS, &mut steps);
                // A field that was written in one form is read again in the other.
                let patch = json!({"metadata": {"annotations": {"touched": "yes"}}});
                steps.push(Step::patch(format!("{}/a", EVENTS[1 - written].path), "merge-patch", patch));
                read(&EVENTS, &mut steps);
                let name = format!("an event in {} (newer: {is_newer}) with {change:?}", form.api_version);
                all.push(Sequence { name, steps });
            }
        }
    }
    all
}

fn autoscalers() -> Vec<Sequence> {
    let mut all = Vec::new();
    for (written, form) in AUTOSCALERS.iter().enumerate() {
        for (least, cpu) in [(None, None), (Some(2), Some(50)), (None, Some(70))] {
            let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
            let mut spec = json!({"scaleTargetRef": target, "maxReplicas": 5});
            if let Some(least) = least {
                spec["minReplicas"] = json!(least);
            }
            if let Some(cpu) = cpu {
                if written == 0 {
                    spec["targetCPUUtilizationPercentage"] = json!(cpu);
                } else {
                    let target = json!({"type": "Utilization", "averageUtilization": cpu});
                    spec["metrics"] = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
                }
            }
            let object = json!({"apiVersion": form.api_version, "kind": "HorizontalPodAutoscaler",
                                "metadata": {"name": "a"}, "spec": spec});
            let mut steps = vec![Step::post(form.path, object)];
            let forms = AUTOSCALERS.map(|form| Step::get(format!("{}/a", form.path)));
            steps.extend(forms.clone());
            let patch = json!({"spec": {"maxReplicas": 7}});
            steps.push(Step::patch(format!("{}/a", AUTOSCALERS[1 - written].path), "merge-patch", patch));
            steps.extend(forms);
            let name = format!("an autoscaler in {} with {least:?} replicas and {cpu:?} of CPU", form.api_version);
            all.push(Sequence { name, steps });
        }
    }
    all.extend(METRICS.iter().map(|(metric, current)| autoscaler_with(&parse(metric), &parse(current))));
    all
}

/// `(metric in the specification, current metric in the status)`, for each type of metrics.
const METRICS: &[(&str, &str)] = &[
    (
        r#"{"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}"#,
        r#"{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7, "averageValue": "1m"}}}"#,
    ),
    (
        r#"{"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 50}}}"#,
        r#"{"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c",
            "current": {"averageUtilization": 50}}}"#,
    ),
    (
        r#"{"type": "Pods", "pods": {"metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "3"}}}"#,
        r#"{"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "2"}}}"#,
    ),
    (
        r#"{"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
            "metric": {"name": "m"}, "target": {"type": "Value", "value": "3"}}}"#,
        r#"{"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"}, "metric": {"name": "m"},
            "current": {"averageValue": "2"}}}"#,
    ),
    (
        r#"{"type": "External", "external": {"metric": {"name": "m", "selector": {"matchExpressions": [{"key": "a",
            "operator": "Exists"}]}}, "target": {"type": "AverageValue", "averageValue": "3"}}}"#,
        r#"{"type": "External", "external": {"metric": {"name": "m"}, "current": {"value": "2"}}}"#,
    ),
];

/// Creates an autoscaler through `autoscaling/v2`, and reads and patches it through both versions. In `autoscaling/v1`,
/// annotations contain the metric, the behavior and the conditions.
fn autoscaler_with(metric: &Value, current: &Value) -> Sequence {
    let share = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization",
        "averageUtilization": 60}}});
    let spec = json!({"maxReplicas": 5, "metrics": [share, metric], "behavior": {"scaleUp": {"selectPolicy": "Min"}},
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}});
    let object = |name: &str, spec: &Value| json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": spec});
    let [older, newer] = AUTOSCALERS.map(|form| format!("{}/a", form.path));
    let condition = json!({"type": "AbleToScale", "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2024-02-03T04:05:06Z"});
    let status = json!({"status": {"currentReplicas": 1, "desiredReplicas": 2, "currentMetrics": [current],
        "conditions": [condition]}});
    let steps = vec![
        Step::post(AUTOSCALERS[1].path, object("a", &spec)),
        Step::get(&older[..]),
        Step::patch(format!("{newer}/status"), "merge-patch", status),
        Step::get(&older[..]),
        Step::patch(&older[..], "merge-patch", json!({"spec": {"maxReplicas": 7}})),
        Step::get(&newer[..]),
        Step::patch(&older[..], "merge-patch", json!({"spec": {"targetCPUUtilizationPercentage": 20}})),
        Step::get(&newer[..]),
        Step::get(&older[..]),
    ];
    Sequence { name: format!("an autoscaler in autoscaling/v2 by {}", metric["type"]), steps }
}

fn shape_definition() -> Value {
    let versions = SHAPE_VERSIONS.iter().enumerate().map(|(index, version)| {
        let fields = SHAPE_FIELDS.iter().filter(|(_, schemas, _)| !schemas[index].is_empty());
        let fields: serde_json::Map<String, Value> =
            fields.map(|(field, schemas, _)| ((*field).to_owned(), parse(schemas[index]))).collect();
        let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": fields}, "status": status,
        }});
        json!({"name": version, "served": true, "storage": *version == "v1", "schema": {"openAPIV3Schema": schema},
               "subresources": {"status": {}}})
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced", "versions": versions.collect::<Vec<_>>(),
                 "names": {"plural": PLURAL, "singular": "shape", "kind": "Shape", "listKind": "ShapeList"}},
    })
}

fn shapes() -> Vec<Sequence> {
    let path = |version: &str| format!("/apis/{GROUP}/{version}/namespaces/{{ns}}/{PLURAL}");
    let mut all = Vec::new();
    // A definition is the most expensive object here, and a long sequence is slow to shrink, so there is one sequence
    // per field.
    for (version, (field, _, values)) in
        SHAPE_VERSIONS.into_iter().flat_map(|version| SHAPE_FIELDS.iter().map(move |field| (version, field)))
    {
        let mut steps = vec![Step::post(DEFINITIONS, shape_definition())];
        steps.extend(SHAPE_VERSIONS.map(|version| Step::new("UNTIL 200", path(version))));
        for (number, value) in std::iter::once(None).chain(values.iter().map(Some)).enumerate() {
            let name = format!("a{number}");
            let mut spec = json!({});
            if let Some(value) = value {
                spec[*field] = parse(value);
            }
            let shape = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Shape", "metadata": {"name": name},
                               "spec": spec});
            steps.push(Step::post(path(version), shape));
            steps.extend(SHAPE_VERSIONS.map(|version| Step::get(format!("{}/{name}", path(version)))));
            for other in SHAPE_VERSIONS.into_iter().filter(|other| *other != version) {
                let patch = json!({"metadata": {"annotations": {"touched": other}}, "status": {"seen": other}});
                steps.push(Step::patch(format!("{}/{name}", path(other)), "merge-patch", patch));
                steps.push(Step::get(format!("{}/{name}", path(version))));
            }
        }
        steps.extend(SHAPE_VERSIONS.map(|version| Step::get(path(version))));
        all.push(Sequence { name: format!("shapes with {field} written in {version}"), steps });
    }
    all
}

fn scales() -> Vec<Sequence> {
    let mut all = Vec::new();
    for (api_version, kind, path, is_map) in SCALED {
        let labels = json!({"a": "b", "b": "2"});
        let selectors = if *is_map { &SELECTORS[..2] } else { SELECTORS };
        for selector in selectors {
            for replicas in ["null", "0", "3"] {
                let chosen = if *is_map { parse(selector)["matchLabels"].clone() } else { parse(selector) };
                let template = json!({"metadata": {"labels": labels},
                                      "spec": {"containers": [{"name": "c", "image": "c:1"}]}});
                let mut spec = json!({"selector": chosen, "replicas": parse(replicas), "template": template});
                if *kind == "StatefulSet" {
                    spec["serviceName"] = json!("s");
                }
                let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec});
                let scale = |replicas: Value| {
                    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": "{ns}"},
                           "spec": replicas})
                };
                let (own, part) = (format!("{path}/a"), format!("{path}/a/scale"));
                let steps = vec![
                    Step::post(*path, object),
                    Step::get(&part[..]),
                    Step::patch(format!("{path}/a/status"), "merge-patch", json!({"status": {"replicas": 2}})),
                    Step::get(&part[..]),
                    Step::put(&part[..], scale(json!({"replicas": 5}))),
                    Step::get(&own[..]),
                    Step::put(&part[..], scale(json!({}))),
                    Step::get(&own[..]),
                    Step::get(&part[..]),
                ];
                let name = format!("the scale of a {kind} with {replicas} replicas and {selector}");
                all.push(Sequence { name, steps });
            }
        }
    }
    all
}

/// Every built-in resource that both servers serve in several forms and that the tests of this file do not cover, as
/// `plural/kind`. A new version of Kubernetes may add resources that these tests must cover.
pub async fn uncovered(servers: [&Endpoint; 2]) -> Vec<String> {
    let mut both: Option<BTreeSet<(String, String)>> = None;
    for server in servers {
        let served = served(server).await;
        both = Some(match both {
            Some(before) => before.intersection(&served).cloned().collect(),
            None => served,
        });
    }
    let mut forms: BTreeMap<String, usize> = BTreeMap::new();
    for (resource, _) in both.unwrap_or_default() {
        *forms.entry(resource).or_default() += 1;
    }
    let several = forms.into_iter().filter(|(_, count)| *count > 1).map(|(resource, _)| resource);
    several.filter(|resource| !COVERED.contains(&resource.as_str())).collect()
}

/// `(plural/kind, group and version)` of all resources in a server's discovery, without subresources.
async fn served(server: &Endpoint) -> BTreeSet<(String, String)> {
    let groups = bodies(server, vec!["/apis".to_owned()], "groups").await.remove(0);
    let versions = groups["groups"].as_array().into_iter().flatten().flat_map(|group| {
        group["versions"].as_array().into_iter().flatten().map(|version| version["groupVersion"].clone())
    });
    let paths = versions.map(|version| format!("/apis/{}", version.as_str().unwrap())).chain(["/api/v1".to_owned()]);
    let mut all = BTreeSet::new();
    for list in bodies(server, paths.collect(), "resources").await {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for resource in list["resources"].as_array().into_iter().flatten() {
            let (plural, kind) = (text(&resource["name"]), text(&resource["kind"]));
            if !plural.contains('/') {
                all.insert((format!("{plural}/{kind}"), text(&list["groupVersion"])));
            }
        }
    }
    all
}

async fn bodies(server: &Endpoint, paths: Vec<String>, what: &str) -> Vec<Value> {
    let sequence = Sequence { name: what.to_owned(), steps: paths.into_iter().map(Step::get).collect() };
    let answers = driver::play(server, &sequence, &format!("discovery-{what}")).await.unwrap();
    let bodies = answers.into_iter().map(|answer| match answer {
        Raw::Answer { status: 200, body, .. } => serde_json::from_slice(&body).unwrap(),
        other => panic!("{other:?}"),
    });
    bodies.collect()
}
