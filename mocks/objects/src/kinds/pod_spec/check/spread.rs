//! The checks of a pod's topology spread constraints and tolerations.

use std::collections::{BTreeMap, BTreeSet};

use mock_cel::formats::{label_value, qualified_name};
use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::super::super::selectors;
use super::{entries, has, items, text, texts};
use crate::status::Cause;

pub(super) fn check(spec: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let all = items(spec, "topologySpreadConstraints");
    for (index, (one, is_repeated)) in all.iter().zip(repeated(all)).enumerate() {
        let at = at.item(index);
        positive(one["maxSkew"].as_i64().unwrap_or(0), at.field("maxSkew"), causes);
        let (key, action) = (text(one, "topologyKey"), text(one, "whenUnsatisfiable"));
        if key.is_empty() {
            causes.required(at.field("topologyKey"), "can not be empty");
        }
        let known = ["DoNotSchedule", "ScheduleAnyway"];
        if !known.contains(&action) {
            causes.unsupported(at.field("whenUnsatisfiable"), action, &known);
        }
        if is_repeated {
            causes.duplicate(at.field("{topologyKey, whenUnsatisfiable}"), &format!("{{{key}, {action}}}"));
        }
        if let Some(domains) = one["minDomains"].as_i64() {
            positive(domains, at.field("minDomains"), causes);
            if action != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                causes.invalid(at.field("minDomains"), &domains, &why);
            }
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            causes.one_of(&one[policy], at.field(policy), &["Honor", "Ignore"]);
        }
        check_label_keys(one, at, causes);
        selectors::check(&one["labelSelector"], at.field("labelSelector"), causes);
    }
}

/// For each topology spread constraint, whether a later constraint has the same topology key and the same action.
fn repeated(all: &[Value]) -> Vec<bool> {
    let mut behind = BTreeSet::new();
    let same = all.iter().rev().map(|one| !behind.insert((text(one, "topologyKey"), text(one, "whenUnsatisfiable"))));
    let mut repeated: Vec<bool> = same.collect();
    repeated.reverse();
    repeated
}

fn positive(number: i64, at: At<'_>, causes: &mut Vec<Cause>) {
    if number <= 0 {
        causes.invalid(at, &number, "must be greater than zero");
    }
}

/// Checks `matchLabelKeys` and `mismatchLabelKeys`, which refer to labels of the pod itself.
pub(super) fn check_label_keys(term: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let selector = &term["labelSelector"];
    for list in ["matchLabelKeys", "mismatchLabelKeys"] {
        if items(term, list).is_empty() {
            continue;
        }
        if selector.is_null() {
            causes.forbidden(at.field(list), "must not be specified when labelSelector is not set");
            continue;
        }
        for (index, key) in texts(term, list).enumerate() {
            causes.faults(at.field(list).item(index), key, qualified_name(key));
        }
    }
    // The last index of each key.
    let keys: BTreeMap<&str, usize> =
        texts(term, "matchLabelKeys").enumerate().map(|(index, key)| (key, index)).collect();
    let mut selected: BTreeSet<&str> = entries(selector, "matchLabels").map(|(key, _)| key.as_str()).collect();
    for expression in items(selector, "matchExpressions") {
        let key = text(expression, "key");
        if let Some(index) = keys.get(key)
            && selected.contains(key)
        {
            causes.invalid_text(at.item(*index), key, "exists in both matchLabelKeys and labelSelector");
        }
        selected.insert(key);
    }
    let others: BTreeSet<&str> = texts(term, "mismatchLabelKeys").collect();
    for (index, key) in texts(term, "matchLabelKeys").enumerate().filter(|(_, key)| others.contains(key)) {
        let why = "exists in both matchLabelKeys and mismatchLabelKeys";
        causes.invalid_text(at.field("matchLabelKeys").item(index), key, why);
    }
}

pub(in crate::kinds) fn check_tolerations(tolerations: &[Value], at: At<'_>, causes: &mut Vec<Cause>) {
    for (index, one) in tolerations.iter().enumerate() {
        let at = at.item(index);
        let (key, operator, value) = (text(one, "key"), text(one, "operator"), text(one, "value"));
        let effect = text(one, "effect");
        if !key.is_empty() {
            causes.faults(at.field("key"), key, qualified_name(key));
        } else if operator != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes.invalid_text(at.field("operator"), operator, why);
        }
        if has(one, "tolerationSeconds") && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            causes.invalid_text(at.field("effect"), effect, why);
        }
        match operator {
            "Equal" | "" => {
                let faults = label_value(value);
                if !faults.is_empty() {
                    causes.invalid_text(at.field("operator"), value, &faults.join(";"));
                }
            }
            "Exists" if value.is_empty() => {}
            "Exists" => {
                causes.invalid_text(at.field("operator"), value, "value must be empty when `operator` is 'Exists'");
            }
            other => causes.unsupported(at.field("operator"), other, &["Equal", "Exists"]),
        }
        let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effect.is_empty() && !known.contains(&effect) {
            causes.unsupported(at.field("effect"), effect, &known);
        }
    }
}
