//! The checks of a pod's affinity to nodes and to other pods.

use mock_cel::formats::{label, label_value, qualified_name, subdomain};
use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::super::super::selectors;
use super::spread::check_label_keys;
use super::{has, items, text, texts};
use crate::status::Cause;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn check(affinity: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    nodes(&affinity["nodeAffinity"], at.field("nodeAffinity"), causes);
    for kind in ["podAffinity", "podAntiAffinity"] {
        let (pods, at) = (&affinity[kind], at.field(kind));
        let list = at.field(REQUIRED);
        for (index, term) in items(pods, REQUIRED).iter().enumerate() {
            pods_term(term, list.item(index), causes);
        }
        let list = at.field(PREFERRED);
        for (index, wish) in items(pods, PREFERRED).iter().enumerate() {
            let at = list.item(index);
            weight(wish, at, causes);
            pods_term(&wish["podAffinityTerm"], at.field("podAffinityTerm"), causes);
        }
    }
}

fn nodes(nodes: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    if has(nodes, REQUIRED) {
        node_selector(&nodes[REQUIRED], at.field(REQUIRED), causes);
    }
    let list = at.field(PREFERRED);
    for (index, wish) in items(nodes, PREFERRED).iter().enumerate() {
        let at = list.item(index);
        weight(wish, at, causes);
        // A preference that no node can meet is allowed.
        node_term(&wish["preference"], false, at.field("preference"), causes);
    }
}

/// Checks a `NodeSelector`, for pods, volumes and resource slices.
pub(in crate::kinds) fn node_selector(selector: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let list = at.field("nodeSelectorTerms");
    let terms = items(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        causes.required(list, "must have at least one node selector term");
    }
    for (index, term) in terms.iter().enumerate() {
        node_term(term, true, list.item(index), causes);
    }
}

fn weight(wish: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let weight = wish["weight"].as_i64().unwrap_or(0);
    if !(1..=100).contains(&weight) {
        causes.invalid(at.field("weight"), &weight, "must be in the range 1-100");
    }
}

fn node_term(term: &Value, check_values: bool, at: At<'_>, causes: &mut Vec<Cause>) {
    let list = at.field("matchExpressions");
    for (index, wanted) in items(term, "matchExpressions").iter().enumerate() {
        node_labels(wanted, check_values, list.item(index), causes);
    }
    let list = at.field("matchFields");
    for (index, wanted) in items(term, "matchFields").iter().enumerate() {
        node_fields(wanted, list.item(index), causes);
    }
}

fn node_labels(wanted: &Value, check_values: bool, at: At<'_>, causes: &mut Vec<Cause>) {
    let values = items(wanted, "values").len();
    match text(wanted, "operator") {
        "In" | "NotIn" if values == 0 => {
            causes.required(at.field("values"), "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if values > 0 => {
            causes.forbidden(at.field("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "Gt" | "Lt" if values != 1 => {
            causes.required(at.field("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => causes.invalid_text(at.field("operator"), other, "not a valid selector operator"),
    }
    let key = text(wanted, "key");
    causes.faults(at.field("key"), key, qualified_name(key));
    if check_values {
        for (index, value) in texts(wanted, "values").enumerate() {
            causes.faults(at.field("values").item(index), value, label_value(value));
        }
    }
}

fn node_fields(wanted: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    match text(wanted, "operator") {
        "In" | "NotIn" if items(wanted, "values").len() == 1 => {}
        "In" | "NotIn" => {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            causes.required(at.field("values"), why);
        }
        other => causes.invalid_text(at.field("operator"), other, "not a valid selector operator"),
    }
    match text(wanted, "key") {
        "metadata.name" => {
            for (index, name) in texts(wanted, "values").enumerate() {
                causes.faults(at.field("values").item(index), name, subdomain(name));
            }
        }
        other => causes.invalid_text(at.field("key"), other, "not a valid field selector key"),
    }
}

fn pods_term(term: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    for selector in ["labelSelector", "namespaceSelector"] {
        selectors::check(&term[selector], at.field(selector), causes);
    }
    for name in texts(term, "namespaces") {
        causes.faults(at.field("namespace"), name, label(name));
    }
    check_label_keys(term, at, causes);
    let key = text(term, "topologyKey");
    if key.is_empty() {
        causes.required(at.field("topologyKey"), "can not be empty");
    }
    causes.faults(at.field("topologyKey"), key, qualified_name(key));
}
