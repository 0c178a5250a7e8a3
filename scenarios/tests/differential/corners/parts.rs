//! Sequences of requests with fields that only a subresource can write, and with the status of a new object.

use serde_json::{Value, json};

use crate::sequence::{Sequence, Step};

pub fn all() -> Vec<Sequence> {
    let one = |name: &str, steps: Vec<Step>| Sequence { name: name.to_owned(), steps };
    vec![one("containers to look into a pod", ephemeral()), one("new objects that have a status", with_status())]
}

fn ephemeral() -> Vec<Step> {
    let pods = "/api/v1/namespaces/{ns}/pods";
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let looking = |name: &str| json!({"spec": {"ephemeralContainers": [{"name": name, "image": "busybox"}]}});
    let mut debug = looking("debug");
    debug["metadata"] = json!({"labels": {"not": "here"}});
    let door = format!("{pods}/p/ephemeralcontainers");
    let absent = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "absent"}});
    vec![
        Step::post(pods, json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})),
        Step::patch(&door[..], "strategic-merge-patch", debug),
        Step::get(&door[..]),
        Step::patch(&door[..], "merge-patch", json!({"spec": {"ephemeralContainers": null}})),
        Step::patch(format!("{pods}/p"), "strategic-merge-patch", looking("e")),
        Step::put(format!("{pods}/absent/ephemeralcontainers"), absent),
    ]
}

fn with_status() -> Vec<Step> {
    let status = json!({"capacity": {"cpu": "4"}, "phase": "Running"});
    let object = |kind: &str, spec: Value| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "{ns}"}, "spec": spec, "status": status});
    vec![
        Step::post("/api/v1/nodes", object("Node", json!({}))),
        Step::post("/api/v1/namespaces/{ns}/pods", object("Pod", json!({"containers": [{"name": "c", "image": "i"}]}))),
    ]
}
