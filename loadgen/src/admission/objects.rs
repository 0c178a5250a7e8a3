//! The Kubernetes objects in reviews: their kinds, and how a manifest becomes a stored object. Pure: no I/O.
//!
//! Objects are made as in a real cluster: a user or a controller writes a manifest ([`manifest`], [`plain`]). The API
//! server then adds defaults and field managers ([`defaults`], [`fields`]). In storage, the object has a uid, a version
//! and a status ([`status`]). The fields of an object are in alphabetical order, while Go writes them in the order of
//! the struct; JSON has no order.

pub(super) mod defaults;
pub(super) mod fields;
pub(super) mod grow;
pub(super) mod manifest;
mod plain;
pub(super) mod status;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::seed;

/// The creation time of all objects, because plans must not depend on the present day.
pub(super) const CREATED: &str = "2026-01-05T08:30:00Z";

/// The kinds of objects in reviews, and of the objects of subresources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Pod,
    Deployment,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    /// A custom resource with a pod template at the same path as in built-in workloads.
    Worker,
    Namespace,
    ServiceAccount,
    ConfigMap,
    Secret,
    Service,
    CustomResourceDefinition,
    Scale,
    Eviction,
    Binding,
}

struct Facts {
    name: &'static str,
    plural: &'static str,
    group: &'static str,
    version: &'static str,
}

impl Kind {
    fn facts(self) -> Facts {
        let facts = |name, plural, group, version| Facts { name, plural, group, version };
        match self {
            Self::Pod => facts("Pod", "pods", "", "v1"),
            Self::Deployment => facts("Deployment", "deployments", "apps", "v1"),
            Self::ReplicaSet => facts("ReplicaSet", "replicasets", "apps", "v1"),
            Self::ReplicationController => facts("ReplicationController", "replicationcontrollers", "", "v1"),
            Self::StatefulSet => facts("StatefulSet", "statefulsets", "apps", "v1"),
            Self::DaemonSet => facts("DaemonSet", "daemonsets", "apps", "v1"),
            Self::Job => facts("Job", "jobs", "batch", "v1"),
            Self::CronJob => facts("CronJob", "cronjobs", "batch", "v1"),
            Self::Worker => facts("Worker", "workers", "example.com", "v1alpha1"),
            Self::Namespace => facts("Namespace", "namespaces", "", "v1"),
            Self::ServiceAccount => facts("ServiceAccount", "serviceaccounts", "", "v1"),
            Self::ConfigMap => facts("ConfigMap", "configmaps", "", "v1"),
            Self::Secret => facts("Secret", "secrets", "", "v1"),
            Self::Service => facts("Service", "services", "", "v1"),
            Self::CustomResourceDefinition => {
                facts("CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io", "v1")
            }
            // These three are never resources of their own: the plural is not used.
            Self::Scale => facts("Scale", "", "autoscaling", "v1"),
            Self::Eviction => facts("Eviction", "", "policy", "v1"),
            Self::Binding => facts("Binding", "", "", "v1"),
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.facts().name
    }

    pub(super) fn plural(self) -> &'static str {
        self.facts().plural
    }

    pub(super) fn group(self) -> &'static str {
        self.facts().group
    }

    pub(super) fn version(self) -> &'static str {
        self.facts().version
    }

    pub(super) fn api_version(self) -> String {
        match self.group() {
            "" => self.version().to_owned(),
            group => format!("{group}/{}", self.version()),
        }
    }

    pub(super) fn is_namespaced(self) -> bool {
        !matches!(self, Self::Namespace | Self::CustomResourceDefinition)
    }

    /// Whether the API server counts `metadata.generation` for the kind.
    fn has_generation(self) -> bool {
        matches!(
            self,
            Self::Deployment
                | Self::ReplicaSet
                | Self::ReplicationController
                | Self::StatefulSet
                | Self::DaemonSet
                | Self::Job
                | Self::CronJob
                | Self::Worker
                | Self::CustomResourceDefinition
        )
    }

    /// The controller that makes objects for this kind, a service account in `kube-system`.
    pub(super) fn controller(self) -> &'static str {
        match self {
            Self::Deployment => "deployment-controller",
            Self::ReplicaSet => "replicaset-controller",
            Self::ReplicationController => "replication-controller",
            Self::StatefulSet => "statefulset-controller",
            Self::DaemonSet => "daemon-set-controller",
            Self::Job => "job-controller",
            Self::CronJob => "cronjob-controller",
            _ => "namespace-controller",
        }
    }

    /// The JSON pointer to the pod spec; `None` for kinds without one.
    pub(super) fn pod_spec(self) -> Option<&'static str> {
        match self {
            Self::Pod => Some("/spec"),
            Self::CronJob => Some("/spec/jobTemplate/spec/template/spec"),
            Self::Deployment
            | Self::ReplicaSet
            | Self::ReplicationController
            | Self::StatefulSet
            | Self::DaemonSet
            | Self::Job
            | Self::Worker => Some("/spec/template/spec"),
            _ => None,
        }
    }
}

