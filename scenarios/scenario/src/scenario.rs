//! The scenario file, in which users describe a run.
//!
//! This module owns the keys of the scenario's YAML and their checks; it runs nothing. Sections that belong to another
//! crate (admission load, churn, faults, budgets) have that crate's own types.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadgen::churn::Pace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

mod about;
mod alerts;
mod children;
mod faults;
mod files;
mod given;
mod http;
pub mod library;
mod manifests;
mod metrics;
mod mounts;
mod moved;
mod objects;
mod own;
mod parse;
mod phases;
mod played;
mod rbac;
mod reach;
mod readiness;
mod registry;
mod repro;
mod restart_policy;
mod shared_cache;
mod spelling;
mod subject;
mod validate;
mod webhook;
mod workloads;
mod written;

pub use crate::witness::Witness;
pub use alerts::{Alerts, Beside};
pub use children::{By, Children, Kinds};
pub use faults::Faults;
pub use files::{digest as files_digest, digest_of_programs};
pub use given::{
    DOCKER_CONFIG, FREE_PORTS, Given, KUBECONFIG, METRICS_PORT_NAME, NAMESPACE, TLS_CERT, TLS_DIR, TLS_KEY, WATCH,
    WEBHOOK_PORT, WITNESS_URL, is_written,
};
pub use http::Http;
pub use manifests::{Manifest, read as read_manifests};
pub use metrics::Metrics;
pub use metrics::{METRICS_PORT, series};
pub use mounts::{Mount, check as check_mounts};
pub use own::Own;
pub use parse::{Error, Source};
pub use phases::{PhaseClock, Phases};
pub use played::cannot;
pub use rbac::{Rbac, Rule};
pub use reach::Ground;
pub use reach::{Outside, Reach};
pub use readiness::{Readiness, Which};
pub use registry::{Auth, LockUse, RateLimit, Registry, RegistryKind};
pub use repro::{Need, Repro, Row};
pub use restart_policy::Delays;
pub use restart_policy::{BackOff, Restart};
pub use shared_cache::SharedCache;
pub use spelling::nearest;
pub use subject::{Attach, Build, Command, Deployment, PodsOf, Process, Role, Service, Subject, SubjectKind};
pub use subject::{DeploymentImage, Other, Planned, Scene, ServicePort, Start, Wiring, host_and_port};
pub use webhook::{Configuration, Hook};
pub use webhook::{FailurePolicy, HookRule, Install, MatchCondition, Registration, ReinvocationPolicy, Serves};
pub use workloads::Workloads;
pub use written::{parts, written};

/// Default seed of load, churn and faults. Runs with the same seed have the same plan.
const DEFAULT_SEED: u64 = 1;
/// Default interval of bookmarks. A real server sends one bookmark a minute, which is too rare for a run of a minute.
const DEFAULT_BOOKMARKS_EVERY: Span = Span::from_secs(1);

/// One scenario: the question, the control plane and registry, the subject, the load and faults, and the budgets of the
/// verdict.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// Always `longhaul/v1`.
    pub api_version: ApiVersion,
    /// Short name; part of the record's directory. Lower-case letters, digits and `-`.
    pub name: String,
    /// The question that this scenario answers, in a sentence or two.
    pub description: String,
    /// The seed of load, churn and faults.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// The length of each part of the run.
    pub phases: Phases,
    /// The server of the Kubernetes API.
    #[serde(default)]
    pub control_plane: ControlPlane,
    /// The image registry.
    #[serde(default)]
    pub registry: Registry,
    /// The system under test.
    pub subject: Subject,
    /// Admission reviews that the load generator sends. Default: none.
    #[serde(default)]
    pub admission: Option<loadgen::admission::Config>,
    /// Calls of the subject's API that scales Deployments. Only for the built-in service, which offers this API in such
    /// a run. Allowed together with `churn`, `script` or `admission`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<loadgen::calls::Config>,
    /// Receivers of alerts, for the built-in service. The alerts are compared with the answers to `admission`. Default:
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerts: Option<Alerts>,
    /// A Redis in which the built-in service keeps verdicts. Needs `registry: {signed: true}`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_cache: Option<SharedCache>,
    /// Objects that are created, changed and deleted under load. A list churns several resources at once. Default:
    /// none.
    #[serde(default)]
    pub churn: loadgen::churn::Sections,
    /// Writes of the harness at exact times, or after a fault has had an effect. Allowed together with churn or instead
    /// of it.
    #[serde(default)]
    pub script: Option<loadgen::script::Config>,
    /// The faults and their times. Times count from the start of the warm-up. A fault without a time is active before
    /// the subject starts. Either a list, or `random: {every, from}` with faults that the seed draws; `planned` can
    /// then add a list.
    #[serde(default)]
    pub faults: Faults,
    /// The limits that decide the verdict.
    #[serde(default)]
    pub budgets: record::budgets::Budgets,
    /// The documented bug that the scenario shows.
    #[serde(default)]
    pub repro: Option<Repro>,
}

