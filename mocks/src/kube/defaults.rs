//! What the real server and its built-in admission fill in, as far as clients and people rely on it.
//!
//! Owns the defaults of new objects. It must not validate.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::catalogue::Resource;
use super::object;

/// Fills in the defaults of an object that is being created.
pub(crate) fn apply(value: &mut Value, resource: &Resource, now: Timestamp) {
    match &*resource.full_name {
        "namespaces" => {
            let name = object::meta(value, "name").to_owned();
            let labels = object::metadata(value).entry("labels").or_insert_with(|| json!({}));
            if labels.is_object() {
                labels["kubernetes.io/metadata.name"] = Value::from(name);
            }
            set(value, &["spec"], "finalizers", json!(["kubernetes"]));
            set(value, &["status"], "phase", json!("Active"));
        }
        "pods" => {
            pod_spec(value.get_mut("spec"));
            set(value, &["status"], "phase", json!("Pending"));
            set(value, &["status"], "qosClass", json!("BestEffort"));
        }
        "deployments.apps" => {
            set(value, &["spec"], "replicas", json!(1));
            set(value, &["spec"], "revisionHistoryLimit", json!(10));
            set(value, &["spec"], "progressDeadlineSeconds", json!(600));
            let strategy =
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
            set(value, &["spec"], "strategy", strategy);
            pod_spec(value.pointer_mut("/spec/template/spec"));
            value["status"] = json!({});
        }
        "statefulsets.apps" | "replicasets.apps" | "replicationcontrollers" => {
            set(value, &["spec"], "replicas", json!(1));
            pod_spec(value.pointer_mut("/spec/template/spec"));
            value["status"] = json!({"replicas": 0});
        }
        "daemonsets.apps" | "jobs.batch" => {
            pod_spec(value.pointer_mut("/spec/template/spec"));
            value["status"] = json!({});
        }
        "services" => {
            set(value, &["spec"], "type", json!("ClusterIP"));
            set(value, &["spec"], "sessionAffinity", json!("None"));
            value["status"] = json!({"loadBalancer": {}});
        }
        "secrets" => {
            set(value, &[], "type", json!("Opaque"));
            let plain = value.as_object_mut().and_then(|object| object.remove("stringData"));
            for (key, text) in plain.as_ref().and_then(Value::as_object).into_iter().flatten() {
                let Some(object) = value.as_object_mut() else { return };
                let data = object.entry("data").or_insert_with(|| json!({}));
                if data.is_object() {
                    data[key] = Value::from(base64(text.as_str().unwrap_or_default()));
                }
            }
        }
        "persistentvolumeclaims" => set(value, &["status"], "phase", json!("Pending")),
        "customresourcedefinitions.apiextensions.k8s.io" => definition(value, now),
        _ => {}
    }
}

/// Fills in what an update of an object brings with it.
pub(crate) fn on_update(value: &mut Value, resource: &Resource, now: Timestamp) {
    match &*resource.full_name {
        "secrets" => apply(value, resource, now),
        "customresourcedefinitions.apiextensions.k8s.io" => definition(value, now),
        _ => {}
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// Sets `path.key` when it is absent; does nothing where the path holds something else than an object.
fn set(value: &mut Value, path: &[&str], key: &str, default: Value) {
    let mut at = value;
    for part in path {
        let Some(object) = at.as_object_mut() else { return };
        at = object.entry(*part).or_insert_with(|| json!({}));
    }
    if let Some(object) = at.as_object_mut() {
        object.entry(key).or_insert(default);
    }
}

fn pod_spec(spec: Option<&mut Value>) {
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
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            set(container, &[], "resources", json!({}));
            set(container, &[], "terminationMessagePath", json!("/dev/termination-log"));
            set(container, &[], "terminationMessagePolicy", json!("File"));
            let latest = container["image"].as_str().is_some_and(|image| {
                let name = image.rsplit('/').next().unwrap_or(image);
                !name.contains('@') && (!name.contains(':') || name.ends_with(":latest"))
            });
            set(container, &[], "imagePullPolicy", json!(if latest { "Always" } else { "IfNotPresent" }));
        }
    }
}

/// A definition is established at once: nothing else has to agree here.
fn definition(crd: &mut Value, now: Timestamp) {
    let names = &crd["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    set(crd, &["spec", "names"], "singular", json!(kind.to_lowercase()));
    set(crd, &["spec", "names"], "listKind", json!(format!("{kind}List")));
    set(crd, &["spec"], "conversion", json!({"strategy": "None"}));
    let stored: Vec<Value> = crd["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == Value::Bool(true))
        .map(|version| version["name"].clone())
        .collect();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": message,
               "lastTransitionTime": object::seconds(now)})
    };
    let established = crd["status"]["conditions"].clone();
    let conditions = if established.is_array() {
        established
    } else {
        json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ])
    };
    crd["status"] = json!({"acceptedNames": crd["spec"]["names"], "conditions": conditions, "storedVersions": stored});
}
