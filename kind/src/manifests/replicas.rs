//! The manifests of the API that scales Deployments. These manifests are a kustomization of their own, because a user
//! of the webhook may not want this API.
//!
//! A run never applies these manifests unchanged.

use serde_json::{Value, json};

use super::{Error, objects};

/// Name and text of the files in `manifests/replicas/` that can be applied alone, in the order in which they are
/// applied.
pub const REPLICAS: [(&str, &str); 6] = [
    ("namespace.yaml", include_str!("../../manifests/replicas/namespace.yaml")),
    ("rbac.yaml", include_str!("../../manifests/replicas/rbac.yaml")),
    ("network-policy.yaml", include_str!("../../manifests/replicas/network-policy.yaml")),
    ("service.yaml", include_str!("../../manifests/replicas/service.yaml")),
    ("deployment.yaml", include_str!("../../manifests/replicas/deployment.yaml")),
    ("pod-disruption-budget.yaml", include_str!("../../manifests/replicas/pod-disruption-budget.yaml")),
];
/// The additional RBAC roles that the API needs to change images of Deployments.
pub const REPLICAS_IMAGES: &str = include_str!("../../manifests/replicas-images/rbac.yaml");
/// The certificates that cert-manager issues for the API that scales Deployments.
pub const REPLICAS_CERTIFICATES: &str = include_str!("../../manifests/replicas-cert-manager/certificates.yaml");

/// Namespace and name of the service account of the API that scales Deployments.
pub const REPLICAS_ACCOUNT: (&str, &str) = ("longhaul-system", "longhaul-replicas");

/// Namespace, account, roles and bindings of the API that scales Deployments, in the order in which they are applied.
/// If `images` is true, the roles for changing images are included.
pub fn replicas_rights(images: bool) -> Result<Vec<Value>, Error> {
    let [(_, namespace), (_, rbac), ..] = REPLICAS;
    let mut all = objects("replicas/namespace.yaml", namespace)?;
    all.extend(objects("replicas/rbac.yaml", rbac)?);
    if images {
        all.extend(objects("replicas-images/rbac.yaml", REPLICAS_IMAGES)?);
    }
    Ok(all)
}

/// The roles of the API that scales Deployments, bound to the service account of a process that runs all roles.
pub fn replicas_roles_of_all() -> Result<Vec<Value>, Error> {
    let mut all = replicas_rights(false)?;
    all.retain(|object| !matches!(object["kind"].as_str(), Some("Namespace" | "ServiceAccount")));
    let (namespace, name) = super::ALL_ROLES_ACCOUNT;
    for binding in all.iter_mut().filter(|object| object["subjects"].is_array()) {
        binding["subjects"] = json!([{"kind": "ServiceAccount", "name": name, "namespace": namespace}]);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
