//! `ReplicaSet`: keeps a number of equal pods running.

use serde_json::{Value, json};

use super::{Causes, Kind, pod_spec, workload};
use crate::fields::set;

pub(super) const REPLICA_SET: Kind = Kind {
    about: "Keeps a number of equal pods running.",
    selectable_unset: &[("status.replicas", "0")],
    cells: |row| workload::replicas(row, row.template()),
    defaults,
    check,
    fixed: &["/spec/selector"],
    ..Kind::of("replicasets.apps")
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
