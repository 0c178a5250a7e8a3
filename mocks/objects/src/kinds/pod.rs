//! `Pod`: containers that run together. `pod_spec` contains the code that pods and templates share.

mod update;
mod whole;

use serde_json::{Value, json};

use super::print::{Cells, NONE, Row, age};
use super::{Causes, Ending, Kind, Meaning, SubresourceFields, pod_spec};
use crate::fields::{each, set};
use crate::status::Cause;

pub(super) const POD: Kind = Kind {
    about: "One or more containers that run together on one node and share its network address.",
    parts: &[("ephemeralcontainers", SubresourceFields { write: write_ephemeral, check: check_ephemeral })],
    selectable_unset: &[("spec.hostNetwork", "false")],
    cells: CELLS,
    defaults,
    named,
    check: pod_spec::check_pod,
    check_new: pod_spec::check_new_pod,
    check_update: update::check,
    carry_status: |pod, old| {
        if let class @ Value::String(_) = old["status"]["qosClass"].clone() {
            set(pod, &["status"], "qosClass", class);
        }
    },
    shown_when_deleted: true,
    ending: Ending::Graceful,
    meaning: Meaning::Pod,
    ..Kind::of("pods")
};

/// Fills in the defaults of a pod: the defaults that templates have too, and the defaults of pods only.
fn defaults(pod: &mut Value) {
    pod_spec::fill(pod.get_mut("spec"));
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    set(spec, &[], "enableServiceLinks", json!(true));
    // Only for a pod: in a template a negative period stays.
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
    let on_host = spec["hostNetwork"] == json!(true);
    for list in ["containers", "initContainers"] {
        each(spec, list, |container| {
            whole::requests(container);
            if on_host {
                each(container, "ports", |port| {
                    let number = port["containerPort"].clone();
                    set(port, &[], "hostPort", number);
                });
            }
        });
    }
    whole::fill(spec);
}

/// Sets the fields of a new pod that depend on its name.
fn named(pod: &mut Value) {
    let mut status = json!({"phase": "Pending", "qosClass": whole::quality(pod)});
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        let since = pod["metadata"]["creationTimestamp"].clone();
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastProbeTime": null,
            "lastTransitionTime": since, "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    pod["status"] = status;
    pod_spec::labels::write(pod);
    whole::confine(pod);
}

/// Writes the subresource `ephemeralcontainers`, through which people debug a pod.
fn write_ephemeral(pod: &mut Value, sent: &Value) {
    let given = sent.pointer("/spec/ephemeralContainers").cloned();
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    match given {
        Some(given) => spec.insert("ephemeralContainers".to_owned(), given),
        None => spec.remove("ephemeralContainers"),
    };
}

/// Refuses to change or remove existing ephemeral containers.
fn check_ephemeral(new: &Value, old: &Value, causes: &mut Causes) {
    let all = |pod: &Value| pod.pointer("/spec/ephemeralContainers").and_then(Value::as_array).cloned();
    let (now, before) = (all(new).unwrap_or_default(), all(old).unwrap_or_default());
    for container in &before {
        let name = container["name"].as_str().unwrap_or_default();
        let why = match now.iter().find(|other| other["name"] == container["name"]) {
            None => "removed",
            Some(other) if other != container => "changed",
            Some(_) => continue,
        };
        let why = format!("existing ephemeral containers \"{name}\" may not be {why}\n");
        causes.push(Cause::forbidden("spec.ephemeralContainers", &why));
    }
}

const CELLS: Cells = |row| {
    let pod = Containers::of(row);
    let ip = row.items("/status/podIPs").find_map(|ip| ip["ip"].as_str()).unwrap_or(row.text("/status/podIP"));
    vec![
        row.name(),
        Value::from(format!("{}/{}", pod.ready, pod.all)),
        Value::from(pod.status),
        Value::from(pod.restarts),
        row.age(),
        Value::from(if ip.is_empty() { NONE } else { ip }),
        row.text_or("/spec/nodeName", NONE),
        row.text_or("/status/nominatedNodeName", NONE),
        readiness_gates(row),
    ]
};

fn readiness_gates(row: &Row<'_>) -> Value {
    let gates = row.items("/spec/readinessGates");
    let all = gates.len();
    let open = gates.filter_map(|gate| gate["conditionType"].as_str()).filter(|gate| row.is_true(gate)).count();
    Value::from(if all == 0 { NONE.to_owned() } else { format!("{open}/{all}") })
}

