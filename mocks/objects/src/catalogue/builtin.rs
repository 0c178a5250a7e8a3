//! The built-in resources, one line each.
//!
//! Owns the table; names, short names and scopes are those of `kubectl api-resources` against Kubernetes 1.3x.

use std::sync::Arc;

use mock_store::ResourceId;

use super::{Field, Resource, Scale, Served};

/// Scope and subresources: `N` namespaced, `C` cluster, `s` status, `c` scale, `r` review (never stored).
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

/// `(group, versions, plural, kind, short names, flags)`; the first version is the preferred and stored one.
const TABLE: &[Row] = &[
    ("", "v1", "namespaces", "Namespace", "ns", "Cs"),
    ("", "v1", "nodes", "Node", "no", "Cs"),
    ("", "v1", "persistentvolumes", "PersistentVolume", "pv", "Cs"),
    ("", "v1", "bindings", "Binding", "", "Nr"),
    ("", "v1", "configmaps", "ConfigMap", "cm", "N"),
    ("", "v1", "endpoints", "Endpoints", "ep", "N"),
    ("", "v1", "events", "Event", "ev", "N"),
    ("", "v1", "limitranges", "LimitRange", "limits", "N"),
    ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", "Ns"),
    ("", "v1", "pods", "Pod", "po", "Nsa"),
    ("", "v1", "podtemplates", "PodTemplate", "", "N"),
    ("", "v1", "replicationcontrollers", "ReplicationController", "rc", "Nsca"),
    ("", "v1", "resourcequotas", "ResourceQuota", "quota", "Ns"),
    ("", "v1", "secrets", "Secret", "", "N"),
    ("", "v1", "serviceaccounts", "ServiceAccount", "sa", "N"),
    ("", "v1", "services", "Service", "svc", "Nsa"),
    ("apps", "v1", "controllerrevisions", "ControllerRevision", "", "N"),
    ("apps", "v1", "daemonsets", "DaemonSet", "ds", "Nsa"),
    ("apps", "v1", "deployments", "Deployment", "deploy", "Nsca"),
    ("apps", "v1", "replicasets", "ReplicaSet", "rs", "Nsca"),
    ("apps", "v1", "statefulsets", "StatefulSet", "sts", "Nsca"),
    ("batch", "v1", "cronjobs", "CronJob", "cj", "Nsa"),
    ("batch", "v1", "jobs", "Job", "", "Nsa"),
    ("autoscaling", "v2 v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", "Nsa"),
    ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", "Ns"),
    ("networking.k8s.io", "v1", "ingressclasses", "IngressClass", "", "C"),
    ("networking.k8s.io", "v1", "ingresses", "Ingress", "ing", "Ns"),
    ("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", "netpol", "N"),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", "", "C"),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", "", "C"),
    ("rbac.authorization.k8s.io", "v1", "roles", "Role", "", "N"),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", "", "N"),
    ("coordination.k8s.io", "v1", "leases", "Lease", "", "N"),
    ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", "", "N"),
    ("events.k8s.io", "v1", "events", "Event", "ev", "N"),
    ("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", "", "C"),
    ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", "pc", "C"),
    ("storage.k8s.io", "v1", "storageclasses", "StorageClass", "sc", "C"),
    ("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", "", "Cs"),
    ("storage.k8s.io", "v1", "csidrivers", "CSIDriver", "", "C"),
    ("storage.k8s.io", "v1", "csinodes", "CSINode", "", "C"),
    ("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", "csr", "Cs"),
    ("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", "", "Ci"),
    (
        "admissionregistration.k8s.io",
        "v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        "",
        "Ci",
    ),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", "crd crds", "Csi"),
    ("apiregistration.k8s.io", "v1", "apiservices", "APIService", "", "Csi"),
    ("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", "", "Cr"),
    ("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", "", "Cr"),
    ("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", "", "Cr"),
    ("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", "", "Cr"),
    ("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", "", "Cr"),
    ("authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", "", "Nr"),
];

/// `(full resource name, field labels)`: what the real server indexes for field selectors.
const FIELDS: &[(&str, &[&str])] = &[
    (
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
    ),
    (
        "events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "type",
            "source",
        ],
    ),
    // In the order of the original, whose facts these are.
    (
        "events.events.k8s.io",
        &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
    ),
    ("secrets", &["type"]),
    ("namespaces", &["status.phase"]),
    ("nodes", &["spec.unschedulable"]),
    ("services", &["spec.clusterIP", "spec.type"]),
    ("replicasets.apps", &["status.replicas"]),
    ("replicationcontrollers", &["status.replicas"]),
    ("jobs.batch", &["status.successful"]),
    ("certificatesigningrequests.certificates.k8s.io", &["spec.signerName"]),
];

/// The resource that holds the objects of another API.
pub(super) fn mirrored(resource: &Resource) -> Option<&'static str> {
    (&*resource.full_name == "events.events.k8s.io").then_some("events")
}

pub(super) fn all() -> impl Iterator<Item = Resource> {
    TABLE.iter().map(resource)
}

fn resource(&(group, versions, plural, kind, short, flags): &Row) -> Resource {
    let has = |flag: char| flags.contains(flag);
    let full_name: Arc<str> = if group.is_empty() { plural.into() } else { format!("{plural}.{group}").into() };
    let scale = has('c').then(|| Scale {
        spec_replicas: "/spec/replicas".to_owned(),
        status_replicas: "/status/replicas".to_owned(),
        selector: Some("/spec/selector".to_owned()),
    });
    let served = |version: &str| Served {
        name: version.into(),
        api_version: if group.is_empty() { version.into() } else { format!("{group}/{version}").into() },
        active: true,
        status: has('s'),
        scale: scale.clone(),
        columns: Vec::new(),
        schema: None,
        structure: None,
    };
    let versions: Vec<Served> = versions.split(' ').map(served).collect();
    let mut categories: Vec<Arc<str>> = Vec::new();
    if has('a') {
        categories.push("all".into());
    }
    if has('i') {
        categories.push("api-extensions".into());
    }
    let labels = FIELDS.iter().find(|(name, _)| **name == *full_name).map_or(&[][..], |(_, labels)| labels);
    let fields = labels.iter().map(|label| Field { label: Arc::from(*label), pointer: pointer(label) });
    Resource {
        id: ResourceId(u32::MAX),
        group: group.into(),
        storage: versions[0].name.clone(),
        versions,
        plural: plural.into(),
        singular: kind.to_lowercase().into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        short_names: short.split_whitespace().map(Arc::from).collect(),
        categories,
        namespaced: has('N'),
        custom: false,
        fields: fields.collect(),
        virtual_only: has('r'),
        mirrors: false,
        full_name,
    }
}

/// Where the value of a selectable field stands. That of `source` is a part of the object there.
fn pointer(label: &str) -> String {
    if label == "source" { "/source/component".to_owned() } else { format!("/{}", label.replace('.', "/")) }
}
