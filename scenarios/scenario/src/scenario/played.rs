//! Decides whether a fault can be injected on a control plane against a kind of subject.
//!
//! The check of scenario files, the option `--control-plane`, and the printed plan all use this module.

use mock_faults::{Family, Fault, KillBy, Name, PodKillKeys};

use super::{ControlPlaneKind, Scenario};

/// The reason why a fault of a scenario cannot be injected on a control plane, with the remedy; `None` if the fault can
/// be injected.
pub fn cannot(scenario: &Scenario, kind: ControlPlaneKind, fault: &Fault) -> Option<&'static str> {
    let subject = scenario.subject.kind();
    let is_in_pods = subject.needs_node();
    if kind != ControlPlaneKind::Mock && fault.when.as_ref().is_some_and(|when| when.write.is_some()) {
        return Some(
            "waits for a write, which only the mock API server sees: use `controlPlane: {kind: mock}` or `at`",
        );
    }
    match (fault.name.row().family, kind) {
        (Family::Network, _) if fault.name == Name::NetLoss && is_in_pods => Some(
            "loses packets in a network namespace between a process and the control plane, and Pods do not use it: use `net-freeze`",
        ),
        (Family::Plane, ControlPlaneKind::Kind) if fault.name == Name::LeaderLoss => None,
        (Family::Plane, _) if fault.name == Name::LeaderLoss => Some(
            "stops one of three control planes: use `controlPlane: {kind: kind}` with `--control-planes 3`, or leave it out",
        ),
        (Family::Pods, _) if !is_in_pods => {
            Some("acts on Pods, and the subject does not run in Pods: use `subject: {deployment: …}` or leave it out")
        }
        (Family::Pods, _) if fault.name == Name::CertificateExpiry && !subject.makes_certificate() => Some(
            "replaces a certificate of the run, and this run makes none: name the Secret in `deployment: {secret: NAME}`",
        ),
        (Family::Pods, ControlPlaneKind::Kubeconfig) if needs_processes(fault) => Some(
            "acts on processes of Pods, which are on other machines: use `controlPlane: {kind: node}` or `kind: kind`, or `by: delete`",
        ),
        (Family::Pods, ControlPlaneKind::Mock | ControlPlaneKind::Local) => {
            Some("acts on Pods, which need a node: use `controlPlane: {kind: node}` or leave it out")
        }
        (Family::Workloads, ControlPlaneKind::Mock) if scenario.control_plane.workloads.is_none() => Some(
            "acts on workloads, which the mock does not run by default: add `controlPlane: {workloads: {readyAfter: 200ms}}` or leave it \
             out",
        ),
        (Family::Process, _) if scenario.subject.command().is_none_or(|command| command.restart.is_none()) => {
            Some("kills a process, and nothing starts it again: use `subject: {command: {run: …, restart: always}}`")
        }
        (Family::Registry | Family::Clock | Family::Process | Family::Network, _)
        | (Family::Plane, ControlPlaneKind::Node)
        | (Family::Pods, ControlPlaneKind::Node | ControlPlaneKind::Kind | ControlPlaneKind::Kubeconfig)
        | (
            Family::Requests | Family::Watches | Family::Server | Family::Connections | Family::Workloads,
            ControlPlaneKind::Mock,
        ) => None,
        (Family::Requests | Family::Watches | Family::Server | Family::Connections | Family::Workloads, _) => Some(
            "is played by the mock API server: use `controlPlane: {kind: mock}` or leave it out; only faults of the network (`net-…`), of the \
             registry (`registry-…`), of Pods and of the programs of a control plane are played with real ones",
        ),
        (Family::Plane, ControlPlaneKind::Local) if fault.name == Name::EtcdSlow => None,
        (Family::Plane, ControlPlaneKind::Local) => {
            Some("ends a program that is not started again there: use `controlPlane: {kind: node}` or leave it out")
        }
        (Family::Plane, ControlPlaneKind::Kind | ControlPlaneKind::Kubeconfig) => Some(
            "ends or stops programs of a control plane, which Longhaul must not do in this cluster: use `controlPlane: {kind: node}` or \
             leave it out",
        ),
        (Family::Plane, ControlPlaneKind::Mock) => Some(
            "is about the programs of a real control plane, and the mock is one process: use `controlPlane: {kind: node}` or leave it out",
        ),
    }
}

/// Whether the fault signals or limits processes without using the API server.
fn needs_processes(fault: &Fault) -> bool {
    let by = || fault.keys::<PodKillKeys>().by.unwrap_or_default();
    fault.name == Name::NodePressure || (fault.name == Name::PodKill && by() == KillBy::Signal)
}
