//! `ReplicationController`: the older form of a `ReplicaSet`.

use serde_json::{Map, Value, json};

use super::causes::Refuse;
use super::print::{Printer, labels};
use super::{Causes, Kind, pod_spec, workload};
use crate::fields::set;

pub(super) const REPLICATION_CONTROLLER: Kind = Kind {
    short_names: &["rc"],
    categories: &["all"],
    about: "The older form of a ReplicaSet.",
    status: true,
    scale: true,
    messages: &[
        "ReplicationController 1:metadata:ObjectMeta 2:spec:ReplicationControllerSpec \
         3:status:ReplicationControllerStatus",
        "ReplicationControllerSpec 1:replicas:i? 2:selector:{s} 3:template:PodTemplateSpec 4:minReadySeconds:i",
        "ReplicationControllerStatus 1:replicas:i! 2:fullyLabeledReplicas:i 3:observedGeneration:i 4:readyReplicas:i \
         5:availableReplicas:i 6:conditions:[ReplicationControllerCondition]",
        "ReplicationControllerCondition 1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s",
    ],
    selectable: &[("status.replicas", &[])],
    selectable_unset: &[("status.replicas", "0")],
    printer: PRINTER,
    defaults,
    new: |value| value["status"] = json!({"replicas": 0}),
    check,
    orphans: true,
    ..Kind::namespaced("", &["v1"], "replicationcontrollers", "ReplicationController")
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

const PRINTER: Printer = Printer {
    columns: workload::REPLICAS,
    cells: |row| {
        let [containers, images, _] = row.template();
        workload::replicas(row, [containers, images, labels(row.at("/spec/selector"))])
    },
};
