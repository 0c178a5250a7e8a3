//! `subject`: the system under test. This module has the keys of every subject; each kind of subject has a file below.
//!
//! To add a kind of subject, add a file with its keys, and one line to the list of kinds. The file of a kind defines
//! the programs to start, their settings, and their abilities. All other code reads the [`Profile`] of a
//! subject and never compares names of kinds of subjects.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use units::Span;

use super::restart_policy::Delays;
use super::webhook::{self, Configuration};
use super::{BackOff, Ground, Install, Kinds, Metrics, Rbac, Readiness, Restart, Serves};
use crate::subject::{Attached, Launch, Line};
use crate::witness::{Nothing, Witness};

mod attach;
mod command;
mod deployment;
mod flat;
mod service;

pub use attach::host_and_port;
pub use attach::{Attach, PodsOf};
pub use command::{Command, Process};
pub(super) use deployment::look as look_at_manifests;
pub use deployment::{Build, Deployment};
pub use deployment::{Image as DeploymentImage, Planned, ServicePort};
pub(super) use flat::{flow, rewritten};
pub use service::Service;
pub use service::{Other, Wiring};

/// Default time limit of a subject's start. A Node.js controller on a busy CI machine needs ten seconds.
const DEFAULT_START_TIMEOUT: Span = Span::from_secs(60);
/// Default time for a subject to exit after SIGTERM before it is killed. kubelet's default grace period is 30 s.
const DEFAULT_STOP_TIMEOUT: Span = Span::from_secs(30);

/// A wrong key of `subject`, and the problem with this key.
pub(super) type Wrong = (&'static str, String);

/// One kind of subject. The type that implements this trait holds the keys of the kind.
pub trait Kind {
    /// Everything that a run must know about the subject before it starts the subject.
    fn profile(&self) -> Profile<'_>;

    /// Refuses keys of this kind that contradict each other.
    fn check(&self, subject: &Subject) -> Result<(), Wrong>;

    /// Lets the subject's clock run `rate` times faster. A subject that the run does not start keeps its clock.
    fn hurry(&mut self, _rate: u32) {}

    /// Returns the programs to start in a run, or the subject that runs already.
    fn start(&self, scene: &Scene<'_>) -> anyhow::Result<Start>;
}

/// Everything that a run must know about a subject of any kind. [`Profile::of`] has the values of most subjects.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and none is a state")]
pub struct Profile<'a> {
    /// The key of this kind's settings in a scenario file.
    pub name: &'static str,
    /// Whether the subject is the built-in service. Only the built-in service has a known policy, known HTTP pages,
    /// roles and API, and maps the registry's host in image names to another address.
    pub is_service: bool,
    /// Files that the run reads or writes later, each with the key that names it.
    pub files: Vec<(&'static str, &'a Path)>,
    /// Files and folders of manifests that the run applies later.
    pub manifests: &'a [PathBuf],
    /// The files that make up the subject's build, besides the program file.
    pub build: &'a [PathBuf],
    /// Texts that may contain placeholders `${NAME}` for values of the run, each with the key that contains it.
    pub texts: Vec<Templated<'a>>,
    /// The subject's role, if the scenario states one.
    pub role: Option<Role>,
    /// The condition under which the subject counts as ready, if the scenario names one.
    pub ready: Option<Readiness>,
    /// The URL of the subject's webhook, if the run does not choose it.
    pub url: Option<&'a str>,
    /// The file with the authorities of the webhook's certificate, if the run does not create the certificate.
    pub ca: Option<&'a Path>,
    /// The name in the webhook's certificate, if it differs from the host of the webhook's URL.
    pub server_name: Option<&'a str>,
    /// Whether the subject runs in Pods, which needs a control plane with a node.
    pub needs_node: bool,
    /// The subject's Pods, if they exist before the run.
    pub attached_pods: Option<&'a PodsOf>,
    /// The subject's user at the control plane, if its manifests define one.
    pub user: Option<String>,
    /// The DNS names of the Service in front of the subject's webhook.
    pub service_names: Vec<String>,
    /// Whether the run creates the subject's serving certificate and stores it in a Secret.
    pub makes_certificate: bool,
    /// The `serves` key: path and port of the subject's webhook.
    pub serves: Option<&'a Serves>,
    /// The key that sets the webhook's address, for messages.
    pub serving: &'static str,
    /// The folders that a kubelet would mount for the subject's processes.
    pub mounts: Option<&'a BTreeMap<PathBuf, super::Mount>>,
    /// Whether a run starts the subject, and therefore can give the subject a faster clock.
    pub is_started: bool,
    /// The names of the subject's processes, if the subject has several.
    pub processes: Vec<&'a str>,
    /// How the harness keeps the subject's processes.
    pub upkeep: Upkeep,
    /// The line about the subject's processes in the printed plan.
    pub plan: Option<(&'static str, String)>,
    /// The reason why the subject's processes are not measured, and a further note for the reader of the report.
    pub notes: Notes,
}

impl Profile<'_> {
    /// The profile that most kinds of subjects have.
    fn of(name: &'static str) -> Self {
        Self {
            name,
            is_service: false,
            files: Vec::new(),
            manifests: &[],
            build: &[],
            texts: Vec::new(),
            role: None,
            ready: None,
            url: None,
            ca: None,
            server_name: None,
            needs_node: false,
            attached_pods: None,
            user: None,
            service_names: Vec::new(),
            makes_certificate: false,
            serves: None,
            serving: "`serves: {path: /mutate}`",
            mounts: None,
            is_started: false,
            processes: Vec::new(),
            upkeep: Upkeep::default(),
            plan: None,
            notes: Notes::default(),
        }
    }

    /// Whether the subject watches the control plane.
    pub fn watches(&self) -> bool {
        self.role != Some(Role::Webhook)
    }
}

/// The values of a run that a subject needs at its start.
pub struct Scene<'a> {
    pub ground: &'a Ground,
    /// A line of the subject's output by which the harness knows that the subject is ready.
    pub awaited: Option<Arc<Line>>,
    /// Whether the subject is started with a planted bug.
    pub is_planted: bool,
    /// The path of the service's program, if the user named one.
    pub program: Option<&'a Path>,
    /// Addresses and certificates for the service's configuration. A call takes ports, so only kinds of subjects that
    /// need the addresses call this function.
    pub wiring: &'a dyn Fn() -> anyhow::Result<Wiring>,
    /// Writes a file with this name for the subject. The function `write` returns the path of the written file.
    pub write: &'a dyn Fn(&str, &str) -> anyhow::Result<PathBuf>,
}

