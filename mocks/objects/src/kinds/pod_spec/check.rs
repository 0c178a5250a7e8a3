//! The checks of a pod specification, in a pod or in a template ("Kubernetes API reference", Pod v1 core).
//!
//! Owns the checks of a whole pod, and the order of all checks, which is that of a real server. The files in the folder
//! `check` have the other checks. The rules are those of Kubernetes 1.34 with the features that are on by default.

mod affinity;
mod annotations;
mod containers;
mod environment;
mod handlers;
mod mounts;
mod names;
mod network;
mod resources;
mod security;
mod spread;
mod systems;
mod volumes;

use std::collections::BTreeSet;

use mock_cel::formats::{label, qualified_name, subdomain};
use serde_json::{Map, Value};

use super::super::at::At;
use super::super::causes::Refuse;
use super::super::selectors;
use crate::status::Cause;

pub(in crate::kinds) use annotations::APP_ARMOR_OF;
pub(in crate::kinds) use resources::{of_whole_pod, overcommits};
pub(in crate::kinds) use volumes::claim;

/// The largest accepted number for times in seconds, for user ids and for group ids.
const MAX: i64 = i32::MAX as i64;

/// A pod specification with its path and the metadata of its pod.
#[derive(Clone, Copy)]
struct Pod<'a> {
    spec: &'a Value,
    at: At<'a>,
    /// The pod's metadata; `None` for a template.
    alone: Option<&'a Value>,
}

impl<'a> Pod<'a> {
    /// The pod's grace period in seconds.
    fn grace_s(&self) -> Option<i64> {
        self.spec["terminationGracePeriodSeconds"].as_i64()
    }

    /// Whether the pod uses its node's user namespace (Linux).
    fn shares_users(&self) -> bool {
        self.spec["hostUsers"] != Value::Bool(false)
    }

    /// All containers, each with the name of its list and its index in the list.
    fn containers(&self) -> impl Iterator<Item = (&'static str, usize, &'a Value)> + use<'a> {
        let spec = self.spec;
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(move |list| items(spec, list).iter().enumerate().map(move |(index, one)| (list, index, one)))
    }
}

/// The items of a list; empty if the list is absent.
fn items<'a>(value: &'a Value, list: &str) -> &'a [Value] {
    value[list].as_array().map_or(&[], Vec::as_slice)
}

/// The text in the field `key`; empty if the field is absent.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn texts<'a>(value: &'a Value, list: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    items(value, list).iter().map(|item| item.as_str().unwrap_or_default())
}

fn entries<'a>(value: &'a Value, map: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    value[map].as_object().into_iter().flat_map(Map::iter)
}

fn has(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(|found| !found.is_null())
}

pub(in crate::kinds) fn check_pod(pod: &Value, causes: &mut Vec<Cause>) {
    let spec = &pod["spec"];
    let checked = Pod { spec, at: At::from("spec"), alone: Some(&pod["metadata"]) };
    annotations::check(&pod["metadata"], checked, At::from("metadata").field("annotations"), causes);
    check_spec(checked, causes);
    if text(spec, "serviceAccountName").is_empty() {
        volumes::no_tokens(checked, causes);
    }
    for (list, index, container) in checked.containers().filter(|(list, ..)| *list != "ephemeralContainers") {
        containers::trimmed(container, checked.at.field(list).item(index), causes);
    }
}

pub(in crate::kinds) fn check_new_pod(pod: &Value, causes: &mut Vec<Cause>) {
    let spec = &pod["spec"];
    let at = At::from("spec");
    if !items(spec, "ephemeralContainers").is_empty() {
        causes.forbidden(at.field("ephemeralContainers"), "cannot be set on create");
    }
    if !text(spec, "nodeName").is_empty() && !items(spec, "schedulingGates").is_empty() {
        causes.forbidden(at.field("nodeName"), "cannot be set until all schedulingGates have been cleared");
    }
    annotations::match_fields(&pod["metadata"], Pod { spec, at, alone: Some(&pod["metadata"]) }, causes);
}