/// Minimum time between the end of the last random fault and the end of the steady phase, unless `budgets.events.heal`
/// is longer.
const HEAL_LEAST: Duration = Duration::from_secs(10);

impl Scenario {
    /// Draws the faults of `faults.random` by seed and length. Must be called again if the seed or the length of the
    /// run changes. The first random fault comes after the warm-up. The time left after the last random fault,
    /// including the drain, is at least `budgets.events.heal`.
    pub fn draw(&mut self) -> Result<(), mock_faults::random::Error> {
        let heal = self.budgets.events.as_ref().and_then(|events| events.heal).unwrap_or_default();
        let rest = heal.0.saturating_sub(self.phases.drain.0).max(HEAL_LEAST);
        let churned = self.churn.first().map(|churn| churn.resource.as_str());
        let (from, to) = (self.phases.warm_up.0, self.phases.loaded().saturating_sub(rest));
        let resource = churned.and_then(|text| text.split(['.', '/']).next());
        self.faults.draw(self.seed, &mock_faults::random::Window { from, to, resource, planned: &[] })
    }

    /// Whether the scenario writes objects that the subject may watch.
    pub fn writes_objects(&self) -> bool {
        !self.churn.is_empty() || self.script.is_some()
    }

    /// How many times faster than real time the subject's own clock runs.
    pub fn clock_rate(&self) -> u32 {
        self.subject.upkeep().clock_rate.unwrap_or(1).max(1)
    }

    /// Whether a run can start the subject and ask its webhooks. The service answers reviews in scenarios that send some.
    pub fn can_ask(&self) -> bool {
        let profile = self.subject.profile();
        let reviews = if profile.is_service { self.admission.is_some() } else { profile.role.is_some() };
        let is_mock = self.control_plane.kind == ControlPlaneKind::Mock;
        reviews && is_mock && self.subject.serves() && profile.is_started && !profile.needs_node
    }

    /// Converts phases and rates to real time, if the scenario gives them in a clock that runs `rate` times faster.
    pub fn by_real_clock(&mut self, rate: u32) {
        self.phases.by_real_clock(rate);
        let Some(times) = self.phases.hurry_rates(rate) else { return };
        let faster = |rate: &mut units::Rate| *rate = units::Rate::per_second(rate.as_per_second() * times);
        self.admission.iter_mut().for_each(|load| faster(&mut load.rate));
        for section in &mut self.churn.0 {
            if let Pace::At(rate) = &mut section.rate {
                faster(rate);
            }
        }
    }

    /// How many times shorter the lifetimes in the control plane are.
    pub fn compression(&self) -> u32 {
        self.control_plane.compress.or(self.subject.upkeep().clock_rate).unwrap_or(1).max(1)
    }

    /// The judged resources, without and with their version: `packages.longhaul.dev` and
    /// `packages.longhaul.dev/v1alpha1`. The judged resources are those that the subject is configured to watch, or
    /// else those that script and churn write. The list is empty if the subject watches nothing.
    pub fn judged_resources(&self) -> Vec<(String, String)> {
        if self.subject.watches_nothing() {
            return Vec::new();
        }
        let written =
            self.script.iter().map(|script| &script.resource).chain(self.churn.iter().map(|churn| &churn.resource));
        let told: Vec<&String> =
            if self.subject.watches.is_empty() { written.collect() } else { self.subject.watches.iter().collect() };
        let mut judged: Vec<(String, String)> = Vec::new();
        for names in told.into_iter().filter_map(|text| loadgen::churn::names(text)) {
            if !judged.contains(&names) {
                judged.push(names);
            }
        }
        judged
    }
}

