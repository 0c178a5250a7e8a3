//! `Deployment`: keeps a number of equal pods running and replaces them step by step.

use serde_json::{Value, json};

use super::causes::Refuse;
use super::print::Cells;
use super::{Causes, Generation, Kind, pod_spec, workload};
use crate::fields::set;

pub(super) const DEPLOYMENT: Kind = Kind {
    about: "Keeps a number of equal pods running and replaces them step by step when their template changes.",
    cells: CELLS,
    defaults,
    check,
    fixed: &["/spec/selector"],
    // Annotations are copied to its ReplicaSets, so they count as well.
    generation: Generation::SpecAndAnnotations,
    status_metadata: &["annotations", "finalizers"],
    ..Kind::of("deployments.apps")
};

fn defaults(value: &mut Value) {
    set(value, &["spec"], "replicas", json!(1));
    set(value, &["spec"], "revisionHistoryLimit", json!(10));
    set(value, &["spec"], "progressDeadlineSeconds", json!(600));
    set(value, &["spec", "strategy"], "type", json!("RollingUpdate"));
    if value.pointer("/spec/strategy/type").is_some_and(|kind| kind == "RollingUpdate") {
        for key in ["maxSurge", "maxUnavailable"] {
            set(value, &["spec", "strategy", "rollingUpdate"], key, json!("25%"));
        }
    }
    pod_spec::fill_template(value, "/spec/template");
}

fn check(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], workload::SPEC);
    workload::check_counts(spec, &["replicas"], causes);
    workload::check_selector(spec, "deployment", causes);
    workload::check_replicated(spec, causes);
    strategy(&spec["strategy"], causes);
    workload::check_counts(spec, &["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"], causes);
    let (deadline, ready) = (spec["progressDeadlineSeconds"].as_i64(), spec["minReadySeconds"].as_i64().unwrap_or(0));
    if let Some(deadline) = deadline.filter(|deadline| *deadline <= ready) {
        causes.invalid(at.field("progressDeadlineSeconds"), &deadline, "must be greater than minReadySeconds");
    }
}

fn strategy(strategy: &Value, causes: &mut Causes) {
    let at = workload::SPEC.field("strategy");
    let rolling = at.field("rollingUpdate");
    let steps = &strategy["rollingUpdate"];
    match strategy["type"].as_str().unwrap_or_default() {
        "Recreate" if steps.is_object() => {
            causes.forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let (fewer, more) = (&steps["maxUnavailable"], &steps["maxSurge"]);
            workload::check_share(fewer, rolling.field("maxUnavailable"), causes);
            workload::check_share(more, rolling.field("maxSurge"), causes);
            if workload::is_nothing(fewer) && workload::is_nothing(more) {
                let why = "may not be 0 when `maxSurge` is 0";
                causes.invalid(rolling.field("maxUnavailable"), fewer, why);
            }
            workload::check_at_most_all(fewer, rolling.field("maxUnavailable"), causes);
        }
        _ => causes.unsupported(at, &strategy.to_string(), &["Recreate", "RollingUpdate"]),
    }
}

const CELLS: Cells = |row| {
    let mut cells = vec![
        row.name(),
        workload::ready(row),
        row.number("/status/updatedReplicas").into(),
        row.number("/status/availableReplicas").into(),
        row.age(),
    ];
    cells.extend(row.template());
    cells
};
