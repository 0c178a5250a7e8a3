//! The manifests that are applied to a cluster: the Package resource, and the service with its roles.
//!
//! This module owns the files below `kind/manifests/`, which are built into the program. This module also fills in the
//! values that only a run knows: the webhook's address and certificate authority.

use serde_json::Value;

mod replicas;
mod rights;

pub use replicas::{
    REPLICAS, REPLICAS_ACCOUNT, REPLICAS_CERTIFICATES, REPLICAS_IMAGES, replicas_rights, replicas_roles_of_all,
};
pub use rights::{ALL_ROLES_ACCOUNT, all_roles, cluster_roles};

/// The `CustomResourceDefinition` of `packages.longhaul.dev`; a control plane without nodes needs nothing else.
pub const PACKAGE_CRD: &str = include_str!("../manifests/package-crd.yaml");
/// The namespace of the service.
pub const NAMESPACE: &str = include_str!("../manifests/namespace.yaml");
/// The service's accounts, roles and bindings.
pub const RBAC: &str = include_str!("../manifests/rbac.yaml");
/// The service's configuration, and a Deployment for each role.
pub const DEPLOYMENT: &str = include_str!("../manifests/deployment.yaml");
/// The Service object to which the API server sends reviews.
pub const SERVICE: &str = include_str!("../manifests/service.yaml");
/// The `PodDisruptionBudget` that keeps admission available while nodes are drained.
pub const POD_DISRUPTION_BUDGET: &str = include_str!("../manifests/pod-disruption-budget.yaml");
/// The NetworkPolicy: the allowed connections of the service's Pods.
pub const NETWORK_POLICY: &str = include_str!("../manifests/network-policy.yaml");
/// The webhook configuration: the reviews that are sent to the service. [`webhook`] fills in the values of a run.
pub const WEBHOOK: &str = include_str!("../manifests/webhook.yaml");

/// The label of namespaces whose objects are reviewed.
pub const OPT_IN_LABEL: (&str, &str) = ("longhaul.dev/admission", "enabled");

/// How the API server reaches the webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach<'a> {
    /// Through the Service object [`SERVICE`].
    Service,
    /// At a URL, for control planes without nodes, for example `https://127.0.0.1:8443/mutate`.
    Url(&'a str),
}

/// A manifest could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read {file}")]
pub struct Error {
    /// The file below `kind/manifests/`.
    pub file: &'static str,
    #[source]
    pub source: Box<serde_saphyr::Error>,
}

/// The name and text of every manifest, in the order in which they are applied. Manifests that other manifests need
/// come first. The webhook comes last, because the API server then begins to send reviews. The manifests are deleted in
/// the reverse order.
pub const fn all() -> [(&'static str, &'static str); 8] {
    [
        ("package-crd.yaml", PACKAGE_CRD),
        ("namespace.yaml", NAMESPACE),
        ("rbac.yaml", RBAC),
        ("network-policy.yaml", NETWORK_POLICY),
        ("service.yaml", SERVICE),
        ("deployment.yaml", DEPLOYMENT),
        ("pod-disruption-budget.yaml", POD_DISRUPTION_BUDGET),
        ("webhook.yaml", WEBHOOK),
    ]
}

/// The Kubernetes objects in the text of one manifest file.
pub fn objects(file: &'static str, text: &str) -> Result<Vec<Value>, Error> {
    serde_saphyr::from_multiple(text).map_err(failed(file))
}

/// The `CustomResourceDefinition` of `packages.longhaul.dev` as JSON, so that a client can create it.
pub fn package_crd() -> Result<Value, Error> {
    serde_saphyr::from_str(PACKAGE_CRD).map_err(failed("package-crd.yaml"))
}

/// The webhook configuration with the certificate authority of the service.
pub fn webhook(ca_pem: &str, reach: Reach<'_>) -> Result<Value, Error> {
    let mut configuration: Value = serde_saphyr::from_str(WEBHOOK).map_err(failed("webhook.yaml"))?;
    let webhooks = configuration["webhooks"].as_array_mut();
    for webhook in webhooks.into_iter().flatten() {
        let client = &mut webhook["clientConfig"];
        if let Reach::Url(url) = reach {
            *client = serde_json::json!({ "url": url });
        }
        // `[]byte` in Kubernetes' types: base64 of the PEM text.
        client["caBundle"] = Value::String(base64(ca_pem.as_bytes()));
    }
    Ok(configuration)
}

fn failed(file: &'static str) -> impl Fn(serde_saphyr::Error) -> Error {
    move |source| Error { file, source: Box::new(source) }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests;
