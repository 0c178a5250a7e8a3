//! `ResourceQuota`: refuses an object that would use more than a quota of its namespace has left.

use mock_cel::Quantity;
use mock_objects::status::Failure;
use serde_json::Value;

use super::forbidden;
use crate::admission::{Attempt, Operation};
use crate::quota::{self, Amounts};
use crate::reserved::Reservation;

/// Resources that every container must specify if a quota limits them.
const COMPUTE: [&str; 6] = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// Refuses an object that exceeds a quota, and reserves the amounts that the object uses. With `Config::alone`, no object
/// is refused, because no controller counts the used amounts.
pub(super) fn admit(attempt: &Attempt<'_>, object: &Value) -> Result<Option<Reservation>, Failure> {
    let (call, resource) = (attempt.call, &attempt.call.resource);
    let namespace = call.target.namespace.as_deref().filter(|_| !call.cluster().alone && is_counted(attempt, object));
    let Some(namespace) = namespace else { return Ok(None) };
    let quotas = quota::of_namespace(call.cluster(), namespace);
    if quotas.is_empty() {
        return Ok(None);
    }
    let judge = |used: &dyn Fn(&Value) -> Amounts| {
        let mut of_object = quotas.iter().filter(|quota| quota::concerns(quota, resource, object));
        of_object.try_for_each(|quota| check(attempt, object, quota, used))
    };
    quota::admit(call.cluster(), resource, object, judge).map(Some)
}

/// Whether the write is checked against quotas: every creation, and those updates that a real server checks too.
fn is_counted(attempt: &Attempt<'_>, object: &Value) -> bool {
    let Some(old) = attempt.old.filter(|_| attempt.operation == Operation::Update) else {
        return attempt.operation == Operation::Create;
    };
    let ends = |pod: &Value| pod["spec"]["activeDeadlineSeconds"].is_i64();
    match &*attempt.call.resource.full_name {
        "services" | "persistentvolumeclaims" => true,
        "pods" => ends(old) != ends(object),
        _ => false,
    }
}

fn check(
    attempt: &Attempt<'_>,
    object: &Value,
    quota: &Value,
    used: &dyn Fn(&Value) -> Amounts,
) -> Result<(), Failure> {
    let resource = &attempt.call.resource;
    let name = quota["metadata"]["name"].as_str().unwrap_or_default();
    let amount = |(name, amount): (&String, &Value)| Some((name.clone(), Quantity::parse(amount.as_str()?)?));
    let hard: Amounts = quota["spec"]["hard"].as_object().into_iter().flatten().filter_map(amount).collect();
    if &*resource.full_name == "pods" {
        let missing = unsaid(&hard, object);
        if !missing.is_empty() {
            let why = format!("failed quota: {name}: must specify {}", missing.join("; "));
            return Err(forbidden(attempt, object, &why));
        }
    }
    let mut wanted = quota::usage(resource, object);
    // An update needs only the amounts that it adds to those of the old object.
    if let Some(old) = attempt.old.filter(|old| quota::concerns(quota, resource, old)) {
        for (name, before) in quota::usage(resource, old) {
            if let Some(amount) = wanted.get_mut(&name) {
                *amount = amount.minus(before);
            }
        }
    }
    wanted.retain(|name, amount| amount.signum() > 0 && hard.contains_key(name));
    if wanted.is_empty() {
        return Ok(());
    }
    let used = used(quota);
    let is_over = |(name, amount): &(&String, &Quantity)| used[*name].plus(**amount) > hard[*name];
    let exceeded: Vec<&String> = wanted.iter().filter(is_over).map(|(name, _)| name).collect();
    if exceeded.is_empty() {
        return Ok(());
    }
    let of = |amounts: &Amounts| {
        let shown = exceeded.iter().map(|name| format!("{name}={}", amounts[*name].canonical()));
        shown.collect::<Vec<_>>().join(",")
    };
    let (requested, used, limited) = (of(&wanted), of(&used), of(&hard));
    let why = format!("exceeded quota: {name}, requested: {requested}, used: {used}, limited: {limited}");
    Err(forbidden(attempt, object, &why))
}

/// Resources that a quota limits and containers do not specify, with the names of the containers: `cpu for: a,b`.
fn unsaid(hard: &Amounts, pod: &Value) -> Vec<String> {
    let containers = ["initContainers", "containers"].into_iter();
    let containers: Vec<&Value> = containers.filter_map(|list| pod["spec"][list].as_array()).flatten().collect();
    let bounded = hard.keys().filter(|name| COMPUTE.contains(&name.as_str()));
    let missing = |name: &String| {
        let (which, of) = name.split_once('.').unwrap_or(("requests", name));
        let silent = containers.iter().filter(|container| container["resources"][which].get(of).is_none());
        let names: Vec<&str> = silent.filter_map(|container| container["name"].as_str()).collect();
        (!names.is_empty()).then(|| format!("{name} for: {}", names.join(",")))
    };
    bounded.filter_map(missing).collect()
}