/// The version of the file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The first and only version of the file format.
    #[serde(rename = "longhaul/v1")]
    V1,
}

/// The server of the Kubernetes API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ControlPlane {
    /// The kind of control plane.
    #[serde(default = "mock")]
    pub kind: ControlPlaneKind,
    /// Interval between two bookmarks on a watch that requested bookmarks.
    #[serde(default = "default_bookmarks_every")]
    pub bookmarks_every: Span,
    /// How many times shorter lifetimes on the mock control plane are, so that a day's watches are remade in minutes.
    /// This shortens watches, tokens, the history that a watch can resume from, and idle connections. The interval of
    /// bookmarks is shortened if it is longer than a minute divided by this. Faults and phases keep their times.
    /// Default: the subject's `clockRate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress: Option<u32>,
    /// How the mock lets workloads become ready. Default: they never become ready, as with kube-apiserver and etcd
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workloads: Option<Workloads>,
    /// The HTTP versions that the server offers to the subject. Default: both, HTTP/2 first.
    #[serde(default)]
    pub http: Http,
    /// Manifests that are applied, server-side, before the subject starts: files and folders of plain YAML, relative to
    /// the scenario file. Definitions of custom resources are applied first, then namespaces, then the rest in the
    /// written order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<PathBuf>,
    /// The cluster that the command line names. A scenario file cannot name it: only the user who starts a run knows
    /// which clusters may be touched.
    #[serde(skip)]
    pub named: Named,
}

/// A cluster that the command line names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// The settings of a kind cluster.
    pub containers: kind::containers::Config,
    /// The path of the kubeconfig; `None` for the file that `KUBECONFIG` names.
    pub kubeconfig: Option<PathBuf>,
    /// The name of the cluster that a run may change: a cluster or a context in the kubeconfig.
    pub cluster: Option<String>,
}

impl ControlPlane {
    /// Reads the manifests in the files and folders that `controlPlane.manifests` names.
    pub fn manifests(&self) -> Result<Vec<Manifest>, String> {
        manifests::read(&Ground::looked_at(Path::new("")), &self.manifests)
    }
}

impl Default for ControlPlane {
    fn default() -> Self {
        Self {
            kind: ControlPlaneKind::Mock,
            bookmarks_every: DEFAULT_BOOKMARKS_EVERY,
            compress: None,
            workloads: None,
            http: Http::Both,
            manifests: Vec::new(),
            named: Named::default(),
        }
    }
}

/// The kinds of control planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum ControlPlaneKind {
    /// The mock API server inside this process.
    Mock,
    /// Real etcd and kube-apiserver from `KUBEBUILDER_ASSETS`, as child processes of the run.
    Local,
    /// A whole real node in its own namespaces on this machine. This node consists of the programs in
    /// `KUBEBUILDER_ASSETS`, containerd and runc. Needs root.
    Node,
    /// A kind cluster (kind.sigs.k8s.io). If `longhaul cluster up --kind kind` has started one, that one is used. Otherwise the run creates
    /// one and removes it at the end.
    Kind,
    /// An existing cluster, through its kubeconfig. The command line must name it: `--i-know-this-cluster NAME`.
    Kubeconfig,
}

impl ControlPlaneKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Mock => "mock",
            Self::Local => "local",
            Self::Node => "node",
            Self::Kind => "kind",
            Self::Kubeconfig => "kubeconfig",
        }
    }

    pub fn has_nodes(self) -> bool {
        matches!(self, Self::Node | Self::Kind | Self::Kubeconfig)
    }
}

fn mock() -> ControlPlaneKind {
    ControlPlaneKind::Mock
}
fn default_seed() -> u64 {
    DEFAULT_SEED
}
fn default_bookmarks_every() -> Span {
    DEFAULT_BOOKMARKS_EVERY
}
