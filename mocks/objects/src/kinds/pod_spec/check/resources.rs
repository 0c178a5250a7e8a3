//! The checks of requests, limits and resource claims of containers and pods.

use std::collections::BTreeSet;

use mock_cel::Quantity;
use mock_cel::formats::{label, qualified_name, subdomain};
use serde_json::{Value, json};

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::super::total;
use super::{Pod, entries, has, items, text};
use crate::status::Cause;

/// Resource names without a domain that resource quotas accept. In a container, only the first three names are valid.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
/// The names of a pod's resource claims.
pub(super) type Claims<'a> = BTreeSet<&'a str>;

const HUGE_PAGES: &str = "hugepages-";
const REQUESTS: &str = "requests.";

/// Checks `resourceClaims` of a pod; returns their names.
pub(super) fn check_claims<'a>(pod: Pod<'a>, causes: &mut Vec<Cause>) -> Claims<'a> {
    let list = pod.at.field("resourceClaims");
    let mut seen = Claims::new();
    for (index, claim) in items(pod.spec, "resourceClaims").iter().enumerate() {
        let at = list.item(index);
        let name = causes.text_in(claim, "name", at);
        if seen.contains(name) {
            causes.duplicate(at.field("name"), name);
        } else if !name.is_empty() {
            causes.faults(at.field("name"), name, label(name));
            seen.insert(name);
        }
        let keys = ["resourceClaimName", "resourceClaimTemplateName"];
        match keys.iter().filter(|key| has(claim, key)).count() {
            0 => causes.invalid(at, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => {}
            _ => {
                let why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                causes.invalid(at, claim, why);
            }
        }
        for key in keys {
            if let Some(name) = claim[key].as_str() {
                causes.faults(at.field(key), name, subdomain(name));
            }
        }
    }
    seen
}

pub(super) fn check(resources: &Value, claims: &Claims<'_>, at: At<'_>, causes: &mut Vec<Cause>) {
    amounts(resources, of_container, at, causes);
    claimed(resources, claims, at.field("claims"), causes);
}

/// Checks `overhead` with the rules for limits.
pub(super) fn check_overhead(overhead: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    amounts(&json!({"limits": overhead}), of_container, at, causes);
}

/// Checks `resources` of a whole pod, and compares the resources of the pod's containers with the pod's.
pub(super) fn check_whole(pod: Pod<'_>, claims: &Claims<'_>, causes: &mut Vec<Cause>) {
    let (resources, at) = (&pod.spec["resources"], pod.at.field("resources"));
    if resources.is_null() {
        return;
    }
    if pod.spec["os"]["name"] == "windows" {
        return causes.forbidden(at, "may not be set for a windows pod");
    }
    if !items(resources, "claims").is_empty() {
        causes.forbidden(at.field("claims"), "claims may not be set for Resources at pod-level");
    }
    amounts(resources, of_pod, at, causes);
    claimed(resources, claims, at.field("claims"), causes);
    for (which, what) in [("requests", "aggregate container requests of"), ("limits", "aggregate container limits of")]
    {
        for (name, sum) in total::of(pod.spec, which) {
            let whole = &resources[which][name];
            let counts = which == "requests" || name.starts_with(HUGE_PAGES);
            if counts && amount(whole).is_some_and(|whole| sum > whole) {
                let why = format!("must be greater than or equal to {what} {}", sum.canonical());
                let at = at.field(which);
                causes.invalid(at.key(name), whole, &why);
            }
        }
    }
    for (index, container) in items(pod.spec, "containers").iter().enumerate() {
        for (name, limit) in entries(&container["resources"], "limits") {
            let whole = &resources["limits"][name];
            if amount(whole).is_some_and(|whole| amount(limit).is_some_and(|limit| limit > whole)) {
                let why = format!("must be less than or equal to pod limits of {}", whole.as_str().unwrap_or_default());
                let (list, key) = (at.field("containers"), name.as_str());
                let one = list.item(index);
                causes.invalid(one.key(key).field("limits"), limit, &why);
            }
        }
    }
}

fn amount(value: &Value) -> Option<Quantity> {
    value.as_str().and_then(Quantity::parse)
}

