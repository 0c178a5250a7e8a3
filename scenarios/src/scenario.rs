//! The scenario file: what a run consists of, as people write it.
//!
//! This module owns the YAML shape and its checks. It does not run anything. Each section that belongs to another
//! crate (admission load, churn, faults, budgets) is that crate's own type: this module only puts them together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

mod about;
mod attach;
mod children;
mod faults;
mod files;
mod given;
mod http;
pub mod library;
mod manifests;
mod metrics;
mod objects;
mod own;
mod parse;
mod processes;
mod rbac;
mod reach;
mod readiness;
mod registry;
mod repro;
mod restart_policy;
mod upkeep;
mod validate;
mod webhook;
mod written;

pub use crate::witness::Witness;
pub(crate) use attach::host_and_port;
pub use children::{By, Children, Drift, Kinds};
pub use faults::Faults;
pub(crate) use files::{digest as files_digest, digest_of_programs};
pub(crate) use given::{Given, METRICS_PORT_NAME, TLS_CERT, TLS_DIR, TLS_KEY, WEBHOOK_PORT};
pub use http::Http;
pub(crate) use manifests::{Manifest, read as read_manifests};
pub use metrics::Metrics;
pub(crate) use metrics::{METRICS_PORT, series};
pub use own::Own;
pub(crate) use parse::nearest;
pub use parse::{Error, Source};
pub use processes::NamedCommand;
pub use rbac::{Rbac, Rule};
pub(crate) use reach::Ground;
pub use reach::{Outside, Reach};
pub use readiness::{Readiness, Which};
pub use registry::{Auth, RateLimit, Registry, RegistryKind};
pub use repro::{Need, Repro, Row};
pub(crate) use restart_policy::Delays;
pub use restart_policy::{BackOff, Restart};
pub use upkeep::{Certificates, Restarts, TrustedKeys};
pub(crate) use webhook::{Configuration, Hook};
pub use webhook::{FailurePolicy, HookRule, Install, MatchCondition, ReinvocationPolicy, Webhook};
pub(crate) use written::{parts, written};

/// Runs with the same seed have the same plan; this is the seed when a file names none.
const DEFAULT_SEED: u64 = 1;
/// How long a subject may take until it is ready. Generous: a Node controller on a busy CI machine needs ten seconds.
const DEFAULT_START_TIMEOUT: Span = Span::from_secs(60);
/// How long a subject may take to exit after SIGTERM before it is killed. kubelet's default grace is 30 s.
const DEFAULT_STOP_TIMEOUT: Span = Span::from_secs(30);
/// Bookmarks every second: a real server sends one a minute, far too rarely for a run of a minute to show anything.
const DEFAULT_BOOKMARKS_EVERY: Span = Span::from_secs(1);

/// One scenario: the question, the world, the subject, what happens to it, and what decides.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// Always `longhaul/v1`.
    pub api_version: ApiVersion,
    /// Short name; part of the record's directory. Lower-case letters, digits and `-`.
    pub name: String,
    /// The question that this scenario answers, in a sentence or two.
    pub description: String,
    /// Load, churn and faults are planned from this number.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How long each part of the run takes.
    pub phases: Phases,
    /// What answers the Kubernetes API.
    #[serde(default)]
    pub control_plane: ControlPlane,
    /// What answers for images.
    #[serde(default)]
    pub registry: Registry,
    /// The system under test.
    pub subject: Subject,
    /// Admission load, or nothing.
    #[serde(default)]
    pub admission: Option<loadgen::admission::Config>,
    /// Calls of the subject's API over Deployments, or nothing. For the built-in service, which offers it in such a run. Beside `churn`, `script`
    /// or `admission`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<loadgen::calls::Config>,
    /// Object churn, or nothing; a list churns several resources at once.
    #[serde(default)]
    pub churn: loadgen::churn::Sections,
    /// Writes at exact times, or after the hit of a fault; beside churn or instead of it.
    #[serde(default)]
    pub script: Option<loadgen::script::Config>,
    /// What goes wrong, and when. Times count from the start of the warm-up; a fault without a time is armed before the subject
    /// starts. A list, or `random: {every, from}` with faults that the seed draws, and perhaps `planned` with a list beside it.
    #[serde(default)]
    pub faults: Faults,
    /// What decides the verdict.
    #[serde(default)]
    pub budgets: reports::budgets::Budgets,
    /// The documented bug that the scenario shows.
    #[serde(default)]
    pub repro: Option<Repro>,
}

