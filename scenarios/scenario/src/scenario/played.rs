//! Decides whether a fault can be injected on a control plane against a kind of subject.
//!
//! The check of scenario files, the option `--control-plane`, and the printed plan all use this module.

use mock_faults::{Family, Fault, KillBy, Name, PodKillKeys, Target};

use super::{ControlPlaneKind, Scenario};

/// The reason why a fault of a scenario cannot be injected on a control plane, with the remedy; `None` if the fault can
/// be injected.
pub fn cannot(scenario: &Scenario, kind: ControlPlaneKind, fault: &Fault) -> Option<&'static str> {
    let subject = scenario.subject.profile();
    let is_in_pods = subject.needs_node;
    if let Some(why) = fault.name.row().targets.iter().find_map(|target| lacks(scenario, *target)) {
        return Some(why);
    }
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
        (Family::Pods, _) if fault.name == Name::CertificateExpiry && !subject.makes_certificate => Some(
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
        (Family::Registry | Family::Clock | Family::Process | Family::Network | Family::Subject, _)
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

/// The reason why a scenario lacks the target of a fault, with the remedy; `None` if it has the target.
fn lacks(scenario: &Scenario, target: Target) -> Option<&'static str> {
    let (subject, kind) = (&scenario.subject, scenario.subject.profile());
    match target {
        Target::Process if !kind.is_started => Some(
            "replaces a process that the run starts, and the run does not start this subject: use `command` or `service`, or \
             `rolling-restart` for Pods",
        ),
        Target::Process if !subject.serves() => {
            Some("is for a subject that serves reviews: add `serves: {path: /mutate}` to `command`, or leave it out")
        }
        Target::Process if kind.processes.len() > 1 => {
            Some("puts one process in the place of another: name one with `run`, or leave it out")
        }
        Target::Process if kind.serves.is_some_and(|serves| serves.port.is_some()) => Some(
            "starts one process before the other ends, and both cannot serve at the one `serves.port`: give the program a flag for \
             `${LONGHAUL_WEBHOOK_PORT}`, or leave one of both out",
        ),
        Target::Process if scenario.api.is_some() => {
            Some("moves reviews to the next process, and the calls of `api` do not move: leave one of both out")
        }
        Target::Process if scenario.alerts.is_some() => {
            Some("ends a process, which then loses its unsent alerts: leave out the fault or `alerts`")
        }
        Target::Certificate if !kind.is_started => Some(
            "replaces the certificate of a webhook that the run starts, and the run does not start this subject: use `command` or \
             `service`, or `certificate-expiry` for Pods",
        ),
        Target::Certificate if !subject.serves() => {
            Some("is for a subject that serves reviews: add `serves: {path: /mutate}` to `command`, or leave it out")
        }
        Target::Service if !kind.is_service => {
            Some("acts on the built-in service: use `subject: {service: {}}`, or leave it out")
        }
        Target::Signatures if !scenario.registry.signed => {
            Some("needs signed images: add `registry: {signed: true}`, or leave it out")
        }
        Target::Validators if subject.upkeep().validators == 0 => {
            Some("acts on validators of the service: add `validators: 2` to `service`, and `registry: {signed: true}`")
        }
        Target::SharedCache if scenario.shared_cache.is_none() => {
            Some("acts on the shared cache of the service: add `sharedCache: {}`, or leave it out")
        }
        Target::Lock if scenario.registry.lock.is_none() => {
            Some("moves the tags of locked images: add `registry: {lock: handed}`, or leave it out")
        }
        Target::Children if subject.children.is_empty() || !scenario.writes_objects() => Some(
            "acts on objects that the subject creates for others: add `children` to `subject`, and `churn` or `script`",
        ),
        Target::Process
        | Target::Certificate
        | Target::Service
        | Target::Signatures
        | Target::Children
        | Target::Validators
        | Target::SharedCache
        | Target::Lock => None,
    }
}

/// Whether the fault signals or limits processes without using the API server.
fn needs_processes(fault: &Fault) -> bool {
    let by = || fault.keys::<PodKillKeys>().by.unwrap_or_default();
    fault.name == Name::NodePressure || (fault.name == Name::PodKill && by() == KillBy::Signal)
}
