//! `PodDisruptionBudget`: limits the number of pods that evictions may remove at the same time.

use serde_json::{Value, json};

use super::causes::Refuse;
use super::print::{Printer, amount};
use super::{Causes, Kind, selectors, workload};
use crate::fields::set;

pub(super) const POD_DISRUPTION_BUDGET: Kind = Kind {
    short_names: &["pdb"],
    about: "How many pods may be missing when somebody takes them away on purpose.",
    status: true,
    messages: &[
        "PodDisruptionBudget 1:metadata:ObjectMeta 2:spec:PodDisruptionBudgetSpec 3:status:PodDisruptionBudgetStatus",
        "PodDisruptionBudgetSpec 1:minAvailable:O? 2:selector:LabelSelector 3:maxUnavailable:O? \
         4:unhealthyPodEvictionPolicy:s?",
        "PodDisruptionBudgetStatus 1:observedGeneration:i 2:disruptedPods:{T} 3:disruptionsAllowed:i! \
         4:currentHealthy:i! 5:desiredHealthy:i! 6:expectedPods:i! 7:conditions:[MetaCondition]",
    ],
    printer: PRINTER,
    new,
    check,
    ..Kind::namespaced("policy", &["v1"], "poddisruptionbudgets", "PodDisruptionBudget")
};

fn new(value: &mut Value) {
    for key in ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"] {
        set(value, &["status"], key, json!(0));
    }
}

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

const PRINTER: Printer = Printer {
    columns: "Name, Min Available, Max Unavailable, Allowed Disruptions:integer, Age",
    cells: |row| {
        vec![
            row.name(),
            amount(row.at("/spec/minAvailable"), "N/A"),
            amount(row.at("/spec/maxUnavailable"), "N/A"),
            row.number("/status/disruptionsAllowed").into(),
            row.age(),
        ]
    },
};
