//! The admission plugins of kube-apiserver that complete or refuse objects before webhooks see them ("Admission Control
//! in Kubernetes", the plugins that are on by default).
//!
//! Owns the order of the plugins, which the documentation recommends. The module `verbs` does the checks of the plugin
//! `NamespaceLifecycle`. The plugin `ServiceAccount` runs only with `Config::furnished_namespaces`, because without
//! that setting no service account exists. Each plugin runs only for some kinds, mainly pods and volume claims.

mod claim_resize;
mod limit_ranger;
mod priority;
mod quota;
mod runtime_class;
mod service_account;
mod storage_class;

use std::sync::Arc;

use mock_objects::kinds::Meaning;
use mock_objects::object;
use mock_objects::status::Failure;
use mock_store::Version;
use serde_json::{Value, json};

use super::{Attempt, Operation};

/// Lets the plugins change `object`; returns whether a plugin changed the object.
pub(super) fn mutate(attempt: &Attempt<'_>, object: &mut Value) -> Result<bool, Failure> {
    if attempt.call.target.subresource.is_some() {
        return Ok(false);
    }
    match (attempt.call.resource.rules.meaning, attempt.operation) {
        (Meaning::Pod, Operation::Create) => {
            let mut changed = limit_ranger::mutate(attempt, object);
            changed |= service_account::mutate(attempt, object)?;
            changed |= priority::resolve(attempt, object)?;
            changed |= tolerate(object);
            Ok(runtime_class::mutate(attempt, object)? | changed)
        }
        (Meaning::Pod, Operation::Update) => Ok(priority::keep(attempt, object) | tolerate(object)),
        (Meaning::Claim, Operation::Create) => Ok(storage_class::mutate(attempt, object)),
        _ => Ok(false),
    }
}

/// Lets the plugins refuse the object before it is stored.
pub(super) fn validate(attempt: &Attempt<'_>, object: &Value) -> Result<(), Failure> {
    if attempt.call.target.subresource.is_some() {
        return Ok(());
    }
    match (attempt.call.resource.rules.meaning, attempt.operation) {
        (Meaning::Pod, Operation::Create) => {
            limit_ranger::validate(attempt, object)?;
            service_account::validate(attempt, object)?;
            runtime_class::validate(attempt, object)
        }
        (Meaning::Claim, Operation::Create) => limit_ranger::validate(attempt, object),
        (Meaning::Claim, Operation::Update) => {
            limit_ranger::validate(attempt, object)?;
            claim_resize::validate(attempt, object)
        }
        (Meaning::PriorityClass, Operation::Create | Operation::Update) => priority::validate_class(attempt, object),
        _ => Ok(()),
    }
}

/// Lets `ResourceQuota`, the last plugin, refuse a new object. Validating webhooks see the object before.
pub(super) fn conclude(attempt: &Attempt<'_>, object: &Value) -> Result<(), Failure> {
    match attempt.operation {
        Operation::Create if attempt.call.target.subresource.is_none() => quota::validate(attempt, object),
        _ => Ok(()),
    }
}

/// `DefaultTolerationSeconds`: adds tolerations with which a pod leaves a node that is not ready after five minutes.
fn tolerate(pod: &mut Value) -> bool {
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return false };
    set(spec, "tolerations", json!([]));
    let Some(list) = spec["tolerations"].as_array_mut() else { return false };
    let before = list.len();
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
    list.len() > before
}

/// The error with which a plugin refuses an object. If the object has no name, the message shows the `generateName`.
fn forbidden(attempt: &Attempt<'_>, object: &Value, why: &str) -> Failure {
    let of = |key: &str| Some(object::meta(object, key)).filter(|name| !name.is_empty());
    let name = of("name").or_else(|| of("generateName")).unwrap_or("Unknown");
    Failure::forbidden(attempt.call.resource.about(name), why)
}

/// All objects of a built-in resource, in one namespace or in the whole cluster.
fn all(attempt: &Attempt<'_>, full_name: &str, namespace: Option<&str>) -> Vec<Arc<Version>> {
    let cluster = attempt.call.cluster();
    let catalogue = cluster.catalogue();
    let Some(resource) = catalogue.by_full_name(full_name) else { return Vec::new() };
    let page = cluster.read(|store| store.list(resource.id, namespace, store.revision(), None, usize::MAX, |_| true));
    page.map(|page| page.items).unwrap_or_default()
}

/// Sets a field if the field is absent; returns whether it was absent.
fn set(object: &mut Value, key: &str, value: impl Into<Value>) -> bool {
    match object.as_object_mut() {
        Some(fields) if fields.get(key).is_none_or(Value::is_null) => {
            fields.insert(key.to_owned(), value.into());
            true
        }
        _ => false,
    }
}
