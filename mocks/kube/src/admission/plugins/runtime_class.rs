//! The plugin `RuntimeClass`: checks that the runtime class of a pod exists, and copies the class's overhead and
//! scheduling into the pod ("Runtime Class").

use mock_cel::Quantity;
use mock_objects::status::Failure;
use serde_json::{Map, Value, json};

use super::{forbidden, set};
use crate::admission::Attempt;

const CLASSES: &str = "runtimeclasses.node.k8s.io";
const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// Adds the overhead and the node constraints of the runtime class to a new pod.
pub(super) fn mutate(attempt: &Attempt<'_>, pod: &mut Value) -> Result<bool, Failure> {
    let Some(class) = class(attempt, pod)? else { return Ok(false) };
    let mut changed = false;
    if let Some(overhead) = class["overhead"].as_object() {
        let fixed = overhead.get("podFixed").cloned().unwrap_or_else(|| json!({}));
        let given = &pod["spec"]["overhead"];
        if !given.is_null() && !is_same(given, &fixed) {
            return Err(forbidden(attempt, pod, OTHER_OVERHEAD));
        }
        changed |= set(&mut pod["spec"], "overhead", fixed);
    }
    let scheduling = &class["scheduling"];
    for (key, wanted) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        let given = &pod["spec"]["nodeSelector"][key];
        if !given.is_null() && given != wanted {
            let texts = [wanted, given].map(|value| value.as_str().unwrap_or_default());
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                texts[0], texts[1]
            );
            return Err(forbidden(attempt, pod, &why));
        }
        set(&mut pod["spec"], "nodeSelector", json!({}));
        changed |= set(&mut pod["spec"]["nodeSelector"], key, wanted.clone());
    }
    for toleration in scheduling["tolerations"].as_array().into_iter().flatten() {
        set(&mut pod["spec"], "tolerations", json!([]));
        let Some(list) = pod["spec"]["tolerations"].as_array_mut() else { continue };
        if !list.contains(toleration) {
            list.push(toleration.clone());
            changed = true;
        }
    }
    Ok(changed)
}

/// Refuses a pod whose overhead differs from the overhead of its runtime class.
pub(super) fn validate(attempt: &Attempt<'_>, pod: &Value) -> Result<(), Failure> {
    let class = class(attempt, pod)?.unwrap_or_default();
    let given = &pod["spec"]["overhead"];
    let why = if class["overhead"].is_object() {
        let fixed = &class["overhead"]["podFixed"];
        let same = if given.is_null() { is_empty(fixed) } else { is_same(given, fixed) };
        if same { "" } else { OTHER_OVERHEAD }
    } else if given.is_null() {
        ""
    } else {
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    };
    if why.is_empty() { Ok(()) } else { Err(forbidden(attempt, pod, why)) }
}

fn is_empty(amounts: &Value) -> bool {
    amounts.as_object().is_none_or(Map::is_empty)
}

/// Whether two resource lists have equal quantities, even if they are written differently.
fn is_same(left: &Value, right: &Value) -> bool {
    let amounts = |value: &Value| -> Vec<(String, Option<Quantity>)> {
        let all = value.as_object().into_iter().flatten();
        all.map(|(name, amount)| (name.clone(), amount.as_str().and_then(Quantity::parse))).collect()
    };
    amounts(left) == amounts(right)
}

fn class(attempt: &Attempt<'_>, pod: &Value) -> Result<Option<Value>, Failure> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
    let cluster = attempt.call.cluster();
    let catalogue = cluster.catalogue();
    let found = catalogue.by_full_name(CLASSES).and_then(|resource| cluster.get(resource, "", name));
    match found {
        Some(found) => Ok(Some(found.value())),
        None => Err(forbidden(attempt, pod, &format!("pod rejected: RuntimeClass {name:?} not found"))),
    }
}
