//! `PriorityClass`: a name for a priority of pods.

use serde_json::{Value, json};

use super::print::Cells;
use super::{Causes, Kind, Meaning};
use crate::fields::{self, set};
use crate::status::Cause;

pub(super) const PRIORITY_CLASS: Kind = Kind {
    about: "A name for how important pods are.",
    cells: CELLS,
    defaults: |value| set(value, &[], "preemptionPolicy", json!("PreemptLowerPriority")),
    check,
    forbidden: &[("/value", "may not be changed in an update.")],
    fixed: &["/preemptionPolicy"],
    meaning: Meaning::PriorityClass,
    ..Kind::of("priorityclasses.scheduling.k8s.io")
};

/// The highest priority that users may define; higher priorities are reserved for the system.
const PRIORITY_MAX: i64 = 1_000_000_000;

fn check(value: &Value, causes: &mut Causes) {
    let system = fields::meta(value, "name").starts_with("system-");
    if value["value"].as_i64().unwrap_or(0) > PRIORITY_MAX && !system {
        let why = format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
        causes.push(Cause::forbidden("value", &why));
    }
}

const CELLS: Cells = |row| {
    let policy = row.text_or("/preemptionPolicy", "");
    vec![row.name(), row.number("/value").into(), row.flag("/globalDefault"), row.age(), policy]
};
