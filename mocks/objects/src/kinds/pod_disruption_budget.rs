//! `PodDisruptionBudget`: limits the number of pods that evictions may remove at the same time.

use serde_json::Value;

use super::causes::Refuse;
use super::print::{Cells, amount};
use super::{Causes, Kind, selectors, workload};

pub(super) const POD_DISRUPTION_BUDGET: Kind = Kind {
    about: "How many pods may be missing when somebody takes them away on purpose.",
    cells: CELLS,
    check,
    needs_revision: true,
    ..Kind::of("poddisruptionbudgets.policy")
};

fn check(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], workload::SPEC);
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        causes.invalid(at, spec, "minAvailable and maxUnavailable cannot be both set");
    }
    for key in ["minAvailable", "maxUnavailable"] {
        workload::check_share(&spec[key], at.field(key), causes);
        workload::check_at_most_all(&spec[key], at.field(key), causes);
    }
    selectors::check(&spec["selector"], at.field("selector"), causes);
    let known = ["AlwaysAllow", "IfHealthyBudget"];
    causes.one_of(&spec["unhealthyPodEvictionPolicy"], at.field("unhealthyPodEvictionPolicy"), &known);
}

const CELLS: Cells = |row| {
    vec![
        row.name(),
        amount(row.at("/spec/minAvailable"), "N/A"),
        amount(row.at("/spec/maxUnavailable"), "N/A"),
        row.number("/status/disruptionsAllowed").into(),
        row.age(),
    ]
};
