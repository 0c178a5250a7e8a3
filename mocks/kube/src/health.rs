//! The health checks `/healthz`, `/livez` and `/readyz` (Kubernetes documentation, "Kubernetes API health endpoints").
//!
//! Owns the names of the checks, which equal those of a real server of the served release. All checks always pass: a
//! fault that makes the server unreachable also makes these paths unreachable.

use std::fmt::Write as _;

use http::StatusCode;

use super::answer::Answer;
use super::path::pairs;

/// The names of the checks in their order. A check whose name begins with `+` belongs to `/readyz` only.
const CHECKS: &[&str] = &[
    "ping",
    "log",
    "etcd",
    "+etcd-readiness",
    "+informer-sync",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
    "+shutdown",
];

/// Answers a request for a health path; returns `None` for any other path.
pub(crate) fn answer(path: &str, query: &str) -> Option<Answer> {
    let (root, one) = path.strip_prefix('/')?.split_once('/').unwrap_or((path.strip_prefix('/')?, ""));
    if !matches!(root, "healthz" | "livez" | "readyz") {
        return None;
    }
    let mut checks = CHECKS.iter().filter_map(|check| match check.strip_prefix('+') {
        Some(check) => (root == "readyz").then_some(check),
        None => Some(*check),
    });
    if !one.is_empty() {
        let known = checks.any(|check| check == one);
        let missing = || Answer::text(StatusCode::NOT_FOUND, "404 page not found\n");
        return Some(if known { Answer::text(StatusCode::OK, "ok") } else { missing() });
    }
    let query = pairs(query);
    let values = |key: &'static str| query.iter().filter(move |(known, _)| known == key).map(|(_, value)| value);
    if values("verbose").next().is_none() {
        return Some(Answer::text(StatusCode::OK, "ok"));
    }
    let mut text = String::new();
    for check in checks {
        let left_out = values("exclude").any(|excluded| excluded == check);
        let _ = writeln!(text, "[+]{check} {}", if left_out { "excluded: ok" } else { "ok" });
    }
    let _ = writeln!(text, "{root} check passed");
    Some(Answer::text(StatusCode::OK, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_their_statuses() {
        let status = |path: &str| answer(path, "").map(|answer| answer.status.as_u16());
        for (path, expected) in [
            ("/readyz", Some(200)),
            ("/readyz/etcd", Some(200)),
            ("/livez/poststarthook/crd-informer-synced", Some(200)),
            ("/livez/etcd-readiness", Some(404)),
            ("/healthz/nothing", Some(404)),
            ("/health", None),
            ("/api", None),
        ] {
            assert_eq!(status(path), expected, "{path}");
        }
    }
}
