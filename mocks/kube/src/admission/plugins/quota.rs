//! `ResourceQuota`: refuses an object that would use more than a quota of its namespace has left.

use mock_cel::Quantity;
use mock_objects::status::Failure;
use serde_json::Value;

use super::forbidden;
use crate::admission::Attempt;
use crate::quota::{self, Amounts};

/// Resources that every container must specify if a quota limits them.
const COMPUTE: [&str; 6] = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// Refuses a new object that exceeds a quota. With `Config::alone`, no object is refused, because no controller counts
/// the used amounts.
pub(super) fn validate(attempt: &Attempt<'_>, object: &Value) -> Result<(), Failure> {
    let (call, resource) = (attempt.call, &attempt.call.resource);
    let Some(namespace) = call.target.namespace.as_deref().filter(|_| !call.cluster().alone) else { return Ok(()) };
    let quotas = quota::of_namespace(call.cluster(), namespace);
    if quotas.is_empty() {
        return Ok(());
    }
    let wanted = quota::usage(resource, object);
    for quota in quotas.iter().filter(|quota| quota::concerns(quota, resource, object)) {
        let name = quota["metadata"]["name"].as_str().unwrap_or_default();
        let hard: Amounts = quota["spec"]["hard"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(amount.as_str()?)?)))
            .collect();
        if &*resource.full_name == "pods" {
            let missing = unsaid(&hard, object);
            if !missing.is_empty() {
                let why = format!("failed quota: {name}: must specify {}", missing.join("; "));
                return Err(forbidden(attempt, object, &why));
            }
        }
        if !wanted.keys().any(|name| hard.contains_key(name)) {
            continue;
        }
        let used = quota::used(call.cluster(), quota);
        let exceeded: Vec<&String> = wanted
            .iter()
            .filter(|(name, amount)| {
                let sum = used.get(*name).map(|used| used.plus(**amount));
                amount.signum() > 0 && hard.get(*name).is_some_and(|hard| sum.is_some_and(|sum| sum > *hard))
            })
            .map(|(name, _)| name)
            .collect();
        if !exceeded.is_empty() {
            let of = |amounts: &Amounts| {
                let shown = exceeded.iter().map(|name| format!("{name}={}", amounts[*name].canonical()));
                shown.collect::<Vec<_>>().join(",")
            };
            let (requested, used, limited) = (of(&wanted), of(&used), of(&hard));
            let why = format!("exceeded quota: {name}, requested: {requested}, used: {used}, limited: {limited}");
            return Err(forbidden(attempt, object, &why));
        }
    }
    Ok(())
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
