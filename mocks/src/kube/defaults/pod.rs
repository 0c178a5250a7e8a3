//! What a pod, alone or inside a template, has without being asked.
//!
//! Owns the defaults of the pod's own fields ("Kubernetes API reference", Pod v1 core) and what the admission plugins
//! that every cluster runs add: priority and the tolerations of a node that is not ready.

use serde_json::{Value, json};

use super::{each, set};

/// The defaults that a template has too.
pub(super) fn spec(spec: Option<&mut Value>) {
    let Some(spec) = spec.filter(|spec| spec.is_object()) else { return };
    for (key, default) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("securityContext", json!({})),
    ] {
        set(spec, &[], key, default);
    }
    // The old name of the field follows the new one.
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        set(spec, &[], "serviceAccount", account);
    }
    for list in ["containers", "initContainers"] {
        each(spec, list, container);
    }
    each(spec, "volumes", volume);
}

/// What only a pod itself has, not a template.
pub(super) fn alone(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    set(spec, &[], "enableServiceLinks", json!(true));
    set(spec, &[], "preemptionPolicy", json!("PreemptLowerPriority"));
    set(spec, &[], "priority", json!(0));
    for list in ["containers", "initContainers"] {
        each(spec, list, requests);
    }
    tolerations(spec);
}

/// How sure a pod can be of its resources ("Pod Quality of Service Classes").
pub(super) fn quality(pod: &Value) -> &'static str {
    let containers = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    let (mut any, mut all) = (false, true);
    for container in containers {
        for resource in ["cpu", "memory"] {
            let amount = |which: &str| container.pointer(&format!("/resources/{which}/{resource}"));
            any |= amount("limits").is_some() || amount("requests").is_some();
            all &= amount("limits").is_some() && amount("limits") == amount("requests");
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn container(container: &mut Value) {
    set(container, &[], "resources", json!({}));
    set(container, &[], "terminationMessagePath", json!("/dev/termination-log"));
    set(container, &[], "terminationMessagePolicy", json!("File"));
    let latest = container["image"].as_str().is_some_and(|image| {
        let name = image.rsplit('/').next().unwrap_or(image);
        !name.contains('@') && (!name.contains(':') || name.ends_with(":latest"))
    });
    set(container, &[], "imagePullPolicy", json!(if latest { "Always" } else { "IfNotPresent" }));
    each(container, "ports", |port| set(port, &[], "protocol", json!("TCP")));
    each(container, "env", |variable| {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            set(field, &[], "apiVersion", json!("v1"));
        }
    });
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(name).filter(|probe| probe.is_object()) else { continue };
        for (key, default) in
            [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
        {
            set(probe, &[], key, json!(default));
        }
        if let Some(get) = probe.get_mut("httpGet") {
            set(get, &[], "path", json!("/"));
            set(get, &[], "scheme", json!("HTTP"));
        }
    }
}

fn volume(volume: &mut Value) {
    let sources = volume.as_object().map_or(0, |volume| volume.keys().filter(|key| *key != "name").count());
    if sources == 0 {
        set(volume, &[], "emptyDir", json!({}));
    }
    for source in ["configMap", "secret", "projected", "downwardAPI"] {
        if let Some(source) = volume.get_mut(source) {
            set(source, &[], "defaultMode", json!(420));
        }
    }
    if let Some(path) = volume.get_mut("hostPath") {
        set(path, &[], "type", json!(""));
    }
}

/// A limit without a request is a request too.
fn requests(container: &mut Value) {
    let limits = container.pointer("/resources/limits").and_then(Value::as_object).cloned().unwrap_or_default();
    for (resource, amount) in limits {
        set(container, &["resources", "requests"], &resource, amount);
    }
}

/// The plugin `DefaultTolerationSeconds`.
fn tolerations(spec: &mut Value) {
    set(spec, &[], "tolerations", json!([]));
    let Some(list) = spec.get_mut("tolerations").and_then(Value::as_array_mut) else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |toleration: &Value| {
            let is = |field: &str, wanted: &str| {
                toleration[field].as_str().is_none_or(|text| text.is_empty() || text == wanted)
            };
            is("key", key) && is("effect", "NoExecute")
        };
        if !list.iter().any(covers) {
            list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}
