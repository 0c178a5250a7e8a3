//! The checks of a `Job`, or of the job template in a `CronJob` ("Kubernetes API reference", Job v1 batch).

use mock_cel::formats::{label, subdomain};
use serde_json::Value;

use super::super::at::At;
use super::super::causes::Refuse;
use super::super::pod_spec;
use super::super::selectors::{self, Selected};
use super::super::workload::SPEC;
use super::{NAME_OF_JOB, OF_JOB, policies};
use crate::fields::meta;
use crate::status::Cause;

/// Maximum number of completions, of parallel pods, and of failed indexes of an indexed job.
const INDEXES_MAX: i64 = 100_000;
/// Maximum number of failed indexes of a job that has more than [`INDEXES_MAX`] completions and counts failures by
/// index.
const INDEXES_OF_MANY_MAX: i64 = 10_000;
const MANAGER_MAX_BYTES: usize = 63;

pub(super) fn check(value: &Value, causes: &mut Vec<Cause>) {
    let spec = &value["spec"];
    check_spec(spec, SPEC, causes);
    let (selector, labels) = (&spec["selector"], &spec["template"]["metadata"]["labels"]);
    if selector.is_null() {
        causes.required(SPEC.field("selector"), "");
    }
    selectors::check(selector, SPEC.field("selector"), causes);
    if selectors::selects(selector, labels) == Selected::Others {
        super::super::workload::others(&spec["template"], causes);
    }
}

/// Additional checks of a new job. Clients must not set the labels that identify a job's pods, and the job's name must
/// be so short that the names of its pods are valid.
pub(super) fn check_new(value: &Value, causes: &mut Vec<Cause>) {
    let spec = &value["spec"];
    let (name, uid) = (meta(value, "name"), meta(value, "uid"));
    if spec["manualSelector"] != Value::Bool(true) && !spec["selector"].is_null() {
        let at = SPEC.field("template");
        let at = at.field("metadata");
        let labels = at.field("labels");
        let own = &spec["template"]["metadata"]["labels"];
        let mut wanted = serde_json::Map::new();
        for (key, value) in OF_JOB.iter().map(|key| (key, uid)).chain(NAME_OF_JOB.iter().map(|key| (key, name))) {
            wanted.insert((*key).to_owned(), Value::from(value));
            if own[*key] != value {
                causes.invalid(labels.key(key), own, &format!("must be '{value}'"));
            }
        }
        if selectors::selects(&spec["selector"], &Value::from(wanted)) == Selected::Others {
            causes.invalid(SPEC.field("selector"), &spec["selector"], "`selector` not auto-generated");
        }
    }
    let completions = spec["completions"].as_i64().filter(|count| *count > 0);
    if let Some(count) = completions.filter(|_| spec["completionMode"] == "Indexed") {
        let last = format!("{name}-{}", count - 1);
        if !label(&last).is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {last}");
            let at = At::from("metadata");
            causes.invalid_text(at.field("name"), name, &why);
        }
    }
}

/// Checks the specification of a job without its selector.
pub(in crate::kinds) fn check_spec(spec: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let number = |key: &str| spec[key].as_i64();
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        causes.not_negative(at.field(key), number(key));
    }
    if number("maxFailedIndexes").is_some() && number("backoffLimitPerIndex").is_none() {
        causes.required(at.field("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    if let Some(manager) = spec["managedBy"].as_str() {
        managed(manager, at.field("managedBy"), causes);
    }
    let mode = spec["completionMode"].as_str().unwrap_or("NonIndexed");
    causes.one_of(&spec["completionMode"], at.field("completionMode"), &["NonIndexed", "Indexed"]);
    match mode {
        "Indexed" => indexed(spec, at, causes),
        "NonIndexed" => {
            for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if let Some(number) = number(key) {
                    causes.invalid(at.field(key), &number, "requires indexed completion mode");
                }
            }
        }
        _ => {}
    }
    policies::check(spec, mode == "Indexed", at, causes);
    let template = at.field("template");
    pod_spec::check_template(&spec["template"], template, causes);
    let policy = spec["template"]["spec"]["restartPolicy"].as_str().unwrap_or("Always");
    let below = template.field("spec");
    let at = below.field("restartPolicy");
    match policy {
        "Always" => causes.required(at, "valid values: \"OnFailure\", \"Never\""),
        "Never" => {}
        "OnFailure" if spec["podFailurePolicy"].is_null() => {}
        "OnFailure" => {
            causes.invalid_text(at, policy, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        other => causes.unsupported(at, other, &["OnFailure", "Never"]),
    }
}

fn indexed(spec: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let number = |key: &str| spec[key].as_i64();
    let completions = number("completions");
    if completions.is_none() {
        causes.required(at.field("completions"), "when completion mode is Indexed");
    }
    let mut at_most = |key: &str, most: i64, when: &str| {
        if let Some(number) = number(key).filter(|number| *number > most) {
            causes.invalid(at.field(key), &number, &format!("must be less than or equal to {most}{when}"));
        }
    };
    at_most("parallelism", INDEXES_MAX, " when completion mode is Indexed");
    if let Some(completions) = completions {
        at_most("maxFailedIndexes", completions, "");
    }
    at_most("maxFailedIndexes", INDEXES_MAX, "");
    if completions.is_some_and(|count| count > INDEXES_MAX) && number("backoffLimitPerIndex").is_some() {
        let when = " when completions are above 100000 and used with backoff limit per index";
        at_most("parallelism", INDEXES_OF_MANY_MAX, when);
        at_most("maxFailedIndexes", INDEXES_OF_MANY_MAX, when);
        if number("maxFailedIndexes").is_none() {
            causes.required(at.field("maxFailedIndexes"), "must be specified when completions is above 100000");
        }
    }
}

/// Checks the name of an external controller in `managedBy`: a domain, a slash and a path.
fn managed(manager: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    match manager.split_once('/') {
        _ if manager.is_empty() => causes.required(at, ""),
        Some((host, path)) if !host.is_empty() && !path.is_empty() => {
            causes.faults(at, host, subdomain(host));
            if !path.bytes().all(plain) {
                let why = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                causes.invalid_text(at, path, why);
            }
        }
        _ => causes.invalid_text(at, manager, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
    }
    if manager.len() > MANAGER_MAX_BYTES {
        causes.too_long(at, MANAGER_MAX_BYTES);
    }
}
