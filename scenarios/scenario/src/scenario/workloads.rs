//! `controlPlane.workloads`: how Deployments, `StatefulSets` and the like become ready on the mock, which has no node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// Longest allowed value of `readyAfter`. Pods in real tests become ready sooner.
const READY_AFTER_MAX: Span = Span::from_secs(600);
/// Maximum number of nodes of the mock.
const NODES_MAX: u32 = 100;

/// The settings by which workloads become ready. The mock imitates scheduler, kubelets and controllers for Deployments,
/// `ReplicaSets`, `StatefulSets`, `DaemonSets`, Jobs, Pods, `PersistentVolumeClaims` and Services. A cluster with nodes
/// has its own scheduler, kubelets and controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Workloads {
    /// Time of a Pod from its scheduling to its readiness. A volume claim is bound, and a load balancer gets an
    /// address, after the same time. A Pod of a Job ends after twice the time `readyAfter`.
    #[serde(default = "ready_after")]
    pub ready_after: Span,
    /// Time from readiness to the end of a Pod with `restartPolicy: Never` or `OnFailure` that does not belong to a
    /// Job. Default: a Pod without a Job runs until it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_after: Option<Span>,
    /// Number of nodes. A `DaemonSet` gets a Pod on each node.
    #[serde(default = "nodes")]
    pub nodes: u32,
}

impl Workloads {
    /// A key whose value the mock cannot simulate, and the problem.
    pub(super) fn problem(self) -> Option<(&'static str, String)> {
        if self.ready_after > READY_AFTER_MAX {
            return Some(("readyAfter", format!("`readyAfter: {}`: at most {READY_AFTER_MAX}", self.ready_after)));
        }
        let fits = (1..=NODES_MAX).contains(&self.nodes);
        (!fits).then(|| ("nodes", format!("`nodes: {}`: write 1 to {NODES_MAX}", self.nodes)))
    }
}

/// Default of `readyAfter`: long enough to reveal a subject that does not wait for readiness, and short enough for a
/// run of a minute.
fn ready_after() -> Span {
    Span::from_millis(200)
}

fn nodes() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Source;

    fn problem(plane: &str, faults: &str) -> String {
        let text = format!(
            "apiVersion: longhaul/v1\nname: x\ndescription: y\nphases: {{warmUp: 1s, steady: 20s, drain: 5s}}\ncontrolPlane: {plane}\n\
             subject: {{command: [x], witness: {{kind: status}}}}\nchurn: {{resource: packages.longhaul.dev/v1alpha1, population: 5, rate: 1/s}}\n\
             faults: {faults}\n"
        );
        Source::parse(&text, "test", Path::new(".")).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn workloads_are_played_by_the_mock_and_by_clusters_with_nodes() {
        for fits in [
            "{workloads: {}}",
            "{kind: mock, workloads: {readyAfter: 0s, nodes: 3}}",
            "{kind: kind, workloads: {readyAfter: 1s}}",
        ] {
            assert_eq!(problem(fits, "[]"), "", "{fits}");
        }
        for (plane, why) in [
            ("{kind: local, workloads: {}}", "alone let none become ready"),
            ("{workloads: {readyAfter: 11m}}", "at most 10m"),
            ("{workloads: {nodes: 0}}", "write 1 to 100"),
            ("{workloads: {after: 1s}}", "after"),
        ] {
            assert!(problem(plane, "[]").contains(why), "{plane}: {}", problem(plane, "[]"));
        }
    }

    #[test]
    fn a_fault_of_workloads_needs_workloads_that_are_played() {
        let fault = "[{name: not-ready, at: 2s, for: 4s}]";
        assert_eq!(problem("{workloads: {}}", fault), "");
        assert!(problem("{kind: mock}", fault).contains("add `controlPlane: {workloads: {readyAfter: 200ms}}`"));
        assert!(problem("{kind: kind, workloads: {}}", fault).contains("is played by the mock API server"));
    }
}