/// So long before the end of the steady phase every drawn fault is over, if healing is not given longer.
const HEAL_LEAST: Duration = Duration::from_secs(10);

impl Scenario {
    /// Draws the faults of `faults.random` by seed and length; to be asked again after either has changed. The first comes after the
    /// warm-up. After the last one there is the time that `budgets.events.heal` gives, of which the drain is a part.
    pub fn draw(&mut self) -> Result<(), mock_faults::random::Error> {
        let heal = self.budgets.events.as_ref().and_then(|events| events.heal).unwrap_or_default();
        let rest = heal.0.saturating_sub(self.phases.drain.0).max(HEAL_LEAST);
        let churned = self.churn.first().map(|churn| churn.resource.as_str());
        let (from, to) = (self.phases.warm_up.0, self.phases.loaded().saturating_sub(rest));
        let resource = churned.and_then(|text| text.split(['.', '/']).next());
        self.faults.draw(self.seed, &mock_faults::random::Window { from, to, resource, planned: &[] })
    }

    /// How many times shorter everything lives that the control plane lets live for a while.
    pub fn compression(&self) -> u32 {
        self.control_plane.compress.or(self.subject.clock_rate).unwrap_or(1).max(1)
    }

    /// What is judged, as names and spellings: `packages.longhaul.dev` and `packages.longhaul.dev/v1alpha1`. That is what the
    /// subject is told to watch, or else what script and churn write; nothing where it watches nothing.
    pub fn judged(&self) -> Vec<(String, String)> {
        if self.subject.is_webhook_only() {
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
    /// The first and only one.
    #[serde(rename = "longhaul/v1")]
    V1,
}

/// How long each part of a run takes. Everything starts with the warm-up; load and churn stop with the steady phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Phases {
    /// Load runs, latency is not judged yet.
    pub warm_up: Span,
    /// Load runs and everything is judged.
    pub steady: Span,
    /// No load: the subject gets the time to catch up before anything counts as missed.
    pub drain: Span,
}

impl Phases {
    /// From the start of the warm-up to the end of the steady phase.
    pub fn loaded(&self) -> Duration {
        self.warm_up.0 + self.steady.0
    }

    /// All of it.
    pub fn total(&self) -> Duration {
        self.loaded() + self.drain.0
    }
}

/// What answers the Kubernetes API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ControlPlane {
    /// Which one.
    pub kind: ControlPlaneKind,
    /// How often a watch that asked for bookmarks gets one.
    #[serde(default = "default_bookmarks_every")]
    pub bookmarks_every: Span,
    /// How many times shorter everything lives that a server lets live for a while: watches, tokens, history that can be resumed from, idle
    /// connections, and the time between bookmarks where it is longer than a minute's part. So a day's watches are remade in minutes. Faults
    /// and phases keep their times. Only the mock control plane can. Default: as `subject.clockRate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress: Option<u32>,
    /// Which versions of HTTP the subject is offered. Default: both, HTTP/2 first.
    #[serde(default)]
    pub http: Http,
    /// What is applied, server-side, and served before the subject starts: files and folders of plain YAML, relative to the scenario file.
    /// Definitions of custom resources first, then namespaces, then the rest as it is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<PathBuf>,
}

impl ControlPlane {
    /// Reads [`Self::manifests`].
    pub(crate) fn manifests(&self) -> Result<Vec<Manifest>, String> {
        manifests::read(&Ground::looked_at(Path::new("")), &self.manifests)
    }
}

impl Default for ControlPlane {
    fn default() -> Self {
        Self {
            kind: ControlPlaneKind::Mock,
            bookmarks_every: DEFAULT_BOOKMARKS_EVERY,
            compress: None,
            http: Http::Both,
            manifests: Vec::new(),
        }
    }
}

