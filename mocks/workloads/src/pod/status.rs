//! The status of a Pod, as its kubelet writes it.

use serde_json::{Value, json};

use crate::conditions;
use crate::fields::{hash, list, name, number, seconds, text, uid};
use crate::kind::Kind;
use crate::node;
use crate::scene::Scene;

/// The stage of a Pod's containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Creating,
    /// The containers run, but a readiness probe fails.
    NotReady,
    Ready,
    Succeeded,
}

/// The first two bytes of Pod addresses: 10.244.0.0/16, as usual with kubeadm.
const POD_NET: [u8; 2] = [10, 244];
const POD_ADDRESSES: u32 = 250 * 250;

/// The status of a Pod in a stage; `None` if the Pod has this status already. Unchanged conditions keep their times.
pub(super) fn of(scene: &mut Scene<'_>, pod: &Value, stage: Stage) -> Option<Value> {
    let old = &pod["status"];
    let conditions = conditions_of(scene, pod, stage);
    let phase = match stage {
        Stage::Creating => "Pending",
        Stage::NotReady | Stage::Ready => "Running",
        Stage::Succeeded => "Succeeded",
    };
    let same =
        old["phase"] == phase && bare(&old["conditions"]) == bare(&conditions) && !text(old, "/startTime").is_empty();
    if same {
        return None;
    }
    let host = scene.objects.find(Kind::Node, "", text(pod, "/spec/nodeName"));
    let host = host.map_or_else(|| "192.0.2.1".to_owned(), |node| node::address_of(node));
    let started = match text(old, "/startTime") {
        "" => seconds(scene.now),
        known => Value::from(known),
    };
    let mut status = json!({
        "phase": phase, "conditions": conditions, "hostIP": host, "hostIPs": [{"ip": host}], "startTime": started,
        "containerStatuses": containers(scene, pod, "containers", "containerStatuses", stage),
    });
    if !list(pod, "/spec/initContainers").is_empty() {
        status["initContainerStatuses"] = containers(scene, pod, "initContainers", "initContainerStatuses", stage);
    }
    if stage != Stage::Creating {
        let address = match text(old, "/podIP") {
            "" if pod["spec"]["hostNetwork"] == json!(true) => host,
            "" => fresh_address(scene),
            known => known.to_owned(),
        };
        status["podIPs"] = json!([{"ip": address}]);
        status["podIP"] = Value::from(address);
    }
    if let Some(generation) = pod["metadata"].get("generation").filter(|generation| !generation.is_null()) {
        status["observedGeneration"] = generation.clone();
    }
    Some(status)
}

/// The conditions without null fields; the API server adds such fields to some conditions.
fn bare(conditions: &Value) -> Vec<Value> {
    let mut conditions = conditions.as_array().cloned().unwrap_or_default();
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        condition.retain(|_, value| !value.is_null());
    }
    conditions
}

fn fresh_address(scene: &mut Scene<'_>) -> String {
    let number = *scene.addresses % POD_ADDRESSES;
    *scene.addresses = scene.addresses.wrapping_add(1);
    let [a, b] = POD_NET;
    format!("{a}.{b}.{}.{}", number / 250 + 1, number % 250 + 2)
}

