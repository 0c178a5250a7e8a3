//! `ReplicaSet`: keeps a number of equal pods running.

use serde_json::{Value, json};

use super::print::Printer;
use super::{Causes, Kind, pod_spec, workload};
use crate::fields::set;

pub(super) const REPLICA_SET: Kind = Kind {
    short_names: &["rs"],
    categories: &["all"],
    about: "Keeps a number of equal pods running.",
    status: true,
    scale: true,
    messages: &[
        "ReplicaSet 1:metadata:ObjectMeta 2:spec:ReplicaSetSpec 3:status:ReplicaSetStatus",
        "ReplicaSetSpec 1:replicas:i? 2:selector:LabelSelector 3:template:PodTemplateSpec 4:minReadySeconds:i",
        "ReplicaSetStatus 1:replicas:i! 2:fullyLabeledReplicas:i 3:observedGeneration:i 4:readyReplicas:i \
         5:availableReplicas:i 6:conditions:[ReplicaSetCondition] 7:terminatingReplicas:i?",
        "ReplicaSetCondition 1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s",
    ],
    published_merges: &[("ReplicaSetStatus", "conditions", "merge", "type")],
    selectable: &[("status.replicas", &[])],
    selectable_unset: &[("status.replicas", "0")],
    printer: Printer { columns: workload::REPLICAS, cells: |row| workload::replicas(row, row.template()) },
    defaults,
    new: |value| value["status"] = json!({"replicas": 0}),
    check,
    fixed: &["/spec/selector"],
    ..Kind::namespaced("apps", &["v1"], "replicasets", "ReplicaSet")
};

fn check(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    workload::check_counts(spec, &["replicas", "minReadySeconds"], causes);
    // A real server's message names deployments here.
    workload::check_selector(spec, "deployment", causes);
    workload::check_replicated(spec, causes);
}

pub(super) fn defaults(value: &mut Value) {
    set(value, &["spec"], "replicas", json!(1));
    pod_spec::fill_template(value, "/spec/template");
}
