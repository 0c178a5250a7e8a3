//! The plugin `Priority`: sets the priority of a pod from its priority class ("Pod Priority and Preemption").

use mock_objects::object;
use mock_objects::status::Failure;
use serde_json::{Value, json};

use super::{all, forbidden, set};
use crate::admission::Attempt;

const CLASSES: &str = "priorityclasses.scheduling.k8s.io";
const PREEMPTS: &str = "PreemptLowerPriority";
/// Names and values of the priority classes that every real cluster has; the mock creates no objects for these classes.
const OF_THE_SYSTEM: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Sets the priority and preemption policy of a new pod from its priority class.
pub(super) fn resolve(attempt: &Attempt<'_>, pod: &mut Value) -> Result<bool, Failure> {
    let named = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let (name, value, policy) = if named.is_empty() { unnamed(attempt) } else { class(attempt, pod, &named)? };
    let (given, given_policy) = (&pod["spec"]["priority"], &pod["spec"]["preemptionPolicy"]);
    if let Some(given) = given.as_i64().filter(|given| *given != value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        );
        return Err(forbidden(attempt, pod, &why));
    }
    if let Some(given) = given_policy.as_str().filter(|given| *given != policy) {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return Err(forbidden(attempt, pod, &why));
    }
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return Ok(false) };
    let renamed = !name.is_empty() && name != named;
    if renamed {
        spec["priorityClassName"] = Value::from(name);
    }
    let counted = set(spec, "priority", value);
    Ok(set(spec, "preemptionPolicy", policy) | counted | renamed)
}

/// Copies priority and preemption policy from the old pod, because an update need not contain them.
pub(super) fn keep(attempt: &Attempt<'_>, pod: &mut Value) -> bool {
    let (Some(old), Some(spec)) = (attempt.old, pod.get_mut("spec")) else { return false };
    let mut keep = |key: &str| !old["spec"][key].is_null() && set(spec, key, old["spec"][key].clone());
    keep("priority") | keep("preemptionPolicy")
}

/// Refuses a priority class that would be the second default class.
pub(super) fn validate_class(attempt: &Attempt<'_>, class: &Value) -> Result<(), Failure> {
    if class["globalDefault"] != json!(true) {
        return Ok(());
    }
    match default_class(attempt) {
        Some(other) if object::meta(&other, "name") != object::meta(class, "name") || attempt.old.is_none() => {
            let name = object::meta(&other, "name");
            let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
            Err(forbidden(attempt, class, &why))
        }
        _ => Ok(()),
    }
}

/// Name, priority and preemption policy of the priority class that a pod names.
fn class(attempt: &Attempt<'_>, pod: &Value, named: &str) -> Result<(String, i64, String), Failure> {
    let cluster = attempt.call.cluster();
    let catalogue = cluster.catalogue();
    let found = catalogue.by_full_name(CLASSES).and_then(|resource| cluster.get(resource, "", named));
    if let Some(found) = found {
        return Ok(numbers(&found.value()));
    }
    match OF_THE_SYSTEM.iter().find(|(name, _)| *name == named) {
        Some((name, value)) => Ok(((*name).to_owned(), *value, PREEMPTS.to_owned())),
        None => Err(forbidden(attempt, pod, &format!("no PriorityClass with name {named} was found"))),
    }
}

/// Name, priority and preemption policy for a pod that names no priority class.
fn unnamed(attempt: &Attempt<'_>) -> (String, i64, String) {
    default_class(attempt).as_ref().map_or_else(|| (String::new(), 0, PREEMPTS.to_owned()), numbers)
}

/// The default priority class; if several classes are marked as default, the class with the lowest value.
fn default_class(attempt: &Attempt<'_>) -> Option<Value> {
    let classes = all(attempt, CLASSES, None).into_iter().map(|version| version.value());
    let defaults = classes.filter(|class| class["globalDefault"] == json!(true));
    defaults.min_by_key(|class| class["value"].as_i64().unwrap_or(0))
}

fn numbers(class: &Value) -> (String, i64, String) {
    let policy = class["preemptionPolicy"].as_str().unwrap_or(PREEMPTS).to_owned();
    (object::meta(class, "name").to_owned(), class["value"].as_i64().unwrap_or(0), policy)
}