/// The conditions of a Pod in a stage: existing conditions keep their position, new conditions follow.
fn conditions_of(scene: &Scene<'_>, pod: &Value, stage: Stage) -> Value {
    let names = |list_of: &str| {
        let names: Vec<&str> = list(pod, list_of).iter().map(|container| text(container, "/name")).collect();
        format!("[{}]", names.join(" "))
    };
    let unready = format!("containers with unready status: {}", names("/spec/containers"));
    let incomplete = format!("containers with incomplete status: {}", names("/spec/initContainers"));
    let gates = || {
        let gates = list(pod, "/spec/readinessGates").iter().map(|gate| text(gate, "/conditionType"));
        let closed: Vec<&str> = gates.filter(|gate| !conditions::is_true(&pod["status"], gate)).collect();
        (!closed.is_empty()).then(|| {
            let why = closed
                .iter()
                .map(|gate| format!("corresponding condition of pod readiness gate \"{gate}\" does not exist."));
            ("ReadinessGatesNotReady", why.collect::<Vec<_>>().join(", "))
        })
    };
    let initialized = stage != Stage::Creating || list(pod, "/spec/initContainers").is_empty();
    let done = ("PodCompleted", String::new());
    let not = ("ContainersNotReady", unready);
    let of_containers = match stage {
        Stage::Ready => None,
        Stage::Succeeded => Some(done.clone()),
        Stage::Creating | Stage::NotReady => Some(not),
    };
    let wanted: [(&str, Option<(&str, String)>); 5] = [
        ("PodReadyToStartContainers", matches!(stage, Stage::Creating | Stage::Succeeded).then(|| ("", String::new()))),
        (
            "Initialized",
            match stage {
                Stage::Succeeded => None,
                _ => (!initialized).then_some(("ContainersNotInitialized", incomplete)),
            },
        ),
        ("Ready", of_containers.clone().or_else(gates)),
        ("ContainersReady", of_containers),
        ("PodScheduled", None),
    ];
    let mut conditions: Vec<Value> = list(&pod["status"], "/conditions").to_vec();
    for (kind, because) in wanted {
        let status = if because.is_none() { "True" } else { "False" };
        let mut condition = json!({
            "type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": seconds(scene.now),
        });
        if let Some((reason, message)) = because.filter(|(reason, _)| !reason.is_empty()) {
            condition["reason"] = Value::from(reason);
            if !message.is_empty() {
                condition["message"] = Value::from(message);
            }
        }
        if stage == Stage::Succeeded && kind == "Initialized" {
            condition["reason"] = Value::from("PodCompleted");
        }
        if let Some(generation) = pod["metadata"].get("generation").filter(|generation| !generation.is_null()) {
            condition["observedGeneration"] = generation.clone();
        }
        match conditions.iter_mut().find(|known| text(known, "/type") == kind) {
            Some(known) => {
                if known["status"] == condition["status"] {
                    condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
                }
                *known = condition;
            }
            None => conditions.push(condition),
        }
    }
    Value::from(conditions)
}

/// The statuses of a list of containers: `which` is the list's field in the Pod's spec, `statuses` its field in the
/// Pod's status.
fn containers(scene: &Scene<'_>, pod: &Value, which: &str, statuses: &str, stage: Stage) -> Value {
    let before = list(&pod["status"], &format!("/{statuses}"));
    let all = list(pod, &format!("/spec/{which}")).iter().map(|container| {
        let name = text(container, "/name");
        let known = before.iter().find(|status| text(status, "/name") == name);
        let is_init = which == "initContainers" && text(container, "/restartPolicy") != "Always";
        one(scene, pod, (container, is_init), known, stage)
    });
    Value::from(all.collect::<Vec<Value>>())
}

fn one(scene: &Scene<'_>, pod: &Value, of: (&Value, bool), known: Option<&Value>, stage: Stage) -> Value {
    let (container, is_init) = of;
    let id = format!("containerd://{}", long_hash(&json!([uid(pod), name(pod), text(container, "/name")])));
    let since = known.map(|known| text(known, "/state/running/startedAt")).filter(|since| !since.is_empty());
    let since = since.map_or_else(|| seconds(scene.now), Value::from);
    let ended = |since: &Value| {
        json!({"terminated": {
            "exitCode": 0, "reason": "Completed", "startedAt": since, "finishedAt": seconds(scene.now), "containerID": id,
        }})
    };
    let is_made = stage != Stage::Creating;
    let state = match stage {
        Stage::Creating if is_init || list(pod, "/spec/initContainers").is_empty() => {
            json!({"waiting": {"reason": "ContainerCreating"}})
        }
        Stage::Creating => json!({"waiting": {"reason": "PodInitializing"}}),
        _ if is_init => known
            .map(|known| known["state"].clone())
            .filter(|state| state["terminated"].is_object())
            .unwrap_or_else(|| ended(&since)),
        Stage::Succeeded => ended(&since),
        Stage::NotReady | Stage::Ready => json!({"running": {"startedAt": since}}),
    };
    let ready = if is_init { is_made } else { stage == Stage::Ready };
    let mut status = json!({
        "name": container["name"], "state": state, "lastState": {}, "ready": ready,
        "restartCount": known.map_or(0, |known| number(known, "/restartCount")),
        "image": container["image"], "imageID": "",
        "started": !is_init && matches!(stage, Stage::Ready | Stage::NotReady),
    });
    if is_made {
        status["containerID"] = Value::from(id);
        status["imageID"] = Value::from(format!("sha256:{}", long_hash(&container["image"])));
    }
    status
}

/// A hash with 64 hexadecimal digits, like a SHA-256.
fn long_hash(value: &Value) -> String {
    let digits = (1..=8).flat_map(|part| hash(value, part).into_bytes());
    let all: String = digits.filter_map(|letter| char::from_digit(u32::from(letter % 16), 16)).collect();
    format!("{all:0<64}")[..64].to_owned()
}