/// A subject immediately before the run starts it.
pub enum Start {
    /// Programs to start, and the address of the subject's health page, if the run knows it.
    Programs(Vec<Launch>, Option<SocketAddr>),
    /// A subject that runs already, and the path of its kubeconfig if the scenario names one.
    Runs(Attached, Option<PathBuf>),
    /// A subject that runs in Pods.
    Deployed(Box<Planned>),
}

impl Start {
    pub fn launches(&self) -> &[Launch] {
        match self {
            Self::Programs(launches, _) => launches,
            Self::Runs(..) | Self::Deployed(_) => &[],
        }
    }

    /// The program files of all processes of the subject.
    pub fn programs(&self) -> Vec<PathBuf> {
        match self {
            Self::Programs(launches, _) => launches.iter().map(|launch| launch.program.clone()).collect(),
            Self::Runs(attached, _) => {
                attached.pid().map(|pid| PathBuf::from(format!("/proc/{pid}/exe"))).into_iter().collect()
            }
            Self::Deployed(planned) => planned.files(),
        }
    }
}

/// How the harness keeps the processes that it starts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Upkeep {
    pub restart: Option<Restart>,
    pub back_off: Option<BackOff>,
    /// Number of processes that verify image signatures.
    pub validators: usize,
    pub clock_rate: Option<u32>,
    pub stop_timeout: Option<Span>,
}

impl Upkeep {
    /// The delays before a restart after a crash, if the control plane's lifetimes are divided by `compression`.
    pub fn delays(&self, compression: u32) -> Delays {
        self.back_off.unwrap_or_default().delays(compression)
    }

    /// The time that a process has to exit after SIGTERM.
    pub fn stop_timeout(&self) -> Duration {
        self.stop_timeout.unwrap_or(DEFAULT_STOP_TIMEOUT).0
    }

    fn check(&self) -> Result<(), Wrong> {
        if let Some(text) = self.back_off.as_ref().and_then(BackOff::problem) {
            return wrong("backOff", text);
        }
        if self.back_off.is_some() && self.restart.is_none() {
            return wrong(
                "backOff",
                "`backOff` is the time between a crash and the next start, but there is no next start: add `restart: always`",
            );
        }
        Ok(())
    }
}

/// Notes about the subject for the reader of the report.
#[derive(Debug, Default)]
pub struct Notes {
    /// The reason why the subject's processes are not measured.
    pub unsampled: Option<&'static str>,
    /// A further note for the reader of the report.
    pub note: Option<&'static str>,
}

