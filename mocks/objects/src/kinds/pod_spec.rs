//! The defaults and checks of a pod specification, in a pod or in a template ("Kubernetes API reference", Pod v1 core).
//! Fields that admission plugins add are in other modules.

mod check;
mod features;
mod images;
pub(super) mod labels;
pub(super) mod total;
mod volumes;

use serde_json::{Value, json};

use crate::fields::{each, set};

pub(super) use check::{
    APP_ARMOR_OF, app_armor_faults, check_annotations, check_new_pod, check_pod, check_template, claim, disks,
    host_path, node_selector, of_whole_pod, overcommits,
};
pub(super) use volumes::source as fill_source;

/// Fills in the defaults that pods share with templates, and removes fields of disabled features.
pub(super) fn fill(spec: Option<&mut Value>) {
    let Some(spec) = spec.filter(|spec| spec.is_object()) else { return };
    features::drop_disabled(spec);
    for (key, default) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("securityContext", json!({})),
    ] {
        set(spec, &[], key, default);
    }
    // The old field gets the value of the new one; if only the old one is set, the new one gets its value.
    if let Some(account) = spec.get("serviceAccount").cloned() {
        set(spec, &[], "serviceAccountName", account);
    }
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        spec["serviceAccount"] = account;
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list, container);
    }
    each(spec, "volumes", volume);
}

/// Fills in the pod template at the JSON pointer `at`, such as `/spec/template`.
pub(super) fn fill_template(value: &mut Value, at: &str) {
    // The real type holds both by value, not by pointer, so they are always present.
    if let Some(template) = value.pointer_mut(at).filter(|template| template.is_object()) {
        set(template, &[], "metadata", json!({}));
        set(template, &[], "spec", json!({}));
    }
    fill(value.pointer_mut(&format!("{at}/spec")));
}

fn container(container: &mut Value) {
    set(container, &[], "resources", json!({}));
    set(container, &[], "terminationMessagePath", json!("/dev/termination-log"));
    set(container, &[], "terminationMessagePolicy", json!("File"));
    set(container, &[], "imagePullPolicy", json!(images::pull_policy(container["image"].as_str().unwrap_or_default())));
    each(container, "env", |variable| {
        if let Some(from) = variable.get_mut("valueFrom") {
            reference(from);
        }
    });
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(name).filter(|probe| probe.is_object()) else { continue };
        for (key, default) in
            [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
        {
            set(probe, &[], key, json!(default));
        }
        http_get(probe);
        if let Some(grpc) = probe.get_mut("grpc") {
            set(grpc, &[], "service", json!(""));
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = container.get_mut("lifecycle").and_then(|lifecycle| lifecycle.get_mut(hook)) {
            http_get(hook);
        }
    }
}

fn http_get(action: &mut Value) {
    if let Some(get) = action.get_mut("httpGet") {
        set(get, &[], "path", json!("/"));
        set(get, &[], "scheme", json!("HTTP"));
    }
}

/// Sets defaults in the source of an environment variable or file: a field of the pod, or an amount of a resource.
fn reference(from: &mut Value) {
    if let Some(field) = from.get_mut("fieldRef").filter(|field| field.is_object()) {
        set(field, &[], "apiVersion", json!("v1"));
    }
    if let Some(resource) = from.get_mut("resourceFieldRef").filter(|resource| resource.is_object()) {
        set(resource, &[], "divisor", json!("0"));
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
    if let Some(api) = volume.get_mut("downwardAPI") {
        each(api, "items", reference);
    }
    if let Some(projected) = volume.get_mut("projected") {
        each(projected, "sources", |source| {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                set(token, &[], "expirationSeconds", json!(3600));
            }
            if let Some(api) = source.get_mut("downwardAPI") {
                each(api, "items", reference);
            }
        });
    }
    if let Some(template) = volume.pointer_mut("/ephemeral/volumeClaimTemplate").filter(|template| template.is_object())
    {
        set(template, &[], "metadata", json!({}));
        claim::fill(template);
        set(template, &["spec"], "resources", json!({}));
    }
    volumes::source(volume);
}
