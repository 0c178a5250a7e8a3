//! Imitates scheduler, kubelet and volume provisioner on a real API server, as far as controllers need them to come to
//! rest.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Api, READY_AFTER};

const NODE: &str = "node-1";
const ROUND: Duration = Duration::from_millis(50);

/// Acts as scheduler, kubelet and volume provisioner until the task is aborted.
pub async fn run(mut api: Api) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
    api.post("/api/v1/nodes", &node).await;
    let at = format!("/api/v1/nodes/{NODE}");
    let ready = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": null, "lastTransitionTime": null}]);
    api.patch(&format!("{at}/status"), &json!({"status": {"conditions": ready}})).await;
    api.patch(&at, &json!({"spec": {"taints": null}})).await;
    let (mut bound, mut next) = (BTreeMap::new(), 0);
    loop {
        claims(&mut api).await;
        for pod in api.get("/api/v1/pods").await["items"].as_array().cloned().unwrap_or_default() {
            one(&mut api, &pod, &mut bound, &mut next).await;
        }
        tokio::time::sleep(ROUND).await;
    }
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Creates a volume for each claim that is not bound. After that, the real controller binds the claim.
async fn claims(api: &mut Api) {
    for claim in api.get("/api/v1/persistentvolumeclaims").await["items"].as_array().cloned().unwrap_or_default() {
        if text(&claim, "/status/phase") == "Bound" {
            continue;
        }
        let meta = &claim["metadata"];
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": format!("pvc-{}", text(meta, "/uid")), "annotations": {"pv.kubernetes.io/provisioned-by": "mock.longhaul.dev"}},
            "spec": {
                "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]}, "accessModes": claim["spec"]["accessModes"],
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": meta["namespace"], "name": meta["name"],
                             "uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
                "persistentVolumeReclaimPolicy": "Delete", "storageClassName": claim["spec"]["storageClassName"],
                "csi": {"driver": "mock.longhaul.dev", "volumeHandle": meta["uid"]},
            },
        });
        api.post("/api/v1/persistentvolumes", &volume).await;
    }
}

async fn one(api: &mut Api, pod: &Value, bound: &mut BTreeMap<String, Instant>, next: &mut u32) {
    let (namespace, name, uid) =
        (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"), text(pod, "/metadata/uid"));
    let at = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    if text(pod, "/spec/nodeName").is_empty() {
        let target = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "uid": uid}, "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}});
        api.ask("POST", &format!("{at}/binding"), "application/json", &target).await;
        bound.insert(uid.to_owned(), Instant::now());
        return;
    }
    if pod["metadata"]["deletionTimestamp"].is_string() {
        let now = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
        api.ask("DELETE", &at, "application/json", &now).await;
        return;
    }
    let since = *bound.entry(uid.to_owned()).or_insert_with(Instant::now);
    let phase = text(pod, "/status/phase");
    let ends = text(pod, "/spec/restartPolicy") != "Always";
    if phase == "Pending" && since.elapsed() > READY_AFTER {
        *next += 1;
        let address = format!("10.244.1.{next}");
        // Readiness gates stay closed.
        let ready = pod["spec"]["readinessGates"].is_null();
        say(api, &at, "Running", ready, Some(&address)).await;
    } else if phase == "Running" && ends && since.elapsed() > READY_AFTER * 2 {
        say(api, &at, "Succeeded", false, None).await;
    }
}

async fn say(api: &mut Api, at: &str, phase: &str, ready: bool, address: Option<&str>) {
    let now = format!("{:.0}", jiff::Timestamp::now());
    let condition = |kind: &str, is: bool| json!({"type": kind, "status": if is { "True" } else { "False" }, "lastTransitionTime": now});
    let mut status = json!({"phase": phase, "conditions": [condition("Ready", ready), condition("ContainersReady", ready), condition("Initialized", true)]});
    if let Some(address) = address {
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{"ip": address}]);
    }
    api.patch(&format!("{at}/status"), &json!({"status": status})).await;
}