pub(in crate::kinds) fn check_annotations(template: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let metadata = &template["metadata"];
    selectors::check_labels(&metadata["labels"], at.field("labels"), causes);
    annotations::check_keys(metadata, at.field("annotations"), causes);
    let pod = Pod { spec: &template["spec"], at: at.field("spec"), alone: None };
    annotations::check(metadata, pod, at.field("annotations"), causes);
}

/// The number of errors in an `AppArmor` profile.
pub(in crate::kinds) fn app_armor_faults(profile: &Value) -> usize {
    let mut causes = Vec::new();
    security::app_armor(profile, At::from(""), &mut causes);
    causes.len()
}

pub(in crate::kinds) fn check_template(template: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let spec = &template["spec"];
    let metadata = &template["metadata"];
    selectors::check_labels(&metadata["labels"], at.field("labels"), causes);
    annotations::check_keys(metadata, at.field("annotations"), causes);
    let pod = Pod { spec, at: at.field("spec"), alone: None };
    annotations::check(metadata, pod, at.field("annotations"), causes);
    check_spec(pod, causes);
    annotations::match_fields(metadata, pod, causes);
    if !items(spec, "ephemeralContainers").is_empty() {
        causes.forbidden(pod.at.field("ephemeralContainers"), "ephemeral containers not allowed in pod template");
    }
}

fn check_spec(pod: Pod<'_>, causes: &mut Vec<Cause>) {
    let (spec, at) = (pod.spec, pod.at);
    let known = volumes::check(pod, causes);
    let claims = resources::check_claims(pod, causes);
    containers::check(pod, &known, &claims, causes);
    resources::check_whole(pod, &claims, causes);
    network::check_host_ports(pod, causes);
    causes.one_of(&spec["restartPolicy"], at.field("restartPolicy"), &["Always", "OnFailure", "Never"]);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    causes.one_of(&spec["dnsPolicy"], at.field("dnsPolicy"), &policies);
    selectors::check_labels(&spec["nodeSelector"], at.field("nodeSelector"), causes);
    security::check_pod(pod, causes);
    affinity::check(&spec["affinity"], at.field("affinity"), causes);
    network::check_resolver(spec, at.field("dnsConfig"), causes);
    gates(spec, at, causes);
    spread::check(spec, at.field("topologySpreadConstraints"), causes);
    systems::check_host_processes(pod, causes);
    security::check_users(pod, causes);
    names::check(spec, at, causes);
    spread::check_tolerations(items(spec, "tolerations"), at.field("tolerations"), causes);
    network::check_aliases(spec, at.field("hostAliases"), causes);
    for (key, faults) in [("priorityClassName", subdomain as fn(&str) -> Vec<String>), ("runtimeClassName", subdomain)]
    {
        if let Some(name) = spec[key].as_str().filter(|name| key == "runtimeClassName" || !name.is_empty()) {
            causes.faults(at.field(key), name, faults(name));
        }
    }
    if spec["preemptionPolicy"] == "" {
        causes.required(at.field("preemptionPolicy"), "");
    } else {
        causes.one_of(&spec["preemptionPolicy"], at.field("preemptionPolicy"), &["PreemptLowerPriority", "Never"]);
    }
    if has(spec, "overhead") {
        resources::check_overhead(&spec["overhead"], at.field("overhead"), causes);
    }
    systems::check(pod, causes);
}

/// Checks `readinessGates` and `schedulingGates`.
fn gates(spec: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    for (index, gate) in items(spec, "readinessGates").iter().enumerate() {
        let name = text(gate, "conditionType");
        causes.faults(at.field("readinessGates").item(index).field("conditionType"), name, qualified_name(name));
    }
    let mut seen = BTreeSet::new();
    for (index, gate) in items(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        let at = at.field("schedulingGates");
        causes.faults(at.item(index), name, qualified_name(name));
        if !seen.insert(name) {
            causes.duplicate(at.item(index), name);
        }
    }
}

fn check_pull_policy(value: &Value, key: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    causes.one_of(&value[key], at.field(key), &["Always", "IfNotPresent", "Never"]);
}

/// Requires that the text in the field `key`, if present, is a DNS label.
fn check_label(spec: &Value, key: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    let name = text(spec, key);
    if !name.is_empty() {
        causes.faults(at.field(key), name, label(name));
    }
}

#[cfg(test)]
mod tests;
