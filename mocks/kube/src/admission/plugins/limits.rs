//! `LimitRanger`: what containers may use at least and at most in a namespace, and what they get when they do not say
//! ("Limit Ranges").

use std::collections::BTreeMap;

use mock_cel::Quantity;
use serde_json::{Value, json};

use super::{all, forbidden, set};
use crate::admission::Attempt;

use mock_objects::object;
use mock_objects::status::Failure;

/// Where a pod says what it got.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Gives containers the defaults of the namespace; answers whether one took any.
pub(super) fn mutate(attempt: &Attempt<'_>, pod: &mut Value) -> bool {
    let mut changed = false;
    for range in ranges(attempt) {
        let mut told = Vec::new();
        for (list, called) in [("containers", "container"), ("initContainers", "init container")] {
            for container in pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                complete(container, &range, called, &mut told);
            }
        }
        if !told.is_empty() {
            let annotations = object::metadata(pod).entry("annotations").or_insert_with(|| json!({}));
            if let Some(annotations) = annotations.as_object_mut() {
                let text = format!("LimitRanger plugin set: {}", told.join("; "));
                annotations.insert(ANNOTATION.to_owned(), Value::from(text));
            }
            changed = true;
        }
    }
    changed
}

/// Refuses a pod that keeps outside of the limits.
pub(super) fn validate_pod(attempt: &Attempt<'_>, pod: &Value) -> Result<(), Failure> {
    for range in ranges(attempt) {
        let mut wrong = Vec::new();
        for limit in limits(&range) {
            match limit["type"].as_str() {
                Some("Container") => {
                    for container in containers(pod, "containers").chain(containers(pod, "initContainers")) {
                        check(
                            limit,
                            "Container",
                            &container["resources"]["requests"],
                            &container["resources"]["limits"],
                            &mut wrong,
                        );
                    }
                }
                Some("Pod") => check(limit, "Pod", &of_pod(pod, "requests"), &of_pod(pod, "limits"), &mut wrong),
                _ => {}
            }
        }
        refuse(attempt, pod, &wrong)?;
    }
    Ok(())
}

/// Refuses a claim that asks for too little or too much; claims have no limits of their own.
pub(super) fn validate_claim(attempt: &Attempt<'_>, claim: &Value) -> Result<(), Failure> {
    let requests = &claim["spec"]["resources"]["requests"];
    for range in ranges(attempt) {
        let mut wrong = Vec::new();
        for limit in limits(&range).filter(|limit| limit["type"] == "PersistentVolumeClaim") {
            each(&limit["min"], |resource, least| {
                wrong.extend(below(resource, "PersistentVolumeClaim", least, requests, &Value::Null));
            });
            each(&limit["max"], |resource, most| {
                let usage = format!("maximum {resource} usage per PersistentVolumeClaim is {}", shown(most));
                wrong.extend(match amount(&requests[resource]) {
                    None => Some(format!("{usage}.  No request is specified")),
                    Some(asked) if amount(most).is_some_and(|most| asked > most) => {
                        Some(format!("{usage}, but request is {}", asked.canonical()))
                    }
                    Some(_) => None,
                });
            });
        }
        refuse(attempt, claim, &wrong)?;
    }
    Ok(())
}

fn ranges(attempt: &Attempt<'_>) -> impl Iterator<Item = Value> {
    all(attempt, "limitranges", Some(attempt.call.namespace())).into_iter().map(|version| version.value())
}

fn limits(range: &Value) -> impl Iterator<Item = &Value> {
    range["spec"]["limits"].as_array().into_iter().flatten()
}

fn containers<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    pod["spec"][list].as_array().into_iter().flatten()
}

fn refuse(attempt: &Attempt<'_>, object: &Value, wrong: &[String]) -> Result<(), Failure> {
    match wrong {
        [] => Ok(()),
        [one] => Err(forbidden(attempt, object, one)),
        several => Err(forbidden(attempt, object, &format!("[{}]", several.join(", ")))),
    }
}

/// Gives one container what it lacks, and tells what that was.
fn complete(container: &mut Value, range: &Value, called: &str, told: &mut Vec<String>) {
    let name = container["name"].as_str().unwrap_or_default().to_owned();
    let of_containers = || limits(range).filter(|limit| limit["type"] == "Container");
    let mut fill = |which: &str, from: &str| -> Vec<String> {
        let mut given: Vec<String> = Vec::new();
        for (resource, default) in of_containers().flat_map(|limit| limit[from].as_object().into_iter().flatten()) {
            set(container, "resources", json!({}));
            let Some(resources) = container.get_mut("resources").filter(|resources| resources.is_object()) else {
                break;
            };
            set(resources, which, json!({}));
            if set(&mut resources[which], resource, default.clone()) {
                given.push(resource.clone());
            }
        }
        given.sort();
        given
    };
    let (limited, requested) = (fill("limits", "default"), fill("requests", "defaultRequest"));
    for (given, what) in [(requested, "request"), (limited, "limit")] {
        if !given.is_empty() {
            told.push(format!("{} {what} for {called} {name}", given.join(", ")));
        }
    }
}

