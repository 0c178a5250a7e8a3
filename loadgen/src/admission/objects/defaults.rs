//! The defaults that kube-apiserver fills in before it calls a webhook. Pure: no I/O.
//!
//! The default values are the versioned defaults of core/v1, apps/v1 and batch/v1. The admission plugins that run
//! before webhooks add further fields (`DefaultTolerationSeconds`, `Priority`, `ServiceAccount`). All default values
//! were checked against kube-apiserver 1.20.

use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::Kind;
use crate::seed;

/// The default mode of mounted files: 0644.
const FILE_MODE: u32 = 0o644;

pub(in crate::admission) fn fill(kind: Kind, object: &mut Value) {
    if let Some(spec) = kind.pod_spec().and_then(|pointer| object.pointer_mut(pointer))
        // The defaults of custom resources are unknown.
        && kind != Kind::Worker
    {
        pod_spec(spec);
    }
    let spec = &mut object["spec"];
    match kind {
        Kind::Pod => set(spec, json!({"enableServiceLinks": true})),
        Kind::Deployment => set(
            spec,
            json!({
                "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
            }),
        ),
        Kind::ReplicaSet => set(spec, json!({"replicas": 1})),
        Kind::ReplicationController => {
            set(spec, json!({"replicas": 1}));
            let labels = spec["template"]["metadata"]["labels"].clone();
            set(&mut object["metadata"], json!({"labels": labels}));
        }
        Kind::StatefulSet => {
            set(
                spec,
                json!({
                    "replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
                    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
                }),
            );
            for claim in spec["volumeClaimTemplates"].as_array_mut().into_iter().flatten() {
                set(
                    claim,
                    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}}),
                );
                set(&mut claim["metadata"], json!({"creationTimestamp": null}));
                set(&mut claim["spec"], json!({"volumeMode": "Filesystem"}));
            }
        }
        Kind::DaemonSet => {
            let rolling = json!({"maxSurge": 0, "maxUnavailable": 1});
            set(
                spec,
                json!({"revisionHistoryLimit": 10, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}),
            );
            set(&mut object["metadata"]["annotations"], json!({"deprecated.daemonset.template.generation": "0"}));
        }
        Kind::Job => job_spec(spec),
        Kind::CronJob => {
            set(
                spec,
                json!({
                    "concurrencyPolicy": "Allow", "suspend": false,
                    "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1
                }),
            );
            set(&mut spec["jobTemplate"]["metadata"], json!({"creationTimestamp": null}));
        }
        Kind::Service => {
            set(spec, json!({"type": "ClusterIP", "sessionAffinity": "None"}));
            for port in spec["ports"].as_array_mut().into_iter().flatten() {
                set(port, json!({"protocol": "TCP"}));
            }
        }
        Kind::CustomResourceDefinition => set(spec, json!({"conversion": {"strategy": "None"}})),
        Kind::Namespace => {
            // The line above made the member.
            *spec = json!({});
            let name = object["metadata"]["name"].clone();
            set(&mut object["metadata"]["labels"], json!({"kubernetes.io/metadata.name": name}));
        }
        Kind::Worker => {}
        _ => {
            if let Some(members) = object.as_object_mut() {
                members.remove("spec");
            }
        }
    }
    if let Some(template) =
        kind.pod_spec().and_then(|pointer| pointer.strip_suffix("/spec")).filter(|at| !at.is_empty())
        && kind != Kind::Worker
        && let Some(template) = object.pointer_mut(template)
    {
        set(&mut template["metadata"], json!({"creationTimestamp": null}));
    }
}

fn job_spec(spec: &mut Value) {
    set(spec, json!({"backoffLimit": 6, "completions": 1, "parallelism": 1}));
}

fn pod_spec(spec: &mut Value) {
    set(
        spec,
        json!({
            "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30
        }),
    );
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        // The old name of the field gets the same value.
        set(spec, json!({"serviceAccount": account}));
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for item in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container(item);
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        for source in ["configMap", "secret", "projected"] {
            if let Some(source) = volume.get_mut(source) {
                set(source, json!({"defaultMode": FILE_MODE}));
            }
        }
        for source in volume.pointer_mut("/projected/sources").and_then(Value::as_array_mut).into_iter().flatten() {
            for item in source.pointer_mut("/downwardAPI/items").and_then(Value::as_array_mut).into_iter().flatten() {
                set(&mut item["fieldRef"], json!({"apiVersion": "v1"}));
            }
            if let Some(token) = source.get_mut("serviceAccountToken") {
                set(token, json!({"expirationSeconds": 3600}));
            }
        }
        if let Some(image) = volume.get_mut("image") {
            set(image, json!({"pullPolicy": "IfNotPresent"}));
        }
    }
}

/// Adds the defaults to a container, also to one that a subresource adds.
pub(in crate::admission) fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or_default();
    let moving = !image.contains('@') && name.rsplit_once(':').is_none_or(|(_, tag)| tag == "latest");
    set(
        container,
        json!({
            "imagePullPolicy": if moving { "Always" } else { "IfNotPresent" }, "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"
        }),
    );
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        set(port, json!({"protocol": "TCP"}));
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(probe) else { continue };
        set(probe, json!({"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}));
        if let Some(get) = probe.get_mut("httpGet") {
            set(get, json!({"scheme": "HTTP"}));
        }
    }
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            set(field, json!({"apiVersion": "v1"}));
        }
    }
}

/// Adds the fields to a Pod that admission plugins add before webhooks are called. No field manager owns these fields.
pub(in crate::admission) fn plugins(pod: &mut Value, rng: &mut ChaCha8Rng) {
    let spec = &mut pod["spec"];
    set(spec, json!({"serviceAccountName": "default", "tolerations": [], "volumes": []}));
    let account = spec["serviceAccountName"].clone();
    set(spec, json!({"serviceAccount": account, "priority": 0, "preemptionPolicy": "PreemptLowerPriority"}));
    for key in ["not-ready", "unreachable"] {
        push(
            &mut spec["tolerations"],
            json!({
                "key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300
            }),
        );
    }
    let token = format!("kube-api-access-{}", seed::suffix(rng, 5));
    push(
        &mut spec["volumes"],
        json!({"name": token, "projected": {"defaultMode": FILE_MODE, "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}
        ]}}),
    );
    for list in ["containers", "initContainers"] {
        for item in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            set(item, json!({"volumeMounts": []}));
            push(
                &mut item["volumeMounts"],
                json!({
                    "name": token, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"
                }),
            );
        }
    }
}

/// The status of a new object, as Go writes its zero value.
pub(in crate::admission) fn status(kind: Kind) -> Option<Value> {
    Some(match kind {
        Kind::Pod | Kind::Deployment | Kind::Job | Kind::CronJob => json!({}),
        Kind::ReplicaSet | Kind::ReplicationController => json!({"replicas": 0}),
        Kind::StatefulSet => json!({"replicas": 0, "availableReplicas": 0}),
        Kind::DaemonSet => {
            json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0})
        }
        Kind::Service => json!({"loadBalancer": {}}),
        Kind::Namespace => json!({"phase": "Active"}),
        Kind::CustomResourceDefinition => {
            json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1alpha1"]})
        }
        _ => return None,
    })
}

/// Adds the fields of `defaults` that the object lacks.
fn set(object: &mut Value, defaults: Value) {
    if object.is_null() {
        *object = json!({});
    }
    let (Some(object), Value::Object(defaults)) = (object.as_object_mut(), defaults) else { return };
    for (key, value) in defaults {
        object.entry(key).or_insert(value);
    }
}

fn push(list: &mut Value, item: Value) {
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}