/// The control planes that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum ControlPlaneKind {
    /// The mock API server inside this process.
    Mock,
    /// Real etcd and kube-apiserver from `KUBEBUILDER_ASSETS`, as child processes of the run.
    Local,
}

/// The system under test.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Subject {
    /// The built-in service, any command, or what runs already.
    pub kind: SubjectKind,
    /// What it does: `webhook` answers reviews and watches nothing, so it is ready when its port answers TLS, and needs no witness. `both`
    /// watches as well, and its answers are judged as those of a `webhook`. Default: whatever the other keys say, and reviews are answered
    /// as the service's policy wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// `kind: service`: a service configuration beside the scenario file. Addresses, certificates and registries in
    /// it are replaced by those of the run.
    #[serde(default)]
    pub config: Option<PathBuf>,
    /// `kind: service`: settings written here instead of in a file; the service itself checks them.
    #[serde(default)]
    pub settings: Option<serde_json::Map<String, serde_json::Value>>,
    /// `kind: command`: the program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// `kind: command`: several processes instead of one, such as a controller and its webhook, or two replicas. All have the same kubeconfig
    /// and variables, and are measured together; one that ends has ended the subject.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<NamedCommand>,
    /// `kind: attach`: its process, which is measured with all below it. Without one nothing is known of memory, descriptors and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// `kind: attach`: where it serves admission reviews, such as `https://127.0.0.1:9443/validate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `kind: attach`: the certificates of who signed that of its webhook, a PEM file relative to the scenario file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// `kind: attach`: the kubeconfig that it reads, relative to the scenario file. It is written when the run begins, for your eyes alone, and
    /// removed when it ends. Default: a file in a temporary folder, which is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<PathBuf>,
    /// `kind: command`: variables for it, beside `KUBECONFIG` and `LONGHAUL_WITNESS_URL`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// `kind: command`: its working directory, relative to the scenario file.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// `kind: command`: what makes up its build, files and folders relative to the scenario file, such as the script that an interpreter
    /// runs. The SHA-256 of all of them together, as of what `sha256sum` prints of them, is the subject's digest in the record, so that two
    /// versions differ. Default: the program file of `command`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
    /// `kind: command`: by what it is known to be ready: `{url: ADDRESS}`, `{log: TEXT}` or `{request: first}`. Default: it has asked the
    /// control plane for what is judged, and its webhook's port is open; one of `role: webhook` answers TLS there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Readiness>,
    /// Where it serves admission reviews and how that is registered. A command gets `LONGHAUL_WEBHOOK_PORT`, `LONGHAUL_TLS_CERT`,
    /// `LONGHAUL_TLS_KEY` and `LONGHAUL_TLS_DIR`, the folder of both as `tls.crt` and `tls.key`, as variables and as `${LONGHAUL_TLS_DIR}` in
    /// `command` and `env`.
    #[serde(default)]
    pub webhook: Option<Webhook>,
    /// What of it is registered in the control plane before the load, and removed at the end: `webhook`, or the project's own
    /// configurations, `{webhooks: config/webhook/manifests.yaml}`. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<Install>,
    /// What it may do at the control plane. Left out, the service has the rights of its manifests and a command all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rbac: Option<Rbac>,
    /// What it is told to watch, and what is judged, as `plural.group/version` (`configmaps/v1` in the core group). Default: what
    /// the script and the churn write. It gets them as `LONGHAUL_WATCH`, the first one first.
    #[serde(default)]
    pub watches: Vec<String>,
    /// How the subject proves what it saw. A subject of `role: webhook` saw nothing and has none.
    #[serde(default = "no_witness")]
    pub witness: Witness,
    /// Where it tells what it believes in: the address of a page of JSON lines, one for each object, with `namespace`, `name`, `uid` and
    /// `resourceVersion`, and `resource` (`packages.longhaul.dev`) where it tells of several. The service has such a page anyhow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<String>,
    /// Its own metrics: the address of its Prometheus page, over plain HTTP, or a mapping. The heap that its runtime or allocator has in use is
    /// recognised in it, and judges growth before the resident set does. `${LONGHAUL_METRICS_PORT}` in it, in `command` and in `env` is a free
    /// port, which the command also finds in the variable of that name. The service has such a page anyhow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// The objects that it makes for each of those that are churned; a list where they are of several kinds. What a witness proves by children
    /// it proves by the first of them.
    #[serde(default, skip_serializing_if = "no_children")]
    pub children: Kinds,
    /// A process that ends by itself is started again, as a kubelet does it: `always` or `onFailure`. Default: its end fails the run. How often
    /// it may is `budgets.crashes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// How long nobody runs after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_off: Option<BackOff>,
    /// It is restarted while load runs, as a rolling update does it. For a subject that serves admission reviews.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<Restarts>,
    /// Its serving certificates are replaced while load runs. For a subject that serves admission reviews.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates: Option<Certificates>,
    /// `kind: service`, with `registry: {signed: true}`: keys that it trusts are replaced while load runs, and it has a second to notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_keys: Option<TrustedKeys>,
    /// How many times faster its own clock runs, by libfaketime: where it is linked dynamically and not written in Go. What the harness
    /// measures stays in real time; the server's side is compressed alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_rate: Option<u32>,
    /// How long it may take until it is ready.
    #[serde(default = "default_start_timeout")]
    pub start_timeout: Span,
    /// How long it may take to exit after SIGTERM.
    #[serde(default = "default_stop_timeout")]
    pub stop_timeout: Span,
}

