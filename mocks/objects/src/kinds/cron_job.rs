//! `CronJob`: starts a `Job` at each time of a schedule.

use serde_json::{Value, json};

use super::at::At;
use super::causes::{Refuse, at_least, unsupported};
use super::print::{Cells, NONE, UNSET, selector};
use super::{Causes, Kind, pod_spec};
use crate::fields::{meta, set};
use crate::status::Cause;

pub(super) const CRON_JOB: Kind = Kind {
    about: "Starts a Job again and again by a schedule.",
    cells: CELLS,
    defaults,
    check,
    check_new,
    ..Kind::of("cronjobs.batch")
};

const NAME_MAX_BYTES: usize = 52;

fn defaults(value: &mut Value) {
    set(value, &["spec"], "concurrencyPolicy", json!("Allow"));
    set(value, &["spec"], "suspend", json!(false));
    set(value, &["spec"], "successfulJobsHistoryLimit", json!(3));
    set(value, &["spec"], "failedJobsHistoryLimit", json!(1));
    set(value, &["spec", "jobTemplate"], "metadata", json!({}));
    super::job::fill_policy(value, "/spec/jobTemplate/spec");
    pod_spec::fill_template(value, "/spec/jobTemplate/spec/template");
}

fn check(value: &Value, causes: &mut Causes) {
    let schedule = value.pointer("/spec/schedule").and_then(Value::as_str).unwrap_or_default();
    if schedule.is_empty() {
        causes.push(Cause::required("spec.schedule", ""));
    } else if let Some(why) = not_a_schedule(schedule) {
        causes.push(Cause::invalid("spec.schedule", &format!("\"{schedule}\""), &why));
    }
    if let Some(zone) = value.pointer("/spec/timeZone").and_then(Value::as_str) {
        time_zone(zone, causes);
    }
    let policy = value.pointer("/spec/concurrencyPolicy").and_then(Value::as_str).unwrap_or("Allow");
    if !matches!(policy, "Allow" | "Forbid" | "Replace") {
        causes.push(unsupported("spec.concurrencyPolicy", policy, "\"Allow\", \"Forbid\", \"Replace\""));
    }
    for key in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        at_least(value, &format!("/spec/{key}"), &format!("spec.{key}"), 0, causes);
    }
    let at = At::from("spec.jobTemplate.spec");
    let spec = &value["spec"]["jobTemplate"]["spec"];
    super::job::check_spec(spec, at, causes);
    if !spec["selector"].is_null() {
        causes.invalid(at.field("selector"), &spec["selector"], "`selector` will be auto-generated");
    }
    if spec["manualSelector"] == Value::Bool(true) {
        causes.unsupported(at.field("manualSelector"), "true", &["nil", "false"]);
    }
}

/// Refuses a name that is too long: the name of each job is the cron job's name with a time appended.
fn check_new(value: &Value, causes: &mut Causes) {
    let name = meta(value, "name");
    if name.len() > NAME_MAX_BYTES {
        let at = At::from("metadata");
        causes.invalid_text(at.field("name"), name, "must be no more than 52 characters");
    }
}

/// Checks that a time zone's name is well-formed, but not whether the zone exists.
fn time_zone(zone: &str, causes: &mut Causes) {
    let at = At::from("spec.timeZone");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    let part = |part: &str| {
        (1..=14).contains(&part.len())
            && !part.starts_with('-')
            && ![".", ".."].contains(&part)
            && part.bytes().all(plain)
    };
    if zone.is_empty() {
        causes.invalid_text(at, zone, "timeZone must be nil or non-empty string");
    } else if !zone.split('/').all(part) {
        causes.invalid_text(at, zone, &format!("unknown time zone {zone}"));
    } else if zone.eq_ignore_ascii_case("Local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        causes.invalid_text(at, zone, why);
    }
}

/// Why a text is neither a schedule of five fields nor a keyword for a schedule. In a schedule of five fields, only the
/// characters are checked.
fn not_a_schedule(text: &str) -> Option<String> {
    if let Some(word) = text.strip_prefix('@') {
        let known = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"];
        let every =
            word.strip_prefix("every ").is_some_and(|span| span.starts_with(|first: char| first.is_ascii_digit()));
        return (!known.contains(&word) && !every).then(|| format!("unrecognized descriptor: {text}"));
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != 5 {
        return Some(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    let plain = |field: &&&str| !field.chars().all(|c| c.is_ascii_alphanumeric() || "*/,-?".contains(c));
    fields.iter().find(plain).map(|field| format!("failed to parse int from {field}"))
}

const CELLS: Cells = |row| {
    let spec = "/spec/jobTemplate/spec/template/spec";
    let suspended = match row.at("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    };
    let last = "/status/lastScheduleTime";
    vec![
        row.name(),
        row.text("/spec/schedule").into(),
        row.text_or("/spec/timeZone", NONE),
        suspended.into(),
        row.items("/status/active").len().into(),
        if row.text(last).is_empty() { NONE.into() } else { row.since(last).into() },
        row.age(),
        row.containers(spec, "name"),
        row.containers(spec, "image"),
        selector(row.at("/spec/jobTemplate/spec/selector")),
    ]
};
