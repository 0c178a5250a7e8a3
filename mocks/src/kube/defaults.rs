//! What the real server and its built-in admission fill in, as far as clients and people rely on it.
//!
//! Owns the defaults of new objects. It must not validate.

mod pod;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::catalogue::Resource;
use super::{events, object};

const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/// Fills in the defaults of an object that is being created.
pub(crate) fn apply(value: &mut Value, resource: &Resource, now: Timestamp) {
    match &*resource.full_name {
        "namespaces" => {
            let name = object::meta(value, "name").to_owned();
            let labels = object::metadata(value).entry("labels").or_insert_with(|| json!({}));
            if labels.is_object() {
                labels["kubernetes.io/metadata.name"] = Value::from(name);
            }
            set(value, &["spec"], "finalizers", json!([]));
            if let Some(finalizers) = value.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut)
                && !finalizers.iter().any(|finalizer| finalizer == "kubernetes")
            {
                finalizers.push(json!("kubernetes"));
            }
            set(value, &["status"], "phase", json!("Active"));
        }
        "pods" => {
            pod::spec(value.get_mut("spec"));
            pod::alone(value);
            value["status"] = json!({"phase": "Pending", "qosClass": pod::quality(value)});
        }
        "deployments.apps" => {
            deployment(value);
            value["status"] = json!({});
        }
        "statefulsets.apps" | "replicasets.apps" | "replicationcontrollers" => {
            set(value, &["spec"], "replicas", json!(1));
            template(value);
            value["status"] = json!({"replicas": 0});
        }
        "daemonsets.apps" | "jobs.batch" => {
            template(value);
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
        "networkpolicies.networking.k8s.io" => network_policy(value),
        MUTATING | VALIDATING => webhooks(value, resource),
        "events" => events::fill(value),
        "persistentvolumeclaims" => set(value, &["status"], "phase", json!("Pending")),
        "customresourcedefinitions.apiextensions.k8s.io" => definition(value, now),
        _ => {}
    }
}

/// Fills in what an update of an object brings with it.
pub(crate) fn on_update(value: &mut Value, resource: &Resource, now: Timestamp) {
    match &*resource.full_name {
        "secrets" => apply(value, resource, now),
        "events" => events::fill(value),
        "pods" => {
            pod::spec(value.get_mut("spec"));
            pod::alone(value);
        }
        "deployments.apps" => deployment(value),
        "networkpolicies.networking.k8s.io" => network_policy(value),
        MUTATING | VALIDATING => webhooks(value, resource),
        "customresourcedefinitions.apiextensions.k8s.io" => definition(value, now),
        _ => {}
    }
}

/// The defaults of admissionregistration.k8s.io/v1.
fn webhooks(value: &mut Value, resource: &Resource) {
    for hook in value.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        for (key, default) in [
            ("failurePolicy", json!("Fail")),
            ("matchPolicy", json!("Equivalent")),
            ("namespaceSelector", json!({})),
            ("objectSelector", json!({})),
            ("timeoutSeconds", json!(10)),
        ] {
            set(hook, &[], key, default);
        }
        if &*resource.full_name == MUTATING {
            set(hook, &[], "reinvocationPolicy", json!("Never"));
        }
        for rule in hook.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten() {
            set(rule, &[], "scope", json!("*"));
        }
        if hook.pointer("/clientConfig/service").is_some_and(Value::is_object) {
            set(hook, &["clientConfig", "service"], "port", json!(443));
        }
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

/// The times of conditions that nobody set are shown as null: the real server's types always have them.
pub(crate) fn on_status(value: &mut Value, resource: &Resource) {
    let times: &[&str] = match &*resource.full_name {
        "pods" => &["lastProbeTime", "lastTransitionTime"],
        "deployments.apps" => &["lastUpdateTime", "lastTransitionTime"],
        _ => return,
    };
    if let Some(status) = value.get_mut("status") {
        each(status, "conditions", |condition| times.iter().for_each(|time| set(condition, &[], time, Value::Null)));
    }
}

/// Changes every item of a list.
fn each(value: &mut Value, list: &str, mut change: impl FnMut(&mut Value)) {
    for item in value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
        change(item);
    }
}

fn template(value: &mut Value) {
    pod::spec(value.pointer_mut("/spec/template/spec"));
    // The real server's type has a creation time there that nobody sets, and shows it.
    set(value, &["spec", "template", "metadata"], "creationTimestamp", Value::Null);
}

fn deployment(value: &mut Value) {
    set(value, &["spec"], "replicas", json!(1));
    set(value, &["spec"], "revisionHistoryLimit", json!(10));
    set(value, &["spec"], "progressDeadlineSeconds", json!(600));
    set(value, &["spec", "strategy"], "type", json!("RollingUpdate"));
    if value.pointer("/spec/strategy/type").is_some_and(|kind| kind == "RollingUpdate") {
        for key in ["maxSurge", "maxUnavailable"] {
            set(value, &["spec", "strategy", "rollingUpdate"], key, json!("25%"));
        }
    }
    template(value);
}

fn network_policy(value: &mut Value) {
    let Some(spec) = value.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    set(spec, &[], "policyTypes", if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
    for list in ["ingress", "egress"] {
        each(spec, list, |rule| each(rule, "ports", |port| set(port, &[], "protocol", json!("TCP"))));
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
