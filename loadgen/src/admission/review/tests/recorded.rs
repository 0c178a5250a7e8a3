//! Compares the reviews of this crate with reviews that a real kube-apiserver sent.
//!
//! `recorded.jsonl` contains the `request` of each review, without its uid, that kube-apiserver 1.20.2 sent to a
//! webhook for `*/*`. `kubectl` and `curl` applied manifests of this crate, without controllers and without the
//! `ServiceAccount` plugin. Reviews in the file that only show the order and type of fields have no pod specs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::admission::corpus::tests::corpus_of_everything;
use crate::admission::objects::{defaults, fields};

fn recorded() -> Vec<Value> {
    include_str!("recorded.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kind_of(request: &Value) -> Kind {
    [
        Kind::Pod,
        Kind::Deployment,
        Kind::ReplicaSet,
        Kind::ReplicationController,
        Kind::StatefulSet,
        Kind::DaemonSet,
        Kind::Job,
        Kind::CronJob,
        Kind::Worker,
        Kind::Namespace,
        Kind::ConfigMap,
        Kind::Secret,
        Kind::Service,
        Kind::CustomResourceDefinition,
        Kind::Scale,
        Kind::Eviction,
        Kind::Binding,
    ]
    .into_iter()
    .find(|kind| request["kind"]["kind"] == kind.name())
    .unwrap()
}

fn manifest_of(object: &Value) -> Option<Value> {
    let annotation = &object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    serde_json::from_str(annotation.as_str()?).ok()
}

/// From an applied manifest this crate makes exactly the real server's object: defaults, status, the copy of the
/// manifest, and the owners of fields.
#[test]
fn objects_are_made_as_the_real_server_makes_them() {
    let (mut compared, mut found) = (BTreeSet::new(), Vec::new());
    for request in recorded() {
        let (kind, theirs) = (kind_of(&request), &request["object"]);
        let Some(mut ours) = manifest_of(theirs).filter(|_| request["operation"] == "CREATE") else { continue };
        let applied = format!("{ours}\n");
        ours["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(applied);
        defaults::fill(kind, &mut ours);
        let entry = fields::entry("kubectl-client-side-apply", kind, &ours);
        ours["metadata"]["creationTimestamp"] = Value::Null;
        ours["metadata"]["managedFields"] = json!([entry]);
        if let Some(status) = defaults::status(kind) {
            ours["status"] = status;
        }
        let mut theirs = theirs.clone();
        align(kind, &mut ours, &mut theirs);
        differences(&ours, &theirs, kind.name(), &mut found);
        compared.insert(kind.name());
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(compared.len(), 12, "{compared:?}");
}

/// The differences between two JSON values, one line for each field.
fn differences(ours: &Value, theirs: &Value, at: &str, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                match (a.get(key), b.get(key)) {
                    (Some(x), Some(y)) => differences(x, y, &format!("{at}/{key}"), found),
                    (Some(x), None) => found.push(format!("{at}/{key}: only ours has it: {x}")),
                    (None, y) => {
                        found.push(format!("{at}/{key}: only the real one has it: {}", y.unwrap_or(&Value::Null)));
                    }
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                differences(x, y, &format!("{at}/{i}"), found);
            }
        }
        (a, b) if a != b => found.push(format!("{at}: {a} is ours, {b} the real one")),
        _ => {}
    }
}

/// Removes intended differences from both objects.
fn align(kind: Kind, ours: &mut Value, theirs: &mut Value) {
    let fields = "/metadata/managedFields/0/fieldsV1";
    ours["metadata"]["managedFields"][0]["time"] = theirs["metadata"]["managedFields"][0]["time"].clone();
    let remove = |object: &mut Value, at: &str| {
        let (parent, key) = at.rsplit_once('/').unwrap();
        if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(key);
        }
    };
    match kind {
        Kind::Pod => {
            // The plugins have changed the real object, without the one for service accounts.
            for key in ["tolerations", "priority", "preemptionPolicy"] {
                remove(theirs, &format!("/spec/{key}"));
            }
        }
        Kind::CronJob => {
            // batch/v1 has it from 1.21 on.
            ours["metadata"]["managedFields"][0]["apiVersion"] = json!("batch/v1beta1");
        }
        Kind::StatefulSet => remove(ours, "/status/availableReplicas"), // 1.22
        Kind::DaemonSet => {
            remove(ours, "/spec/updateStrategy/rollingUpdate/maxSurge"); // 1.22
            remove(ours, &format!("{fields}/f:spec/f:updateStrategy/f:rollingUpdate/f:maxSurge"));
        }
        Kind::Namespace => {
            remove(ours, "/metadata/labels"); // 1.21
            remove(ours, &format!("{fields}/f:metadata/f:labels"));
        }
        _ => {}
    }
    // Since 1.22 no manager owns a status that the server resets.
    remove(theirs, &format!("{fields}/f:status"));
}

/// Requests have the same fields as real requests, including those that are `null`, and the same options. The metadata
/// also has the same fields, except those that a manifest may omit.
#[test]
fn requests_have_the_real_shape() {
    let corpus = corpus_of_everything(4);
    let ours: Vec<Value> = corpus
        .templates()
        .iter()
        .map(|template| {
            let mut review: Value = serde_json::from_slice(template.bytes()).unwrap();
            assert_eq!(
                (&review["kind"], &review["apiVersion"]),
                (&json!("AdmissionReview"), &json!("admission.k8s.io/v1"))
            );
            review["request"].take()
        })
        .collect();
    for theirs in recorded() {
        let what = |request: &Value| {
            let of = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
            (request["resource"]["resource"].clone(), of("subResource"), of("operation"), request["name"].is_null())
        };
        let alike: Vec<&Value> = ours.iter().filter(|request| what(request) == what(&theirs)).collect();
        assert!(!alike.is_empty(), "nothing of ours is like {:?}", what(&theirs));
        for ours in alike {
            assert_eq!(shape(ours), shape(&theirs), "{:?}", what(&theirs));
            for object in ["object", "oldObject"] {
                assert_eq!(metadata(&ours[object]), metadata(&theirs[object]), "{object} of {:?}", what(&theirs));
            }
            assert_eq!(ours["options"]["kind"], theirs["options"]["kind"]);
            assert_eq!(ours["options"]["apiVersion"], theirs["options"]["apiVersion"]);
        }
    }
    let dry: Vec<&Value> = ours.iter().filter(|request| request["dryRun"] == true).collect();
    assert!(!dry.is_empty() && dry.iter().all(|request| request["options"]["dryRun"] == json!(["All"])));
}

/// The fields of a request in order, each with the type of its value.
fn shape(request: &Value) -> Vec<String> {
    let kind = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::String(_) => "text",
        _ => "object",
    };
    let members = request.as_object().unwrap().iter().filter(|(key, _)| *key != "uid");
    members.map(|(key, value)| format!("{key}: {}", kind(value))).collect()
}

/// The names of the metadata fields that the server adds to an object.
fn metadata(object: &Value) -> BTreeSet<&str> {
    const OF_THE_MANIFEST: [&str; 6] =
        ["labels", "annotations", "ownerReferences", "generateName", "deletionTimestamp", "deletionGracePeriodSeconds"];
    let members = object["metadata"].as_object().into_iter().flatten();
    members.map(|(key, _)| key.as_str()).filter(|key| !OF_THE_MANIFEST.contains(key)).collect()
}