/// A text with placeholders `${NAME}`.
pub struct Templated<'t> {
    pub key: &'static str,
    pub text: &'t str,
    /// Names that have a value in this text only, in addition to the names with a value in the whole run.
    pub own: Vec<&'t str>,
}

/// The role of a subject: whether it answers reviews by a policy that Longhaul does not know, and whether it watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// The subject answers admission reviews and watches nothing. The subject's policy is unknown, so every answer that
    /// an API server accepts counts as right.
    Webhook,
    /// The subject watches, and also answers admission reviews by a policy that is unknown.
    Both,
}

impl Role {
    /// The name of the role in a scenario file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Both => "both",
        }
    }
}

macro_rules! subject {
    (
        kinds { $($(#[$of:meta])* $key:ident: $settings:ident,)* }
        shared { $($(#[$about:meta])* $name:ident: $type:ty,)* }
    ) => {
        /// The kinds of subject, with their keys.
        #[derive(Debug, Clone)]
        pub enum SubjectKind {
            $($(#[$of])* $settings($settings),)*
        }

        /// The system under test.
        #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "Written", into = "Written")]
        pub struct Subject {
            /// The kind of the subject, with the keys of that kind.
            pub kind: SubjectKind,
            $($(#[$about])* pub $name: $type,)*
        }

        /// `subject` as written: one key for the kind, and the keys that every subject has.
        #[derive(Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        #[schemars(rename = "Subject")]
        struct Written {
            $(
                $(#[$of])*
                #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
                $key: Option<$settings>,
            )*
            $($(#[$about])* $name: $type,)*
        }

        impl TryFrom<Written> for Subject {
            type Error = String;

            fn try_from(written: Written) -> Result<Self, String> {
                let mut kinds = Vec::new();
                $(kinds.extend(written.$key.map(|settings| (stringify!($key), SubjectKind::$settings(settings))));)*
                let named: Vec<String> = kinds.iter().map(|(key, _)| format!("`{key}`")).collect();
                match (kinds.pop(), kinds.is_empty()) {
                    (Some((_, kind)), true) => Ok(Self { kind, $($name: written.$name,)* }),
                    (Some(_), false) => Err(format!("`subject` is one of {}: keep one", named.join(" and "))),
                    (None, _) => Err(UNNAMED.to_owned()),
                }
            }
        }

        impl From<Subject> for Written {
            fn from(subject: Subject) -> Self {
                let mut written = Self { $($key: None,)* $($name: subject.$name,)* };
                match subject.kind {
                    $(SubjectKind::$settings(settings) => written.$key = Some(settings),)*
                }
                written
            }
        }

        impl Subject {
            pub fn kind(&self) -> &dyn Kind {
                match &self.kind { $(SubjectKind::$settings(settings) => settings,)* }
            }

            /// Everything that a run must know about the subject.
            pub fn profile(&self) -> Profile<'_> {
                self.kind().profile()
            }

            pub fn kind_mut(&mut self) -> &mut dyn Kind {
                match &mut self.kind { $(SubjectKind::$settings(settings) => settings,)* }
            }
        }

        fn keys() -> BTreeMap<&'static str, Vec<String>> {
            BTreeMap::from([$((stringify!($key), properties(&schemars::schema_for!($settings)))),*])
        }
    };
}

subject! {
    kinds {
        /// The built-in `longhaul-service`.
        service: Service,
        /// Any command: a list of the program and its arguments, or a mapping.
        command: Command,
        /// A subject that runs already. The run observes it, but neither starts nor stops it.
        attach: Attach,
        /// A subject in Pods of a real node: manifests that the run applies, and images.
        deployment: Deployment,
    }
    shared {
        /// The webhooks that are registered in the control plane before the load and removed at the end: `webhook`,
        /// optionally with settings as `{webhook: {failurePolicy: Fail}}`, or the project's own configurations,
        /// `{webhooks: config/webhook/manifests.yaml}`. Default: none.
        install: Option<Install>,
        /// The subject's rights at the control plane. Default: the service has the rights of its manifests, and every
        /// other subject has all rights.
        rbac: Option<Rbac>,
        /// The resources that the subject is configured to watch and that are judged, as `plural.group/version`
        /// (`configmaps/v1` in the core group). Default: the resources that script and churn write. The subject gets
        /// them as `LONGHAUL_WATCH`, in this order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        watches: Vec<String>,
        /// How the subject proves its observations. A subject of `role: webhook` observes nothing and has no witness.
        #[serde(default = "no_witness")]
        witness: Witness,
        /// The address of an HTTP page with the subject's state: JSON lines, one per object, with `namespace`, `name`,
        /// `uid` and `resourceVersion`. If the page covers several resources, each line also has `resource`
        /// (`packages.longhaul.dev`). The built-in service has such a page by default.
        world: Option<String>,
        /// The subject's own metrics: the address of its Prometheus page, over plain HTTP, or a mapping. If the page
        /// has the heap in use of a known runtime or allocator, growth is judged by it instead of the resident set.
        /// `${LONGHAUL_METRICS_PORT}` in the address, and in arguments and variables of a command, is a free port; the
        /// command also gets it as a variable of that name. The built-in service has such a page by default.
        metrics: Option<Metrics>,
        /// The objects that the subject creates for each churned object; a list if they are of several kinds. A witness
        /// that uses children uses the first kind.
        #[serde(default, skip_serializing_if = "no_children")]
        children: Kinds,
        /// Time limit until the subject is ready.
        #[serde(default = "default_start_timeout")]
        start_timeout: Span,
    }
}

/// The error message for a scenario whose subject has no kind.
const UNNAMED: &str = "`subject` has no kind: add `service: {}` for the built-in service, `command: [program, argument, …]`, `attach: \
                       {pid: NUMBER}` or `deployment: {manifests: [FOLDER]}`";

impl Subject {
    /// Whether the subject watches nothing, so that it cannot prove any observation.
    pub fn watches_nothing(&self) -> bool {
        !self.profile().watches()
    }

    /// Whether the subject answers reviews by a policy of its own, so that the right answers are unknown.
    pub fn has_own_policy(&self) -> bool {
        self.profile().role.is_some()
    }

    pub fn serves(&self) -> bool {
        let told = self.profile().url.is_some() || self.profile().serves.is_some_and(|serves| serves.path.is_some());
        self.profile().is_service || told || self.own_webhooks_file().is_some()
    }

    pub fn upkeep(&self) -> Upkeep {
        self.profile().upkeep
    }

    /// The settings of the built-in service, if that is the subject.
    pub fn service_mut(&mut self) -> Option<&mut Service> {
        match &mut self.kind {
            SubjectKind::Service(service) => Some(service),
            _ => None,
        }
    }

    pub fn command(&self) -> Option<&Command> {
        match &self.kind {
            SubjectKind::Command(command) => Some(command),
            _ => None,
        }
    }

    pub fn command_mut(&mut self) -> Option<&mut Command> {
        match &mut self.kind {
            SubjectKind::Command(command) => Some(command),
            _ => None,
        }
    }

    /// Refuses keys of the subject that contradict each other.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        self.kind().check(self)?;
        self.upkeep().check()
    }

    /// The file with the subject's own webhook configurations.
    pub fn own_webhooks_file(&self) -> Option<&Path> {
        match &self.install {
            Some(Install::Webhooks(file)) => Some(file),
            Some(Install::Webhook(_)) | None => None,
        }
    }

    /// The Service in front of the first of the subject's own webhooks, if there is one.
    pub fn own_service(&self) -> Option<ServicePort> {
        let configurations = self.own_webhooks().ok()?;
        let service = configurations.first()?.object.pointer("/webhooks/0/clientConfig/service")?.clone();
        let text = |key: &str| Some(service[key].as_str()?.to_owned());
        let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
        Some(ServicePort { namespace: text("namespace")?, name: text("name")?, port })
    }

    /// Reads the subject's own webhook configurations; empty if it has none.
    pub fn own_webhooks(&self) -> Result<Vec<Configuration>, String> {
        let ground = Ground::looked_at(Path::new(""));
        self.own_webhooks_file().map_or(Ok(Vec::new()), |file| webhook::read(&ground, file))
    }
}

fn wrong<T>(key: &'static str, text: impl Into<String>) -> Result<T, Wrong> {
    Err((key, text.into()))
}

/// Treats a key without a value as present: `service:` means all defaults.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer).map(|settings: Option<T>| Some(settings.unwrap_or_default()))
}

fn properties(schema: &schemars::Schema) -> Vec<String> {
    let mapping = schema.get("properties").or_else(|| schema.pointer("/anyOf/1/properties"));
    mapping.and_then(|keys| keys.as_object()).map(|keys| keys.keys().cloned().collect()).unwrap_or_default()
}

fn no_children(children: &Kinds) -> bool {
    children.is_empty()
}
fn no_witness() -> Witness {
    Witness::None(Nothing {})
}
fn default_start_timeout() -> Span {
    DEFAULT_START_TIMEOUT
}
