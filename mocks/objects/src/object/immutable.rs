//! Fields that an update may not change.
//!
//! Owns the list for the built-in types that subjects and people meet; the texts are the real server's.

use serde_json::Value;

use crate::catalogue::Resource;
use crate::status::Cause;

/// `(full resource name, JSON pointer, field)`.
const FIELDS: &[(&str, &str, &str)] = &[
    ("deployments.apps", "/spec/selector", "spec.selector"),
    ("replicasets.apps", "/spec/selector", "spec.selector"),
    ("daemonsets.apps", "/spec/selector", "spec.selector"),
    ("statefulsets.apps", "/spec/selector", "spec.selector"),
    ("statefulsets.apps", "/spec/serviceName", "spec.serviceName"),
    ("jobs.batch", "/spec/selector", "spec.selector"),
    ("jobs.batch", "/spec/template", "spec.template"),
    ("secrets", "/type", "type"),
    ("rolebindings.rbac.authorization.k8s.io", "/roleRef", "roleRef"),
    ("clusterrolebindings.rbac.authorization.k8s.io", "/roleRef", "roleRef"),
    ("storageclasses.storage.k8s.io", "/provisioner", "provisioner"),
    ("priorityclasses.scheduling.k8s.io", "/value", "value"),
    ("customresourcedefinitions.apiextensions.k8s.io", "/spec/scope", "spec.scope"),
];

/// Answers what `new` changes against `old` that may not be changed.
pub fn check(new: &Value, old: &Value, resource: &Resource) -> Vec<Cause> {
    let mut causes = Vec::new();
    let rows = FIELDS.iter().filter(|(name, _, _)| **name == *resource.full_name);
    for (_, pointer, field) in rows {
        let (before, after) = (old.pointer(pointer), new.pointer(pointer));
        if before.is_some() && before != after {
            let shown = after.map_or_else(|| "null".to_owned(), Value::to_string);
            causes.push(Cause::invalid(field, &shown, "field is immutable"));
        }
    }
    if old["immutable"] == Value::Bool(true) && matches!(&*resource.full_name, "configmaps" | "secrets") {
        let why = "field is immutable when `immutable` is set";
        for key in ["data", "binaryData", "immutable"] {
            if old.get(key) != new.get(key) {
                causes.push(Cause::forbidden(key, why));
            }
        }
    }
    if &*resource.full_name == "services" {
        let address = |value: &Value| value["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
        let (before, after) = (address(old), address(new));
        if !before.is_empty() && before != after && !after.is_empty() {
            let shown = format!("[\"{after}\"]");
            causes.push(Cause::invalid("spec.clusterIPs[0]", &shown, "may not change once set"));
        }
    }
    if &*resource.full_name == "pods" {
        let count = |pod: &Value, list: &str| pod["spec"][list].as_array().map_or(0, Vec::len);
        for list in ["containers", "initContainers"] {
            if count(new, list) != count(old, list) {
                let why = "pod updates may not add or remove containers";
                return vec![Cause::forbidden(&format!("spec.{list}"), why)];
            }
        }
    }
    if &*resource.full_name == "pods" && loses_a_toleration(new, old) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(Cause::forbidden("spec.tolerations", why));
    }
    if &*resource.full_name == "pods" && pod_spec_differs(new, old) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,\
                   `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                   existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                   previously negative)";
        causes.push(Cause::forbidden("spec", why));
    }
    causes
}

/// Whether a toleration is not there any more, whatever its time.
fn loses_a_toleration(new: &Value, old: &Value) -> bool {
    let all = |pod: &Value| -> Vec<Value> {
        let mut list = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        for toleration in list.iter_mut().filter_map(Value::as_object_mut) {
            toleration.remove("tolerationSeconds");
        }
        list
    };
    let now = all(new);
    all(old).iter().any(|toleration| !now.contains(toleration))
}

fn pod_spec_differs(new: &Value, old: &Value) -> bool {
    let frozen = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        if let Some(fields) = spec.as_object_mut() {
            for key in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
                fields.remove(key);
            }
            for list in ["containers", "initContainers"] {
                for container in fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                    if let Some(container) = container.as_object_mut() {
                        container.remove("image");
                    }
                }
            }
        }
        spec
    };
    frozen(new) != frozen(old)
}
