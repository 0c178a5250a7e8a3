//! `PodDisruptionBudget`: how many pods may be missing when somebody takes them away on purpose.

use serde_json::{Value, json};

use super::causes::at_least;
use super::print::{Printer, amount};
use super::{Causes, Kind};
use crate::fields::set;
use crate::status::Cause;

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
    let spec = &value["spec"];
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        causes.push(Cause::invalid("spec", &spec.to_string(), "minAvailable and maxUnavailable cannot be both set"));
    }
    for key in ["minAvailable", "maxUnavailable"] {
        let field = format!("spec.{key}");
        at_least(value, &format!("/spec/{key}"), &field, 0, causes);
        let Some(text) = spec[key].as_str() else { continue };
        let share = text.strip_suffix('%').and_then(|number| number.parse::<u32>().ok());
        if share.is_none() {
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                       regex used for validation is '[0-9]+%')";
            causes.push(Cause::invalid(&field, &format!("\"{text}\""), why));
        } else if share > Some(100) {
            causes.push(Cause::invalid(&field, &format!("\"{text}\""), "must not be greater than 100%"));
        }
    }
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
