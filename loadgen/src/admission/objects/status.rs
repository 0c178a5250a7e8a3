//! The status that controllers and kubelets report for a settled object. Pure.

use serde_json::{Value, json};

use super::{CREATED, Identity, Kind, NODE};

/// The status of a settled object, or `None` for kinds without one.
pub(in crate::admission) fn settled(kind: Kind, object: &Value, identity: &Identity) -> Option<Value> {
    let replicas = object.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    let revision = format!("{}-{}", identity.name, &identity.uid[..8]);
    Some(match kind {
        Kind::Pod => pod(object),
        Kind::Deployment => json!({
            "observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
            "conditions": [
                condition("Available", "MinimumReplicasAvailable", "Deployment has minimum availability."),
                condition("Progressing", "NewReplicaSetAvailable", "ReplicaSet has successfully progressed.")
            ]
        }),
        Kind::ReplicaSet | Kind::ReplicationController => json!({
            "observedGeneration": 1, "replicas": replicas, "fullyLabeledReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas
        }),
        Kind::StatefulSet => json!({
            "observedGeneration": 1, "replicas": replicas, "readyReplicas": replicas, "currentReplicas": replicas,
            "updatedReplicas": replicas, "availableReplicas": replicas, "collisionCount": 0,
            "currentRevision": revision, "updateRevision": revision
        }),
        Kind::DaemonSet => json!({
            "observedGeneration": 1, "currentNumberScheduled": replicas, "desiredNumberScheduled": replicas,
            "numberAvailable": replicas, "numberMisscheduled": 0, "numberReady": replicas,
            "updatedNumberScheduled": replicas
        }),
        Kind::Job => json!({"startTime": CREATED, "active": 1, "ready": 1, "uncountedTerminatedPods": {}}),
        Kind::CronJob => json!({"lastScheduleTime": CREATED}),
        Kind::Worker => json!({"ready": true}),
        Kind::Namespace => json!({"phase": "Active"}),
        Kind::Service => json!({"loadBalancer": {}}),
        _ => return None,
    })
}

/// A running Pod. The kubelet names images by their tag even if the spec has a digest.
fn pod(object: &Value) -> Value {
    let statuses = |list: &str| -> Vec<Value> {
        let containers = object["spec"][list].as_array().into_iter().flatten();
        containers
            .map(|container| {
                let image = container["image"].as_str().unwrap_or_default();
                let tag = image.split('@').next().unwrap_or_default();
                json!({
                    "name": container["name"], "image": tag, "imageID": image, "ready": true, "restartCount": 0,
                    "started": true, "state": {"running": {"startedAt": CREATED}}, "lastState": {},
                    "containerID": "containerd://6b1d0f5a2c3e4f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8"
                })
            })
            .collect()
    };
    let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .map(|kind| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": CREATED}));
    let mut status = json!({
        "phase": "Running", "qosClass": "Burstable", "startTime": CREATED, "hostIP": "10.0.0.7", "podIP": "10.244.1.23",
        "podIPs": [{"ip": "10.244.1.23"}],
        "conditions": conditions,
        "containerStatuses": statuses("containers")
    });
    let init = statuses("initContainers");
    if !init.is_empty() {
        status["initContainerStatuses"] = init.into();
    }
    status
}

fn condition(kind: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": reason, "message": message,
        "lastUpdateTime": CREATED, "lastTransitionTime": CREATED
    })
}

/// The object that the scheduler posts to `pods/binding`.
pub(in crate::admission) fn binding(identity: &Identity) -> Value {
    let metadata = json!({
        "name": identity.name, "namespace": identity.namespace, "creationTimestamp": null
    });
    let entry =
        super::fields::entry("kube-scheduler", Kind::Binding, &json!({"target": {"kind": "Node", "name": NODE}}));
    let mut binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"kind": "Node", "name": NODE}
    });
    binding["metadata"]["managedFields"] = json!([entry]);
    binding
}
