//! The Kubernetes objects that reviews carry, and where each kind keeps its images. Pure.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use crate::seed;

/// Plans must not depend on the day they are made on.
const CREATED: &str = "2026-01-05T08:30:00Z";

/// The kinds of the corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Pod,
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
        }
    }

    pub(super) fn plural(self) -> String {
        format!("{}s", self.name().to_lowercase())
    }

    /// The API group; every one of them is at v1.
    pub(super) fn group(self) -> &'static str {
        match self {
            Self::Pod => "",
            Self::Deployment | Self::ReplicaSet | Self::StatefulSet | Self::DaemonSet => "apps",
            Self::Job | Self::CronJob => "batch",
        }
    }

    fn api_version(self) -> &'static str {
        match self.group() {
            "apps" => "apps/v1",
            "batch" => "batch/v1",
            _ => "v1",
        }
    }

    /// The controller that makes objects for this kind, as a service account of `kube-system`.
    pub(super) fn controller(self) -> &'static str {
        match self {
            Self::Pod => "default-scheduler",
            Self::Deployment => "deployment-controller",
            Self::ReplicaSet => "replicaset-controller",
            Self::StatefulSet => "statefulset-controller",
            Self::DaemonSet => "daemon-set-controller",
            Self::Job => "job-controller",
            Self::CronJob => "cronjob-controller",
        }
    }

    /// JSON pointer to the pod spec.
    fn pod_spec(self) -> &'static str {
        match self {
            Self::Pod => "/spec",
            Self::CronJob => "/spec/jobTemplate/spec/template/spec",
            _ => "/spec/template/spec",
        }
    }
}

/// What an object is called and who owns it.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub owner: Option<(Kind, String, String)>,
}

impl Identity {
    pub(super) fn new(rng: &mut ChaCha8Rng, namespace: &str, name: String) -> Self {
        Self { namespace: namespace.to_owned(), name, uid: seed::uid_string(rng), owner: None }
    }

    /// An object that this one's controller makes, named as controllers do.
    pub(super) fn child(&self, rng: &mut ChaCha8Rng, kind: Kind, suffix: usize) -> Self {
        let name = format!("{}-{}", self.name, seed::suffix(rng, suffix));
        let mut child = Self::new(rng, &self.namespace, name);
        child.owner = Some((kind, self.name.clone(), self.uid.clone()));
        child
    }
}

/// Builds an object of the kind round a pod spec. `stored` objects have what the API server adds on storing.
pub(super) fn object(kind: Kind, identity: &Identity, pod_spec: &Value, replicas: u32, stored: bool) -> Value {
    let labels =
        json!({"app.kubernetes.io/name": "app", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "6c9d7f8b5"});
    let template = || json!({"metadata": {"creationTimestamp": null, "labels": labels}, "spec": pod_spec});
    let selector = json!({"matchLabels": {"app.kubernetes.io/name": "app"}});
    let spec = match kind {
        Kind::Pod => pod_spec.clone(),
        Kind::Deployment => json!({
            "replicas": replicas, "selector": selector, "template": template(), "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
        }),
        Kind::ReplicaSet => json!({"replicas": replicas, "selector": selector, "template": template()}),
        Kind::StatefulSet => json!({
            "replicas": replicas, "selector": selector, "template": template(), "serviceName": identity.name,
            "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10
        }),
        Kind::DaemonSet => json!({
            "selector": selector, "template": template(), "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
        }),
        Kind::Job => json!({"backoffLimit": 6, "completions": 1, "parallelism": 1, "template": template()}),
        Kind::CronJob => json!({
            "schedule": "*/5 * * * *", "concurrencyPolicy": "Allow", "suspend": false,
            "jobTemplate": {"metadata": {"creationTimestamp": null}, "spec": {"template": template()}}
        }),
    };
    let mut object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.name(),
        "metadata": metadata(identity, &labels, stored),
        "spec": spec,
    });
    let fields = json!([{
        "manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": kind.api_version(),
        "time": CREATED, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": owned_fields(&object["spec"])}
    }]);
    object["metadata"]["managedFields"] = fields;
    if stored {
        object["status"] = json!({"observedGeneration": 1, "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": CREATED}
        ]});
    }
    object
}

/// Pads the object with an annotation until it has about so many bytes as JSON.
pub(super) fn pad(object: &mut Value, bytes: u64, rng: &mut ChaCha8Rng) {
    const KEY: &str = "longhaul.dev/padding";
    let natural = object.to_string().len() as u64 + KEY.len() as u64 + 6;
    let missing = usize::try_from(bytes.saturating_sub(natural)).unwrap_or(0);
    if missing == 0 {
        return;
    }
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    object["metadata"]["annotations"][KEY] = Value::String(seed::suffix(rng, missing));
}

/// Every image of the object: JSON pointer and what is written there. Empty ones are no images.
pub(super) fn images(kind: Kind, object: &Value) -> Vec<(String, String)> {
    let prefix = kind.pod_spec();
    let mut found = Vec::new();
    let Some(spec) = object.pointer(prefix) else { return found };
    for list in ["containers", "initContainers", "ephemeralContainers", "volumes"] {
        let (pointer, field) =
            if list == "volumes" { ("/image/reference", "image/reference") } else { ("/image", "image") };
        for (i, item) in spec[list].as_array().into_iter().flatten().enumerate() {
            if let Some(written) = item.pointer(pointer).and_then(Value::as_str)
                && !written.is_empty()
            {
                found.push((format!("{prefix}/{list}/{i}/{field}"), written.to_owned()));
            }
        }
    }
    found
}

fn metadata(identity: &Identity, labels: &Value, stored: bool) -> Value {
    let mut metadata = json!({
        "name": identity.name,
        "namespace": identity.namespace,
        "labels": labels,
        "annotations": {"deployment.kubernetes.io/revision": "1", "team": "payments"},
        "creationTimestamp": null,
    });
    if stored {
        metadata["creationTimestamp"] = json!(CREATED);
        metadata["uid"] = json!(identity.uid);
        metadata["resourceVersion"] = json!("48213");
        metadata["generation"] = json!(1);
    }
    if let Some((kind, name, uid)) = &identity.owner {
        metadata["ownerReferences"] = json!([{
            "apiVersion": kind.api_version(), "kind": kind.name(), "name": name, "uid": uid,
            "controller": true, "blockOwnerDeletion": true
        }]);
    }
    metadata
}

/// The `FieldsV1` form of who set what: `f:` for keys, `k:` for list items known by their name.
fn owned_fields(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            map.iter().map(|(key, inner)| (format!("f:{key}"), owned_fields(inner))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) if items.iter().all(|item| item["name"].is_string()) => items
            .iter()
            .map(|item| (format!("k:{}", json!({"name": item["name"]})), owned_fields(item)))
            .collect::<Map<_, _>>()
            .into(),
        _ => json!({}),
    }
}

/// A number of replicas as small services have it.
pub(super) fn replicas(rng: &mut ChaCha8Rng) -> u32 {
    rng.random_range(1..=3)
}
