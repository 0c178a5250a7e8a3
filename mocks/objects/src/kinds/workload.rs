//! The checks of kinds that keep pods of a template running, such as `Deployment` and `StatefulSet`.

use serde_json::Value;

use super::at::At;
use super::causes::Refuse;
use super::print::Row;
use super::selectors::{self, Selected};
use super::{Causes, pod_spec};

pub(super) const SPEC: At<'static> = At::from("spec");

/// Requires that the selector of a workload has at least one condition.
pub(super) fn check_selector(spec: &Value, kind: &str, causes: &mut Causes) {
    let (selector, at) = (&spec["selector"], SPEC.field("selector"));
    match selector.as_object() {
        None => causes.required(at, ""),
        Some(fields) => {
            selectors::check(selector, at, causes);
            if selectors::is_empty(fields) {
                causes.invalid(at, selector, &format!("empty selector is invalid for {kind}"));
            }
        }
    }
}

/// Checks the template of a kind that keeps equal pods.
pub(super) fn check_replicated(spec: &Value, causes: &mut Causes) {
    let template = &spec["template"];
    match selectors::selects(&spec["selector"], &template["metadata"]["labels"]) {
        Selected::Broken => return causes.invalid(SPEC.field("selector"), &spec["selector"], "invalid label selector"),
        Selected::Others => others(template, causes),
        Selected::All | Selected::These => {}
    }
    pod_spec::check_template(template, SPEC.field("template"), causes);
    check_lasting(template, "ReplicaSet", causes);
}

/// Refuses a template whose labels the selector does not select.
pub(super) fn others(template: &Value, causes: &mut Causes) {
    let at = SPEC.field("template");
    let at = at.field("metadata");
    let why = "`selector` does not match template `labels`";
    causes.invalid(at.field("labels"), &template["metadata"]["labels"], why);
}

/// Requires that pods always restart and have no deadline, because pods of these kinds must never end by themselves.
pub(super) fn check_lasting(template: &Value, kind: &str, causes: &mut Causes) {
    let at = SPEC.field("template");
    let at = at.field("spec");
    let policy = template["spec"]["restartPolicy"].as_str().unwrap_or("Always");
    if policy != "Always" {
        causes.unsupported(at.field("restartPolicy"), policy, &["Always"]);
    }
    if !template["spec"]["activeDeadlineSeconds"].is_null() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        causes.forbidden(at.field("activeDeadlineSeconds"), &why);
    }
}

/// Refuses negative numbers in the fields `keys` of the specification.
pub(super) fn check_counts(spec: &Value, keys: &[&str], causes: &mut Causes) {
    for key in keys {
        causes.not_negative(SPEC.field(key), spec[*key].as_i64());
    }
}

/// Checks a number or a percentage of pods.
pub(super) fn check_share(share: &Value, at: At<'_>, causes: &mut Causes) {
    match share.as_str() {
        None => causes.not_negative(at, share.as_i64()),
        Some(text) if percent(share).is_none() => {
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex \
                       used for validation is '[0-9]+%')";
            causes.invalid_text(at, text, why);
        }
        Some(_) => {}
    }
}

/// Refuses a percentage above 100%.
pub(super) fn check_at_most_all(share: &Value, at: At<'_>, causes: &mut Causes) {
    if percent(share).is_some_and(|percent| percent > 100) {
        causes.invalid(at, share, "must not be greater than 100%");
    }
}

/// Whether a number or a percentage is zero; an invalid value counts as zero.
pub(super) fn is_nothing(share: &Value) -> bool {
    percent(share).or(share.as_u64()).unwrap_or(0) == 0 && share.as_i64().unwrap_or(0) == 0
}

fn percent(share: &Value) -> Option<u64> {
    let digits = share.as_str()?.strip_suffix('%')?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { Some(digits.parse().unwrap_or(u64::MAX)) } else { None }
}

pub(super) fn replicas(row: &Row<'_>, template: [Value; 3]) -> Vec<Value> {
    let counts = ["/spec/replicas", "/status/replicas", "/status/readyReplicas"].map(|path| row.number(path));
    let mut cells = vec![row.name()];
    cells.extend(counts.map(Value::from));
    cells.push(row.age());
    cells.extend(template);
    cells
}

pub(super) fn ready(row: &Row<'_>) -> Value {
    Value::from(format!("{}/{}", row.number("/status/readyReplicas"), row.number("/spec/replicas")))
}
