//! Exemptions: reviews that are answered without examining images.
//!
//! Pure. The reasons appear in the audit log as `exempt`.

use super::review::Ask;

/// The controller of Deployments, with and without its own account.
const DEPLOYMENT_CONTROLLER: [&str; 2] =
    ["system:serviceaccount:kube-system:deployment-controller", "system:kube-controller-manager"];

/// The reason why `ask` is exempt by its request alone.
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

/// Whether the object is the `ReplicaSet` that the controller makes of a Deployment's template.
///
/// The controller recognizes a `ReplicaSet` as its own only while the templates are equal. A Deployment from before
/// this webhook keeps its tags until it is changed. If its `ReplicaSets` were pinned, the controller would never find
/// them and make one after the other (google/k8s-digester, issue 25: 18,000 of them). Pods are judged and pinned in any
/// case.
fn is_copy_of_a_deployment(ask: &Ask<'_>) -> bool {
    let replica_set = ask.kind.as_ref().is_some_and(|kind| kind.group == "apps" && kind.kind == "ReplicaSet");
    let user = ask.user_info.as_ref().map(|user| &*user.username);
    replica_set && ask.operation == "CREATE" && user.is_some_and(|user| DEPLOYMENT_CONTROLLER.contains(&user))
}
