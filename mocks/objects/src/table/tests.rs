use serde_json::{Value, json};

use super::{cells, columns};
use crate::catalogue::Catalogue;

/// Returns a function that maps the name of a column to the cell of the object `value`.
fn shown(full_name: &str, value: &Value) -> impl Fn(&str) -> Value + use<> {
    let catalogue = Catalogue::builtin();
    let resource = catalogue.by_full_name(full_name).unwrap();
    let names: Vec<String> =
        columns(resource, &[]).iter().map(|column| column["name"].as_str().unwrap().to_owned()).collect();
    let cells = cells(value, resource, &[]);
    // A real server has a cell more for these than columns.
    let more = usize::from(full_name == "ipaddresses.networking.k8s.io");
    assert_eq!(names.len() + more, cells.len(), "{full_name}");
    move |name| cells[names.iter().position(|known| known == name).unwrap()].clone()
}

fn pod(status: &Value) -> impl Fn(&str) -> Value + use<> {
    let spec = json!({
        "initContainers": [{"name": "first"}, {"name": "proxy", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}, {"name": "b"}],
    });
    shown("pods", &json!({"metadata": {"name": "p"}, "spec": spec, "status": status}))
}

#[test]
fn every_kind_has_a_cell_for_each_column() {
    for resource in Catalogue::builtin().iter().filter(|resource| !resource.virtual_only) {
        let _ = shown(&resource.full_name, &json!({"metadata": {"name": "n"}}));
    }
}

#[test]
fn a_pod_says_what_its_containers_do() {
    let done = json!({"name": "first", "state": {"terminated": {"exitCode": 0}}});
    let proxy = json!({"name": "proxy", "started": true, "ready": true, "restartCount": 1, "state": {"running": {}}});
    let running = |ready: bool| json!({"ready": ready, "restartCount": 2, "state": {"running": {}}});
    let waiting = json!({"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    for (status, expected, ready, restarts) in [
        (json!({"phase": "Pending"}), "Pending", "0/3", "0"),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "first", "state": {"running": {}}}]}),
            "Init:0/2",
            "0/3",
            "0",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "first", "restartCount": 4, "state": {"terminated": {"exitCode": 3}}}]}),
            "Init:ExitCode:3",
            "0/3",
            "4",
        ),
        (
            json!({"phase": "Running", "initContainerStatuses": [done, proxy], "containerStatuses": [running(true), running(false)]}),
            "Running",
            "2/3",
            "5",
        ),
        (json!({"phase": "Running", "containerStatuses": [waiting, running(true)]}), "CrashLoopBackOff", "1/3", "5"),
        (json!({"phase": "Failed", "reason": "Evicted"}), "Evicted", "0/3", "0"),
    ] {
        let cell = pod(&status);
        assert_eq!(
            (cell("Status"), cell("Ready"), cell("Restarts")),
            (expected.into(), ready.into(), restarts.into()),
            "{status}"
        );
    }
}

#[test]
fn a_pod_that_goes_is_terminating_until_it_has_ended() {
    let going = |phase: &str| {
        let metadata = json!({"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        shown("pods", &json!({"metadata": metadata, "spec": {}, "status": {"phase": phase}}))("Status")
    };
    assert_eq!((going("Running"), going("Succeeded")), ("Terminating".into(), "Succeeded".into()));
}

#[test]
fn lists_are_cut_and_counted() {
    let addresses: Vec<Value> = (1..=5).map(|n| json!({"ip": format!("10.0.0.{n}")})).collect();
    let cell = shown("endpoints", &json!({"subsets": [{"addresses": addresses, "ports": [{"port": 80}]}]}));
    assert_eq!(cell("Endpoints"), "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 2 more...");
    let host = json!([{"hostname": "a-very-long-name.elb.example.com"}]);
    let cell =
        shown("services", &json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": host}}}));
    assert_eq!(cell("External-IP"), "a-very-long-n...");
}

#[test]
fn selectors_are_written_as_people_write_them() {
    let selector = json!({"matchLabels": {"b": "c"}, "matchExpressions": [
        {"key": "z", "operator": "DoesNotExist"}, {"key": "a", "operator": "In", "values": ["y", "x"]}]});
    let cell = shown("networkpolicies.networking.k8s.io", &json!({"spec": {"podSelector": selector}}));
    assert_eq!(cell("Pod-Selector"), "a in (x,y),b=c,!z");
}

#[test]
fn an_autoscaler_shows_targets_beside_what_was_measured() {
    let metric = |name: &str, target: Value| json!({"type": "Resource", "resource": {"name": name, "target": target}});
    let spec = json!({"metrics": [
        metric("cpu", json!({"type": "Utilization", "averageUtilization": 50})),
        metric("memory", json!({"type": "AverageValue", "averageValue": "1Gi"})),
        metric("storage", json!({})),
    ], "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 4});
    let current = json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 12}}}]);
    let cell =
        shown("horizontalpodautoscalers.autoscaling", &json!({"spec": spec, "status": {"currentMetrics": current}}));
    assert_eq!(cell("Targets"), "cpu: 12%/50%, memory: <unknown>/1Gi + 1 more...");
    assert_eq!((cell("Reference"), cell("MinPods")), ("Deployment/d".into(), "<unset>".into()));
}

#[test]
fn a_finished_job_says_how_long_it_took() {
    let finished = json!({"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:30Z",
                          "succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]});
    let cell = shown("jobs.batch", &json!({"spec": {"completions": 2}, "status": finished}));
    assert_eq!(["Status", "Completions", "Duration"].map(&cell), ["Complete", "1/2", "90s"].map(Value::from));
}