/// The name of an object, its namespace and its owner.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    /// The namespace of the object. For a Namespace object this is its own name; for other cluster-wide objects it is
    /// unused.
    pub namespace: String,
    pub name: String,
    /// The prefix of the name, if the API server generates the remaining characters.
    pub generate_name: Option<String>,
    pub uid: String,
    pub owner: Option<Owner>,
    /// The application to which the object belongs; labels and selectors contain this name.
    pub app: String,
    /// The value of `pod-template-hash` below a Deployment and of `controller-revision-hash` below other owners; empty
    /// if the object has no such label.
    pub hash: String,
}

#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub kind: Kind,
    pub name: String,
    pub uid: String,
}

impl Identity {
    pub(super) fn new(rng: &mut ChaCha8Rng, namespace: &str, name: String) -> Self {
        Self {
            namespace: namespace.to_owned(),
            app: name.clone(),
            name,
            generate_name: None,
            uid: seed::uid_string(rng),
            owner: None,
            hash: String::new(),
        }
    }

    /// An object that the controller of this object (of kind `kind`) makes, with a name made from the controller's.
    pub(super) fn child(&self, rng: &mut ChaCha8Rng, kind: Kind, ordinal: u32) -> Self {
        // Other kinds pass on their own hash, which is empty if a user made them.
        let hash = match kind {
            Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet => seed::suffix(rng, 10),
            _ => self.hash.clone(),
        };
        let (name, generate_name) = match kind {
            Kind::Deployment => (format!("{}-{hash}", self.name), None),
            // Minutes since the epoch of the time at which the CronJob was due.
            Kind::CronJob => (format!("{}-{}", self.name, 29_459_070 + ordinal), None),
            Kind::StatefulSet => (format!("{}-{ordinal}", self.name), None),
            _ => {
                let prefix = format!("{}-", self.name);
                (format!("{prefix}{}", seed::suffix(rng, 5)), Some(prefix))
            }
        };
        let owner = Owner { kind, name: self.name.clone(), uid: self.uid.clone() };
        let mut child = Self::new(rng, &self.namespace, name);
        child.app.clone_from(&self.app);
        child.hash = hash;
        child.generate_name = generate_name;
        child.owner = Some(owner);
        child
    }
}

/// Turns a requested object into a stored one, with name, uid, version, status and the controller's fields.
pub(super) fn store(kind: Kind, object: &mut Value, identity: &Identity) {
    let metadata = &mut object["metadata"];
    metadata["name"] = json!(identity.name);
    metadata["uid"] = json!(identity.uid);
    metadata["resourceVersion"] = json!("482134");
    metadata["creationTimestamp"] = json!(CREATED);
    if kind.has_generation() {
        metadata["generation"] = json!(1);
    }
    if kind == Kind::Pod {
        object["spec"]["nodeName"] = json!(NODE);
    }
    let Some(settled) = status::settled(kind, object, identity) else { return };
    let manager = if kind == Kind::Pod { "kubelet" } else { "kube-controller-manager" };
    let entry = fields::entry(manager, kind, &json!({"status": settled}));
    if let Some(entries) = object["metadata"]["managedFields"].as_array_mut() {
        entries.push(entry);
    }
    object["status"] = settled;
}

/// The node on which every Pod of the corpus runs.
pub(super) const NODE: &str = "node-1";

/// Every image of the object: JSON pointer and reference. An empty reference is no image.
pub(super) fn images(kind: Kind, object: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let Some((prefix, spec)) = kind.pod_spec().and_then(|prefix| Some((prefix, object.pointer(prefix)?))) else {
        return found;
    };
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

/// A random number of replicas, typical of small services.
pub(super) fn replicas(rng: &mut ChaCha8Rng) -> u32 {
    rng.random_range(1..=3)
}
