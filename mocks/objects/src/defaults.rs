//! What the real server and its built-in admission fill in, as far as clients and people rely on it.
//!
//! Owns the defaults of new objects. It must not validate.

mod network;
mod pod;
mod policy;
mod storage;
mod workloads;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::catalogue::Resource;
use super::convert::autoscaler;
use super::{events, object};

const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/// Fills in the defaults of an object that is being created and has its name and uid.
pub fn apply(value: &mut Value, resource: &Resource, now: Timestamp) {
    decoded(value, resource, now);
    prepared(value, resource);
}

/// What comes with the name and the uid, after admission webhooks may have changed the object.
pub fn prepared(value: &mut Value, resource: &Resource) {
    match &*resource.full_name {
        "namespaces" => {
            name_label(value);
            set(value, &["spec"], "finalizers", json!([]));
            if let Some(finalizers) = value.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut)
                && !finalizers.iter().any(|finalizer| finalizer == "kubernetes")
            {
                finalizers.push(json!("kubernetes"));
            }
        }
        "pods" => value["status"] = json!({"phase": "Pending", "qosClass": pod::quality(value)}),
        "jobs.batch" => workloads::selected_job(value),
        _ => {}
    }
}

/// Fills in the defaults of a new object as soon as it is read.
pub fn decoded(value: &mut Value, resource: &Resource, now: Timestamp) {
    fields(value, resource, true, now);
    match &*resource.full_name {
        "namespaces" => {
            name_label(value);
            set(value, &["status"], "phase", json!("Active"));
        }
        "statefulsets.apps" => value["status"] = json!({"availableReplicas": 0, "replicas": 0}),
        "replicasets.apps" | "replicationcontrollers" => value["status"] = json!({"replicas": 0}),
        "daemonsets.apps" => {
            value["status"] = json!({
                "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
            });
        }
        "pods"
        | "deployments.apps"
        | "jobs.batch"
        | "cronjobs.batch"
        | "resourcequotas"
        | "apiservices.apiregistration.k8s.io" => value["status"] = json!({}),
        "services" | "ingresses.networking.k8s.io" => value["status"] = json!({"loadBalancer": {}}),
        "persistentvolumeclaims" | "persistentvolumes" => set(value, &["status"], "phase", json!("Pending")),
        "volumeattachments.storage.k8s.io" => set(value, &["status"], "attached", json!(false)),
        "poddisruptionbudgets.policy" => policy::disruption_budget(value),
        autoscaler::RESOURCE => value["status"] = autoscaler::new_status(value),
        _ => {}
    }
}

/// Fills in what an update of an object brings with it.
pub fn on_update(value: &mut Value, resource: &Resource, now: Timestamp) {
    fields(value, resource, false, now);
}

/// The defaults of the fields that clients write.
fn fields(value: &mut Value, resource: &Resource, is_new: bool, now: Timestamp) {
    match &*resource.full_name {
        "pods" => {
            pod::spec(value.get_mut("spec"));
            pod::alone(value);
        }
        "deployments.apps" => workloads::deployment(value),
        "statefulsets.apps" => workloads::stateful_set(value),
        "replicasets.apps" => workloads::replica_set(value),
        "replicationcontrollers" => workloads::replication_controller(value),
        "daemonsets.apps" => workloads::daemon_set(value),
        "jobs.batch" => workloads::job(value),
        "cronjobs.batch" => workloads::cron_job(value),
        "podtemplates" => workloads::pod_template(value),
        "services" => network::service(value),
        "endpoints" => network::endpoints(value),
        "endpointslices.discovery.k8s.io" => network::endpoint_slice(value),
        "ingressclasses.networking.k8s.io" => network::ingress_class(value),
        "networkpolicies.networking.k8s.io" => network::policy(value),
        "persistentvolumeclaims" => storage::claim(value),
        "persistentvolumes" => storage::volume(value),
        "storageclasses.storage.k8s.io" => storage::class(value),
        "csidrivers.storage.k8s.io" => storage::driver(value),
        "csinodes.storage.k8s.io" => storage::node_drivers(value),
        "roles.rbac.authorization.k8s.io" | "clusterroles.rbac.authorization.k8s.io" => policy::role(value),
        "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io" => {
            policy::binding(value);
        }
        "limitranges" => policy::limits(value),
        "nodes" => policy::node(value, is_new),
        "apiservices.apiregistration.k8s.io" => policy::api_service(value),
        "priorityclasses.scheduling.k8s.io" => set(value, &[], "preemptionPolicy", json!("PreemptLowerPriority")),
        "secrets" => secret(value),
        "events" => events::fill(value),
        autoscaler::RESOURCE => autoscaler::fill(value),
        MUTATING | VALIDATING => webhooks(value, resource),
        "customresourcedefinitions.apiextensions.k8s.io" => definition(value, now),
        _ => {}
    }
}

/// The label by which namespaces are selected by their names.
fn name_label(namespace: &mut Value) {
    let name = object::meta(namespace, "name").to_owned();
    // One that is to be generated is not known yet.
    if !name.is_empty() {
        let labels = object::metadata(namespace).entry("labels").or_insert_with(|| json!({}));
        if labels.is_object() {
            labels["kubernetes.io/metadata.name"] = Value::from(name);
        }
    }
}

/// What is written as text is kept in base64.
fn secret(value: &mut Value) {
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
pub fn on_status(value: &mut Value, resource: &Resource) {
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

/// A list that the real server's type always shows is `null` when it is empty.
fn shown_empty(value: &mut Value, path: &[&str], list: &str) {
    set(value, path, list, Value::Null);
    let at = path.iter().try_fold(&mut *value, |at, part| at.get_mut(*part));
    if let Some(found) = at.and_then(|at| at.get_mut(list)).filter(|found| found.as_array().is_some_and(Vec::is_empty))
    {
        *found = Value::Null;
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