/// A summary of a pod's containers for `kubectl get`.
struct Containers {
    ready: usize,
    all: usize,
    status: String,
    restarts: String,
}

impl Containers {
    fn of(row: &Row<'_>) -> Self {
        let sidecar = |name: &Value| {
            let mut started = row.items("/spec/initContainers").filter(|container| container["name"] == *name);
            started.any(|container| container["restartPolicy"] == "Always")
        };
        let sidecars = row.items("/spec/initContainers").filter(|container| sidecar(&container["name"])).count();
        let mut pod = Self {
            ready: 0,
            all: row.items("/spec/containers").len() + sidecars,
            status: Self::phase(row),
            restarts: String::new(),
        };
        let (mut restarts, mut of_sidecars) = (0, 0);
        let (mut last, mut last_sidecar) = ("", "");
        let mut initialising = false;
        for (index, status) in row.items("/status/initContainerStatuses").enumerate() {
            let is_sidecar = sidecar(&status["name"]);
            restarts = count(status).saturating_add(restarts);
            last = last.max(ended(status));
            if is_sidecar {
                of_sidecars = count(status).saturating_add(of_sidecars);
                last_sidecar = last_sidecar.max(ended(status));
            }
            let (terminated, waiting) = (&status["state"]["terminated"], &status["state"]["waiting"]);
            let reason = |state: &Value| state["reason"].as_str().unwrap_or_default().to_owned();
            if terminated.is_object() && terminated["exitCode"] == json!(0) {
                continue;
            }
            if is_sidecar && status["started"] == json!(true) {
                pod.ready += usize::from(status["ready"] == json!(true));
                continue;
            }
            initialising = true;
            pod.status = if terminated.is_object() {
                format!("Init:{}", end(terminated))
            } else if !reason(waiting).is_empty() && reason(waiting) != "PodInitializing" {
                format!("Init:{}", reason(waiting))
            } else {
                format!("Init:{index}/{}", row.items("/spec/initContainers").len())
            };
            break;
        }
        if !initialising || row.is_true("Initialized") {
            (restarts, last) = (of_sidecars, last_sidecar);
            let mut running = false;
            for status in row.items("/status/containerStatuses").rev() {
                restarts = count(status).saturating_add(restarts);
                last = last.max(ended(status));
                let state = &status["state"];
                if let Some(reason) = state["waiting"]["reason"].as_str().filter(|reason| !reason.is_empty()) {
                    reason.clone_into(&mut pod.status);
                } else if state["terminated"].is_object() {
                    pod.status = end(&state["terminated"]);
                } else if status["ready"] == json!(true) && state["running"].is_object() {
                    running = true;
                    pod.ready += 1;
                }
            }
            if pod.status == "Completed" && running {
                if row.is_true("Ready") { "Running" } else { "NotReady" }.clone_into(&mut pod.status);
            }
        }
        if row.is_deleting() {
            if row.text("/status/reason") == "NodeLost" {
                "Unknown".clone_into(&mut pod.status);
            } else if !matches!(row.text("/status/phase"), "Failed" | "Succeeded") {
                "Terminating".clone_into(&mut pod.status);
            }
        }
        pod.restarts = if restarts > 0 && !last.is_empty() {
            format!("{restarts} ({} ago)", age(last, row.now))
        } else {
            restarts.to_string()
        };
        pod
    }

    /// The status text of a pod if no container has a more specific status text.
    fn phase(row: &Row<'_>) -> String {
        if row.condition("PodScheduled").is_some_and(|condition| condition["reason"] == "SchedulingGated") {
            return "SchedulingGated".to_owned();
        }
        let reason = row.text("/status/reason");
        if reason.is_empty() { row.text("/status/phase") } else { reason }.to_owned()
    }
}

fn count(status: &Value) -> i64 {
    status["restartCount"].as_i64().unwrap_or(0)
}

/// The time when a container last ended, as text that sorts by time.
fn ended(status: &Value) -> &str {
    status.pointer("/lastState/terminated/finishedAt").and_then(Value::as_str).unwrap_or_default()
}

/// A text that says how a container ended.
fn end(terminated: &Value) -> String {
    match (terminated["reason"].as_str().unwrap_or_default(), terminated["signal"].as_i64().unwrap_or(0)) {
        ("", 0) => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or(0)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
