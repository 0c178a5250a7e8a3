//! Exemptions: reviews that are answered without an examination of images.
//!
//! The audit log shows the reason for an exemption under the key `exempt`.

use super::review::Ask;

/// The user names of the controller of Deployments, with and without its own service account.
const DEPLOYMENT_CONTROLLER: [&str; 2] =
    ["system:serviceaccount:kube-system:deployment-controller", "system:kube-controller-manager"];

/// The reason for an exemption that follows from the request `ask` alone; `None` if there is no such reason.
pub fn by_request(ask: &Ask<'_>) -> Option<&'static str> {
    if is_copy_of_a_deployment(ask) {
        return Some("copied from a Deployment");
    }
    match (&*ask.operation, ask.sub_resource.as_deref()) {
        ("CREATE" | "UPDATE", None | Some("" | "ephemeralcontainers" | "resize")) => None,
        ("CREATE" | "UPDATE", Some("status")) => Some("status update"),
        ("CREATE" | "UPDATE", Some("scale")) => Some("scale update"),
        // Bindings, evictions, tokens: none of them writes a pod spec.
        ("CREATE" | "UPDATE", Some(_)) => Some("other subresource"),
        ("DELETE", _) => Some("deletion"),
        _ => Some("other operation"),
    }
}

/// Whether the object is a `ReplicaSet` that the Deployment controller made from a Deployment's template.
///
/// The Deployment controller recognizes a `ReplicaSet` as its own only if both templates are equal. A Deployment that
/// is older than this webhook has unpinned tags until it changes. If the `ReplicaSet`s of such a Deployment were
/// pinned, the controller would never recognize them and would create new ones without end (google/k8s-digester, issue
/// 25: 18,000 `ReplicaSet`s). Pods of such a Deployment are judged and pinned in any case.
fn is_copy_of_a_deployment(ask: &Ask<'_>) -> bool {
    let replica_set = ask.kind.as_ref().is_some_and(|kind| kind.group == "apps" && kind.kind == "ReplicaSet");
    let user = ask.user_info.as_ref().map(|user| &*user.username);
    replica_set && ask.operation == "CREATE" && user.is_some_and(|user| DEPLOYMENT_CONTROLLER.contains(&user))
}
