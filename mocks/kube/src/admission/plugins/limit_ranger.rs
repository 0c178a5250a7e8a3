//! `LimitRanger`: defaults and bounds for the resources of single pods, containers and claims.

use mock_cel::Quantity;
use mock_objects::kinds::{Meaning, pod_total};
use mock_objects::object;
use mock_objects::status::Failure;
use serde_json::{Value, json};

use super::{all, forbidden, set};
use crate::admission::Attempt;

const LIMIT_RANGES: &str = "limitranges";
/// The annotation that lists the amounts that the plugin set in a pod.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The limits of all `LimitRange`s in the namespace of a request.
fn limits(attempt: &Attempt<'_>) -> Vec<Value> {
    let Some(namespace) = attempt.call.target.namespace.as_deref() else { return Vec::new() };
    let ranges = all(attempt, LIMIT_RANGES, Some(namespace)).into_iter().map(|version| version.value());
    ranges.flat_map(|range| range["spec"]["limits"].as_array().cloned().unwrap_or_default()).collect()
}

/// Sets default requests and limits in the containers of a new pod; returns whether a container changed.
pub(super) fn mutate(attempt: &Attempt<'_>, pod: &mut Value) -> bool {
    let limits = limits(attempt);
    let mut said = Vec::new();
    for limit in limits.iter().filter(|limit| limit["type"] == "Container") {
        for (list, called) in [("containers", "container"), ("initContainers", "init container")] {
            let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            for container in containers {
                for (which, from, word) in [("requests", "defaultRequest", "request"), ("limits", "default", "limit")] {
                    let names = fill(container, which, &limit[from]);
                    if !names.is_empty() {
                        let name = container["name"].as_str().unwrap_or_default();
                        said.push(format!("{} {word} for {called} {name}", names.join(", ")));
                    }
                }
            }
        }
    }
    if said.is_empty() {
        return false;
    }
    let annotations = object::metadata(pod).entry("annotations").or_insert_with(|| json!({}));
    annotations[ANNOTATION] = Value::from(format!("LimitRanger plugin set: {}", said.join("; ")));
    true
}

/// Sets the default amounts that a container lacks; returns the names of these resources.
fn fill(container: &mut Value, which: &str, defaults: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for (name, amount) in defaults.as_object().into_iter().flatten() {
        let Some(resources) =
            container.as_object_mut().map(|fields| fields.entry("resources").or_insert_with(|| json!({})))
        else {
            continue;
        };
        set(resources, which, json!({}));
        if set(&mut resources[which], name, amount.clone()) {
            names.push(name.clone());
        }
    }
    names.sort();
    names
}

/// Refuses a pod or a claim whose requests or limits are outside the bounds.
pub(super) fn validate(attempt: &Attempt<'_>, object: &Value) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    let is_claim = attempt.call.resource.rules.meaning == Meaning::Claim;
    for limit in limits(attempt) {
        match limit["type"].as_str().unwrap_or_default() {
            "Container" if !is_claim => {
                let lists = ["containers", "initContainers"].into_iter();
                for container in lists.filter_map(|list| object["spec"][list].as_array()).flatten() {
                    let of = |which: &str, name: &str| amount(&container["resources"][which][name]);
                    check(&limit, "Container", &of, &mut wrong);
                }
            }
            "Pod" if !is_claim => {
                let (requests, limits) = (pod_total(&object["spec"], "requests"), pod_total(&object["spec"], "limits"));
                let of =
                    |which: &str, name: &str| if which == "requests" { &requests } else { &limits }.get(name).copied();
                check(&limit, "Pod", &of, &mut wrong);
            }
            "PersistentVolumeClaim" if is_claim => {
                let of = |which: &str, name: &str| {
                    let asked = amount(&object["spec"]["resources"]["requests"][name]);
                    asked.filter(|_| which == "requests")
                };
                check(&limit, "PersistentVolumeClaim", &of, &mut wrong);
            }
            _ => {}
        }
    }
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(forbidden(attempt, object, one)),
        several => Err(forbidden(attempt, object, &format!("[{}]", several.join(", ")))),
    }
}

fn amount(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?)
}

/// Adds an error to `wrong` for each bound of `limit` that is broken by the requests and limits from `of`.
fn check(limit: &Value, kind: &str, of: &dyn Fn(&str, &str) -> Option<Quantity>, wrong: &mut Vec<String>) {
    let bounds = |which: &str| -> Vec<(String, Quantity)> {
        let bounds = limit[which].as_object().into_iter().flatten();
        bounds.filter_map(|(name, bound)| Some((name.clone(), amount(bound)?))).collect()
    };
    for (name, least) in bounds("min") {
        let (request, limit) = (of("requests", &name), of("limits", &name));
        let begin = format!("minimum {name} usage per {kind} is {}", least.canonical());
        match (request, limit) {
            (None, _) => wrong.push(format!("{begin}.  No request is specified")),
            (Some(request), _) if request < least => {
                wrong.push(format!("{begin}, but request is {}", request.canonical()));
            }
            (_, Some(limit)) if limit < least => wrong.push(format!("{begin}, but limit is {}", limit.canonical())),
            _ => {}
        }
    }
    for (name, most) in bounds("max") {
        let (request, limit) = (of("requests", &name), of("limits", &name));
        let begin = format!("maximum {name} usage per {kind} is {}", most.canonical());
        let too_much = request.filter(|request| *request > most);
        match (limit, too_much) {
            (_, Some(request)) if kind == "PersistentVolumeClaim" => {
                wrong.push(format!("{begin}, but request is {}", request.canonical()));
            }
            _ if kind == "PersistentVolumeClaim" => {}
            (None, _) => wrong.push(format!("{begin}.  No limit is specified")),
            (Some(limit), _) if limit > most => wrong.push(format!("{begin}, but limit is {}", limit.canonical())),
            (_, Some(request)) => wrong.push(format!("{begin}, but request is {}", request.canonical())),
            _ => {}
        }
    }
    for (name, most) in bounds("maxLimitRequestRatio") {
        let positive = |amount: Option<Quantity>| amount.filter(|amount| amount.signum() > 0);
        let begin = format!("{name} max limit to request ratio per {kind} is {}", most.canonical());
        match (positive(of("requests", &name)), positive(of("limits", &name))) {
            (None, _) => wrong.push(format!("{begin}, but no request is specified or request is 0")),
            (_, None) => wrong.push(format!("{begin}, but no limit is specified or limit is 0")),
            (Some(request), Some(limit)) => {
                let ratio = limit.approximate() / request.approximate();
                if ratio > most.approximate() {
                    wrong.push(format!("{begin}, but provided ratio is {ratio:.6}"));
                }
            }
        }
    }
}
