//! Samples of built-in kinds that webhooks often review.
//!
//! Does no I/O.

use serde_json::{Value, json};

use super::corpus::Kind;
use super::question::Resource;

/// The image of samples if the run knows no other. The host is reserved for examples.
const IMAGE: &str = "registry.example.com/shop/cart:1.4.2";

/// The built-in kinds with one sample each. The first sample of a Pod has this image; other kinds follow.
pub(crate) fn kinds(image: Option<&str>) -> Vec<Kind> {
    let image = image.unwrap_or(IMAGE);
    let pod = json!({"containers": [{"name": "main", "image": image, "command": ["run"], "env": [{"name": "MODE", "value": "a"}]}]});
    let labels = json!({"app": "hunt"});
    let template = |restart: Option<&str>| {
        let mut spec = pod.clone();
        if let Some(restart) = restart {
            spec["restartPolicy"] = restart.into();
        }
        json!({"metadata": {"labels": labels}, "spec": spec})
    };
    let workload = |more: Value| {
        let mut spec = json!({"selector": {"matchLabels": labels}, "template": template(None)});
        json_merge(&mut spec, more);
        json!({"spec": spec})
    };
    let job = json!({"spec": {"backoffLimit": 2, "template": template(Some("Never"))}});
    let cron = json!({"spec": {"schedule": "5 4 * * *", "jobTemplate": {"spec": job["spec"]}}});
    let service = json!({"spec": {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}});
    let rule = json!({"host": "hunt.example.com", "http": {"paths": [
        {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "hunt", "port": {"number": 80}}}}]}});
    vec![
        kind(["", "v1", "pods", "Pod"], json!({"spec": pod})),
        kind(["apps", "v1", "deployments", "Deployment"], workload(json!({"replicas": 2}))),
        kind(["apps", "v1", "statefulsets", "StatefulSet"], workload(json!({"serviceName": "hunt"}))),
        kind(["apps", "v1", "daemonsets", "DaemonSet"], workload(json!({}))),
        kind(["apps", "v1", "replicasets", "ReplicaSet"], workload(json!({"replicas": 1}))),
        kind(["batch", "v1", "jobs", "Job"], job),
        kind(["batch", "v1", "cronjobs", "CronJob"], cron),
        kind(["", "v1", "services", "Service"], service),
        kind(["", "v1", "configmaps", "ConfigMap"], json!({"data": {"mode": "a", "size": "3"}})),
        kind(["", "v1", "secrets", "Secret"], json!({"type": "Opaque", "data": {"mode": "YQ=="}})),
        kind(["networking.k8s.io", "v1", "ingresses", "Ingress"], json!({"spec": {"rules": [rule]}})),
        kind(["", "v1", "serviceaccounts", "ServiceAccount"], json!({"automountServiceAccountToken": false})),
        kind(
            ["", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"],
            json!({"spec":
            {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        kind(["", "v1", "namespaces", "Namespace"], json!({})),
    ]
}

fn kind([group, version, plural, kind]: [&str; 4], contents: Value) -> Kind {
    let resource = Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        kind: kind.to_owned(),
        is_namespaced: plural != "namespaces",
    };
    let mut object = contents;
    object["apiVersion"] = resource.api_version().into();
    object["kind"] = kind.into();
    object["metadata"] = json!({"name": "hunt", "labels": {"app": "hunt"}});
    Kind { resource, samples: vec![("the usual sample".to_owned(), object)], ..Kind::default() }
}

fn json_merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}