/// Checks `limits` and `requests`; `name_of` checks the names of resources.
fn amounts(resources: &Value, name_of: fn(&str, At<'_>, &mut Vec<Cause>), at: At<'_>, causes: &mut Vec<Cause>) {
    let map = at.field("limits");
    for (name, given) in entries(resources, "limits") {
        name_of(name, map.key(name), causes);
        sized(name, given, map.key(name), causes);
    }
    let map = at.field("requests");
    for (name, given) in entries(resources, "requests") {
        name_of(name, map.key(name), causes);
        sized(name, given, map.key(name), causes);
        let Some(wanted) = amount(given) else { continue };
        match amount(&resources["limits"][name]) {
            Some(limit) if wanted != limit && !overcommits(name) => {
                causes.invalid(map, given, &format!("must be equal to {name} limit of {}", limit.canonical()));
            }
            Some(limit) if wanted > limit => {
                let why = format!("must be less than or equal to {name} limit of {}", limit.canonical());
                causes.invalid(map, given, &why);
            }
            None if !overcommits(name) => {
                causes.required(at.field("limits"), "Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
    }
    let any = |fits: fn(&str) -> bool| {
        ["limits", "requests"].into_iter().flat_map(|which| entries(resources, which)).any(|(name, _)| fits(name))
    };
    if any(|name| name.starts_with(HUGE_PAGES)) && !any(|name| matches!(name, "cpu" | "memory")) {
        causes.forbidden(at, "HugePages require cpu or memory");
    }
}

/// Whether the limit of a resource may exceed its request.
pub(in crate::kinds) fn overcommits(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGE_PAGES)
}

/// Whether a resource is defined by Kubernetes.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a resource is an extended resource, such as `example.com/gpu`.
fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with(REQUESTS) && qualified_name(&format!("{REQUESTS}{name}")).is_empty()
}

/// Checks the quantity of one resource.
fn sized(name: &str, given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let Some(wanted) = amount(given) else { return };
    if wanted.signum() < 0 {
        causes.invalid(at, given, "must be greater than or equal to 0");
    }
    let counted = STANDARD[9..].contains(&name) && !name.contains("storage");
    if (counted || is_extended(name)) && wanted.as_whole().is_none() {
        causes.invalid(at, given, "must be an integer");
    }
    if let Some(page) = name.strip_prefix(HUGE_PAGES) {
        let page = Quantity::parse(page).and_then(Quantity::as_whole).filter(|page| *page > 0);
        let fits = page.is_some_and(|page| wanted.as_whole().is_some_and(|wanted| wanted % page == 0));
        if !fits {
            let why = format!("{} is not positive integer multiple of {name}", wanted.canonical());
            causes.invalid(at, given, &why);
        }
    }
}

fn is_name(name: &str, at: At<'_>, causes: &mut Vec<Cause>) -> bool {
    let faults = qualified_name(name);
    let is_pages =
        name.starts_with(HUGE_PAGES) || name.strip_prefix(REQUESTS).is_some_and(|rest| rest.starts_with(HUGE_PAGES));
    let fits = faults.is_empty();
    causes.faults(at, name, faults);
    if fits && !name.contains('/') && !STANDARD.contains(&name) && !is_pages {
        causes.invalid_text(at, name, "must be a standard resource type or fully qualified");
        return false;
    }
    fits
}

fn of_container(name: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    is_name(name, at, causes);
    if !name.contains('/') {
        if !STANDARD[..3].contains(&name) && !name.starts_with(HUGE_PAGES) {
            causes.invalid_text(at, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        causes.invalid_text(at, name, "doesn't follow extended resource name standard");
    }
}

fn of_pod(name: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    if is_name(name, at, causes) && !of_whole_pod(name) {
        causes.unsupported(at, name, &["cpu", HUGE_PAGES, "memory"]);
    }
}

/// Whether a resource can be set for a whole pod.
pub(in crate::kinds) fn of_whole_pod(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

/// Checks `claims` of a container, which must be among the pod's claims.
fn claimed(resources: &Value, of_pod: &Claims<'_>, list: At<'_>, causes: &mut Vec<Cause>) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, claim) in items(resources, "claims").iter().enumerate() {
        let at = list.item(index);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            causes.required(at, "");
            continue;
        }
        if seen.contains(&(name, "")) {
            causes.duplicate(at, name);
        } else {
            if !request.is_empty() {
                causes.faults(at.field("request"), request, label(request));
            }
            let same = seen.iter().filter(|(other, part)| *other == name && (request.is_empty() || *part == request));
            for _ in same {
                causes.duplicate(at, name);
            }
            seen.push((name, request));
        }
        if !of_pod.contains(name) {
            causes.not_found(at, name);
        }
    }
}