/// What a pod has as a whole: what its containers have together with the sidecars, or what one that begins it needs beside the
/// sidecars that run already, if that is more (KEP-753). What the pod says of itself counts instead (KEP-2837).
fn of_pod(pod: &Value, which: &str) -> Value {
    let (mut total, mut beside, mut at_start) = (Amounts::new(), Amounts::new(), Amounts::new());
    for container in containers(pod, "containers") {
        add(&mut total, &container["resources"][which]);
    }
    for container in containers(pod, "initContainers") {
        let own = &container["resources"][which];
        let mut needed = beside.clone();
        add(&mut needed, own);
        if container["restartPolicy"] == "Always" {
            add(&mut total, own);
            beside.clone_from(&needed);
        }
        raise(&mut at_start, needed);
    }
    raise(&mut total, at_start);
    for name in ["cpu", "memory"] {
        let own = amount(&pod["spec"]["resources"][which][name]);
        total.extend(own.map(|own| (name.to_owned(), own)));
    }
    total.into_iter().map(|(name, amount)| (name, Value::from(amount.canonical()))).collect()
}

/// Amounts by the names of resources.
type Amounts = BTreeMap<String, Quantity>;

fn add(to: &mut Amounts, amounts: &Value) {
    each(amounts, |name, more| {
        if let Some(more) = amount(more) {
            to.entry(name.to_owned()).and_modify(|known| *known = known.plus(more)).or_insert(more);
        }
    });
}

/// Raises amounts to those that are larger.
fn raise(amounts: &mut Amounts, others: Amounts) {
    for (name, other) in others {
        amounts.entry(name).and_modify(|known| *known = (*known).max(other)).or_insert(other);
    }
}

/// What one limit has against the amounts of a container or pod.
fn check(limit: &Value, of: &str, requests: &Value, limits: &Value, wrong: &mut Vec<String>) {
    each(&limit["min"], |resource, least| wrong.extend(below(resource, of, least, requests, limits)));
    each(&limit["max"], |resource, most| wrong.extend(above(resource, of, most, requests, limits)));
    each(&limit["maxLimitRequestRatio"], |resource, most| wrong.extend(apart(resource, of, most, requests, limits)));
}

fn each(amounts: &Value, mut check: impl FnMut(&str, &Value)) {
    for (resource, amount) in amounts.as_object().into_iter().flatten() {
        check(resource, amount);
    }
}

fn below(resource: &str, of: &str, least: &Value, requests: &Value, limits: &Value) -> Option<String> {
    let usage = format!("minimum {resource} usage per {of} is {}", shown(least));
    let least = amount(least)?;
    let Some(asked) = amount(&requests[resource]) else { return Some(format!("{usage}.  No request is specified")) };
    if asked < least {
        return Some(format!("{usage}, but request is {}", asked.canonical()));
    }
    let limit = amount(&limits[resource]).filter(|limit| *limit < least)?;
    Some(format!("{usage}, but limit is {}", limit.canonical()))
}

fn above(resource: &str, of: &str, most: &Value, requests: &Value, limits: &Value) -> Option<String> {
    let usage = format!("maximum {resource} usage per {of} is {}", shown(most));
    let most = amount(most)?;
    let Some(limit) = amount(&limits[resource]) else { return Some(format!("{usage}.  No limit is specified")) };
    if limit > most {
        return Some(format!("{usage}, but limit is {}", limit.canonical()));
    }
    let asked = amount(&requests[resource]).filter(|asked| *asked > most)?;
    Some(format!("{usage}, but request is {}", asked.canonical()))
}

fn apart(resource: &str, of: &str, most: &Value, requests: &Value, limits: &Value) -> Option<String> {
    let ratio = format!("{resource} max limit to request ratio per {of} is {}", shown(most));
    let set = |amounts: &Value| amount(&amounts[resource]).filter(|amount| amount.signum() != 0);
    let Some(asked) = set(requests) else {
        return Some(format!("{ratio}, but no request is specified or request is 0"));
    };
    let Some(limit) = set(limits) else {
        return Some(format!("{ratio}, but no limit is specified or limit is 0"));
    };
    let provided = limit.approximate() / asked.approximate();
    (provided > amount(most)?.approximate()).then(|| format!("{ratio}, but provided ratio is {provided:.6}"))
}

fn amount(value: &Value) -> Option<Quantity> {
    value.as_str().and_then(Quantity::parse)
}

fn shown(value: &Value) -> String {
    amount(value).map_or_else(String::new, Quantity::canonical)
}
