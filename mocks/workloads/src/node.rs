//! The nodes on which Pods run, if clients have created no nodes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::conditions;
use super::fields::seconds;
use super::kind::{Key, Kind};
use super::write::{Author, Batch, Verb, Write};

/// The kubelet version of the nodes: that of the mock API server.
const VERSION: &str = "v1.34.1";
/// The first three bytes of the nodes' addresses: 192.0.2.0/24 is for documentation (RFC 5737).
const NET: &str = "192.0.2";

/// Makes `count` ready nodes.
pub(crate) fn all(count: u32, now: Timestamp) -> Vec<Batch> {
    (1..=count).map(|number| one(number, now)).collect()
}

fn one(number: u32, now: Timestamp) -> Batch {
    let name = format!("node-{number}");
    let (by, key) = (Author::Kubelet(name.clone()), Key::new(Kind::Node, "", &name));
    let labels = json!({
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
    });
    let made = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}});
    // The node lifecycle controller removes the taint of a new node when its kubelet reports that it is ready.
    let untainted = json!({"spec": {"taints": null}});
    let writes = vec![
        Write { by: by.clone(), key: key.clone(), verb: Verb::Create, body: made },
        Write { by, key: key.clone(), verb: Verb::PatchStatus, body: json!({"status": status(number, now)}) },
        Write { by: Author::Controller("node-controller"), key: key.clone(), verb: Verb::Patch, body: untainted },
    ];
    Batch { of: key, writes, held_back: false }
}

fn status(number: u32, now: Timestamp) -> Value {
    let condition = |kind: &str, status: &str, said: (&str, &str)| {
        conditions::new(kind, status, said, &["lastHeartbeatTime", "lastTransitionTime"], now)
    };
    let room = json!({"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "5000"});
    json!({
        "capacity": room, "allocatable": room,
        "addresses": [{"type": "InternalIP", "address": address(number)}, {"type": "Hostname", "address": format!("node-{number}")}],
        "conditions": [
            condition("MemoryPressure", "False", ("KubeletHasSufficientMemory", "kubelet has sufficient memory available")),
            condition("DiskPressure", "False", ("KubeletHasNoDiskPressure", "kubelet has no disk pressure")),
            condition("PIDPressure", "False", ("KubeletHasSufficientPID", "kubelet has sufficient PID available")),
            condition("Ready", "True", ("KubeletReady", "kubelet is posting ready status")),
        ],
        "nodeInfo": {
            "kubeletVersion": VERSION, "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
            "osImage": "Longhaul", "kernelVersion": "6.0.0", "containerRuntimeVersion": "containerd://2.0.0",
            "machineID": format!("{number:032x}"), "systemUUID": format!("{number:032x}"), "bootID": seconds(now),
        },
    })
}

fn address(number: u32) -> String {
    format!("{NET}.{}", number % 254 + 1)
}

pub(crate) fn address_of(node: &Value) -> String {
    let addresses = super::fields::list(node, "/status/addresses");
    let internal = addresses.iter().find(|address| address["type"] == "InternalIP");
    internal.and_then(|address| address["address"].as_str()).unwrap_or("192.0.2.1").to_owned()
}