/// The kinds of subject that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SubjectKind {
    /// The built-in `longhaul-service`.
    Service,
    /// Any command.
    Command,
    /// What runs already: it is observed, and neither started nor stopped.
    Attach,
}

/// What a subject does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// It answers admission reviews, and watches nothing. What its policy is nobody knows: every answer that an API server accepts is right.
    Webhook,
    /// It watches, and answers reviews by a policy that nobody knows.
    Both,
}

impl Subject {
    /// Whether it only answers reviews.
    pub fn is_webhook_only(&self) -> bool {
        self.role == Some(Role::Webhook)
    }

    /// Whether nobody knows how it has to answer reviews.
    pub fn has_own_policy(&self) -> bool {
        self.role.is_some()
    }

    /// Whether it answers reviews.
    pub fn serves(&self) -> bool {
        let told = self.url.is_some() || self.webhook.as_ref().is_some_and(|webhook| webhook.path.is_some());
        self.kind == SubjectKind::Service || told || self.own_webhooks_file().is_some()
    }

    /// Where the configurations of its own webhooks are.
    pub(crate) fn own_webhooks_file(&self) -> Option<&Path> {
        match &self.install {
            Some(Install::Webhooks(file)) => Some(file),
            Some(Install::Webhook) | None => None,
        }
    }

    /// Reads them; none where it has none.
    pub(crate) fn own_webhooks(&self) -> Result<Vec<Configuration>, String> {
        let ground = Ground::looked_at(Path::new(""));
        self.own_webhooks_file().map_or(Ok(Vec::new()), |file| webhook::read(&ground, file))
    }

    /// How long nobody runs after a crash, where what a server lets live for a while lives so many times shorter.
    pub(crate) fn delays(&self, compression: u32) -> Delays {
        self.back_off.unwrap_or_default().delays(compression)
    }
}

impl Role {
    /// As it is written in a scenario file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Both => "both",
        }
    }
}

impl ControlPlaneKind {
    /// As it is written in a scenario file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mock => "mock",
            Self::Local => "local",
        }
    }
}

impl SubjectKind {
    /// As it is written in a scenario file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Command => "command",
            Self::Attach => "attach",
        }
    }
}

fn no_children(children: &Kinds) -> bool {
    children.is_empty()
}

fn default_seed() -> u64 {
    DEFAULT_SEED
}
fn no_witness() -> Witness {
    Witness::None(crate::witness::Nothing {})
}
fn default_start_timeout() -> Span {
    DEFAULT_START_TIMEOUT
}
fn default_stop_timeout() -> Span {
    DEFAULT_STOP_TIMEOUT
}
fn default_bookmarks_every() -> Span {
    DEFAULT_BOOKMARKS_EVERY
}
