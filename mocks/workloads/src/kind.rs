//! The kinds of objects that the simulated controllers read and write.

use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Node,
    Volume,
    Claim,
    Revision,
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    Pod,
    Service,
    Endpoints,
    Slice,
}

impl Kind {
    pub const ALL: [Self; 13] = [
        Self::Node,
        Self::Volume,
        Self::Claim,
        Self::Revision,
        Self::Deployment,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::Job,
        Self::Pod,
        Self::Service,
        Self::Endpoints,
        Self::Slice,
    ];

    /// Group, version, plural and kind, as the API spells them.
    pub(crate) const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Node => ("v1", "nodes", "Node"),
            Self::Volume => ("v1", "persistentvolumes", "PersistentVolume"),
            Self::Claim => ("v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
            Self::Revision => ("apps/v1", "controllerrevisions", "ControllerRevision"),
            Self::Deployment => ("apps/v1", "deployments", "Deployment"),
            Self::ReplicaSet => ("apps/v1", "replicasets", "ReplicaSet"),
            Self::StatefulSet => ("apps/v1", "statefulsets", "StatefulSet"),
            Self::DaemonSet => ("apps/v1", "daemonsets", "DaemonSet"),
            Self::Job => ("batch/v1", "jobs", "Job"),
            Self::Pod => ("v1", "pods", "Pod"),
            Self::Service => ("v1", "services", "Service"),
            Self::Endpoints => ("v1", "endpoints", "Endpoints"),
            Self::Slice => ("discovery.k8s.io/v1", "endpointslices", "EndpointSlice"),
        }
    }

    /// The full name of the resource: `deployments.apps` or `pods`.
    pub fn full_name(self) -> String {
        let (version, plural, _) = self.names();
        match version.split_once('/') {
            Some((group, _)) => format!("{plural}.{group}"),
            None => plural.to_owned(),
        }
    }

    /// The API path of an object; with an empty name, the path of all objects of the namespace.
    pub fn path(self, namespace: &str, name: &str) -> String {
        let (version, plural, _) = self.names();
        let root = if version.contains('/') { "apis" } else { "api" };
        let inside = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        let name = if name.is_empty() { String::new() } else { format!("/{name}") };
        format!("/{root}/{version}{inside}/{plural}{name}")
    }

    /// Whether a fault may name this kind, because its objects become ready.
    pub(crate) fn is_workload(self) -> bool {
        !matches!(self, Self::Node | Self::Volume | Self::Revision | Self::Endpoints | Self::Slice)
    }
}

/// The identity of an object: kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub kind: Kind,
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Key {
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }

    /// The kind, namespace and name as text: `deployments.apps default/web`.
    pub(crate) fn shown(&self) -> String {
        let place = if self.namespace.is_empty() { String::new() } else { format!("{}/", self.namespace) };
        format!("{} {place}{}", self.kind.full_name(), self.name)
    }
}
