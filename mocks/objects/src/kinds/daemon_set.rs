//! `DaemonSet`: keeps one pod on every selected node.

use serde_json::{Value, json};

use super::causes::Refuse;
use super::print::{Cells, labels};
use super::selectors::{self, Selected};
use super::{Causes, Kind, pod_spec, workload};
use crate::fields::{self, set};

pub(super) const DAEMON_SET: Kind = Kind {
    about: "Keeps one pod on every node that is selected.",
    cells: CELLS,
    defaults,
    new: |value| {
        value["status"] = json!({
            "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
        });
    },
    check,
    fixed: &["/spec/selector"],
    count: count_template,
    ..Kind::of("daemonsets.apps")
};

/// The annotation with the generation of a `DaemonSet`'s template; the annotation replaced a field that was removed.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn defaults(value: &mut Value) {
    set(value, &["spec"], "revisionHistoryLimit", json!(10));
    set(value, &["spec", "updateStrategy"], "type", json!("RollingUpdate"));
    if value["spec"]["updateStrategy"]["type"] == "RollingUpdate" {
        set(value, &["spec", "updateStrategy", "rollingUpdate"], "maxSurge", json!(0));
        set(value, &["spec", "updateStrategy", "rollingUpdate"], "maxUnavailable", json!(1));
    }
    pod_spec::fill_template(value, "/spec/template");
    set(value, &["metadata", "annotations"], TEMPLATE_GENERATION, json!("1"));
}

fn check(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], workload::SPEC);
    let (selector, template) = (&spec["selector"], &spec["template"]);
    selectors::check(selector, at.field("selector"), causes);
    if selectors::selects(selector, &template["metadata"]["labels"]) == Selected::Others {
        workload::others(template, causes);
    }
    if selector.as_object().is_some_and(selectors::is_empty) {
        causes.invalid(at.field("selector"), selector, "empty selector is invalid for daemonset");
    }
    pod_spec::check_template(template, at.field("template"), causes);
    workload::check_lasting(template, "DaemonSet", causes);
    workload::check_counts(spec, &["minReadySeconds"], causes);
    strategy(&spec["updateStrategy"], causes);
    workload::check_counts(spec, &["revisionHistoryLimit"], causes);
}

fn strategy(strategy: &Value, causes: &mut Causes) {
    let at = workload::SPEC.field("updateStrategy");
    match strategy["type"].as_str().unwrap_or_default() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let at = at.field("rollingUpdate");
            let (fewer, more) = (&strategy["rollingUpdate"]["maxUnavailable"], &strategy["rollingUpdate"]["maxSurge"]);
            for check in [workload::check_share, workload::check_at_most_all] {
                check(fewer, at.field("maxUnavailable"), causes);
                check(more, at.field("maxSurge"), causes);
            }
            match (workload::is_nothing(fewer), workload::is_nothing(more)) {
                (false, false) => {
                    causes.invalid(at.field("maxSurge"), more, "may not be set when maxUnavailable is non-zero");
                }
                (true, true) => causes.required(at.field("maxUnavailable"), "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => causes.unsupported(at, &strategy.to_string(), &["RollingUpdate", "OnDelete"]),
    }
}

/// Increments the generation of a `DaemonSet`'s template if an update changes it.
fn count_template(value: &mut Value, old: &Value) {
    let before = old["metadata"]["annotations"][TEMPLATE_GENERATION].as_str().and_then(|text| text.parse::<i64>().ok());
    let changed = value.pointer("/spec/template") != old.pointer("/spec/template");
    let now = (before.unwrap_or(1) + i64::from(changed)).to_string();
    let annotations = fields::metadata(value).entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), Value::from(now));
    }
}

const CELLS: Cells = |row| {
    let counted = ["desired", "current"].map(|which| row.number(&format!("/status/{which}NumberScheduled")));
    let mut cells = vec![row.name(), counted[0].into(), counted[1].into()];
    cells.push(row.number("/status/numberReady").into());
    cells.push(row.number("/status/updatedNumberScheduled").into());
    cells.push(row.number("/status/numberAvailable").into());
    cells.extend([labels(row.at("/spec/template/spec/nodeSelector")), row.age()]);
    cells.extend(row.template());
    cells
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_template_counts_for_a_daemon_set() {
        let set = |image: &str, generation: &str| json!({"metadata": {"annotations": {TEMPLATE_GENERATION: generation}}, "spec": {"template": {"image": image}}});
        for (image, expected) in [("a", "3"), ("b", "4")] {
            let mut new = set(image, "7");
            count_template(&mut new, &set("a", "3"));
            count_template(&mut new, &set("a", "3"));
            assert_eq!(new["metadata"]["annotations"][TEMPLATE_GENERATION], expected, "{image}");
        }
    }
}
