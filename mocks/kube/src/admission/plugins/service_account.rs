//! `ServiceAccount`: the account of a pod, and the token that is mounted into every container ("Configure Service
//! Accounts for Pods").

use mock_objects::status::Failure;
use serde_json::{Value, json};

use super::{forbidden, set};
use crate::admission::Attempt;
use crate::bootstrap;

const USUAL: &str = "default";
const MOUNTED_AT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME: &str = "kube-api-access-";
/// Annotation of mirror pods: a kubelet makes them by itself, and they must not be changed.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Sets a pod's account and mounts its token.
pub(super) fn mutate(attempt: &Attempt<'_>, pod: &mut Value) -> Result<bool, Failure> {
    if !plays(attempt) || pod["metadata"]["annotations"].get(MIRROR).is_some() {
        return Ok(false);
    }
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return Ok(false) };
    let mut changed = false;
    if spec["serviceAccountName"].as_str().is_none_or(str::is_empty) {
        spec["serviceAccountName"] = Value::from(USUAL);
        // The deprecated name of the field.
        spec["serviceAccount"] = Value::from(USUAL);
        changed = true;
    }
    let account = account(attempt, pod)?;
    let wish = |value: &Value| value["automountServiceAccountToken"].as_bool();
    if wish(&pod["spec"]).or(wish(&account)).unwrap_or(true) {
        changed |= mount(attempt, pod);
    }
    let pull = &account["imagePullSecrets"];
    if pull.as_array().is_some_and(|list| !list.is_empty())
        && pod["spec"]["imagePullSecrets"].as_array().is_none_or(Vec::is_empty)
    {
        pod["spec"]["imagePullSecrets"] = pull.clone();
        changed = true;
    }
    Ok(changed)
}

/// Refuses a pod whose account does not exist: webhooks may have changed it.
pub(super) fn validate(attempt: &Attempt<'_>, pod: &Value) -> Result<(), Failure> {
    if plays(attempt) && pod["metadata"]["annotations"].get(MIRROR).is_none() {
        account(attempt, pod)?;
    }
    Ok(())
}

/// Whether the plugin runs: without accounts every pod would be refused.
fn plays(attempt: &Attempt<'_>) -> bool {
    attempt.call.cluster().root_ca.is_some()
}

fn account(attempt: &Attempt<'_>, pod: &Value) -> Result<Value, Failure> {
    let (cluster, namespace) = (attempt.call.cluster(), attempt.call.namespace());
    let name = pod["spec"]["serviceAccountName"].as_str().unwrap_or_default();
    let catalogue = cluster.catalogue();
    let look = || catalogue.by_full_name("serviceaccounts").and_then(|resource| cluster.get(resource, namespace, name));
    let mut found = look();
    if found.is_none() && name == USUAL {
        // A real server waits for the controller that makes it.
        bootstrap::namespace(cluster, namespace);
        found = look();
    }
    found.map(|account| account.value()).ok_or_else(|| {
        let why = format!("error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found");
        forbidden(attempt, pod, &why)
    })
}

/// Mounts the token into every container that has no other mount at its path; returns whether a container needed it.
fn mount(attempt: &Attempt<'_>, pod: &mut Value) -> bool {
    let named = |volume: &&Value| volume["name"].as_str().is_some_and(|name| name.starts_with(VOLUME));
    let known = pod["spec"]["volumes"].as_array().into_iter().flatten().find(named);
    let known = known.and_then(|volume| volume["name"].as_str()).map(str::to_owned);
    let (is_known, name) = match known {
        Some(name) => (true, name),
        None => (false, format!("{VOLUME}{}", attempt.call.cluster().fresh().suffix)),
    };
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        for container in pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            set(container, "volumeMounts", json!([]));
            let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) else { continue };
            if !mounts.iter().any(|mount| mount["mountPath"] == MOUNTED_AT) {
                mounts.push(json!({"name": name, "readOnly": true, "mountPath": MOUNTED_AT}));
                needed = true;
            }
        }
    }
    if needed && !is_known {
        set(&mut pod["spec"], "volumes", json!([]));
        if let Some(volumes) = pod["spec"].get_mut("volumes").and_then(Value::as_array_mut) {
            volumes.push(volume(&name));
        }
    }
    needed
}

/// A volume with token, certificate of the authority and namespace.
fn volume(name: &str) -> Value {
    let namespace = json!({"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        // An hour and seven seconds, the real server's mark of such tokens.
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]}})
}
