//! `ReplicationController`: the kind that `ReplicaSet` replaced.

use serde_json::{Map, Value};

use super::causes::Refuse;
use super::print::{Cells, labels};
use super::{Causes, Kind, pod_spec, workload};
use crate::fields::set;

pub(super) const REPLICATION_CONTROLLER: Kind = Kind {
    about: "The older form of a ReplicaSet.",
    selectable_unset: &[("status.replicas", "0")],
    cells: CELLS,
    defaults,
    check,
    orphans: true,
    ..Kind::of("replicationcontrollers")
};

fn defaults(value: &mut Value) {
    let labels = value.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels @ Value::Object(_)) = labels {
        set(value, &["spec"], "selector", labels.clone());
        set(value, &["metadata"], "labels", labels);
    }
    super::replica_set::defaults(value);
}

/// Checks a replication controller, whose selector is a plain map of labels.
fn check(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], workload::SPEC);
    workload::check_counts(spec, &["minReadySeconds"], causes);
    let selector = spec["selector"].as_object();
    if selector.is_none_or(Map::is_empty) {
        causes.required(at.field("selector"), "");
    }
    workload::check_counts(spec, &["replicas"], causes);
    let template = &spec["template"];
    if template.is_null() {
        return causes.required(at.field("template"), "");
    }
    let labels = &template["metadata"]["labels"];
    if selector.into_iter().flatten().any(|(key, text)| labels.get(key) != Some(text)) {
        workload::others(template, causes);
    }
    pod_spec::check_template(template, at.field("template"), causes);
    workload::check_lasting(template, "ReplicationController", causes);
}

const CELLS: Cells = |row| {
    let [containers, images, _] = row.template();
    workload::replicas(row, [containers, images, labels(row.at("/spec/selector"))])
};
