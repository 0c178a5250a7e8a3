//! The system under test: the keys of every subject, and the kinds of subjects.
//!
//! A kind is one file below, with its keys, and one line in the list. It defines the programs to start, their settings,
//! and their abilities. All other code uses [`Kind`] and compares no names.

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
use super::{
    BackOff, Certificates, Ground, Install, Kinds, Metrics, Rbac, Readiness, Restart, Restarts, Serves, TrustedKeys,
    ValidatorDelay, ValidatorRestarts,
};
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
pub(super) use flat::rewritten;
pub use service::Service;
pub use service::{Other, Wiring};

/// Default time until a subject is ready. Generous: a Node controller on a busy CI machine needs ten seconds.
const DEFAULT_START_TIMEOUT: Span = Span::from_secs(60);
/// Default time for a subject to exit after SIGTERM before it is killed. kubelet's default grace is 30 s.
const DEFAULT_STOP_TIMEOUT: Span = Span::from_secs(30);

/// A wrong key, and the mistake in it.
pub(super) type Wrong = (&'static str, String);

/// One kind of subject. The implementing type holds its keys.
pub trait Kind {
    /// The key of its settings in a scenario file.
    fn name(&self) -> &'static str;

    /// Refuses keys that do not fit together.
    fn check(&self, subject: &Subject) -> Result<(), Wrong>;

    /// Whether it is the built-in service. That has its own policy, pages, roles and API, and finds the registry under
    /// any name.
    fn is_service(&self) -> bool {
        false
    }

    /// Files that are read or written later, with their keys.
    fn files(&self) -> Vec<(&'static str, &Path)> {
        Vec::new()
    }

    /// Files and folders of manifests that are applied later.
    fn manifests(&self) -> &[PathBuf] {
        &[]
    }

    /// The files that make up its build, beside the program file.
    fn build(&self) -> &[PathBuf] {
        &[]
    }

    /// The texts with placeholders `${NAME}` for values of the run, with their keys.
    fn texts(&self) -> Vec<Templated<'_>> {
        Vec::new()
    }

    /// Its role, if the file states one.
    fn role(&self) -> Option<Role> {
        None
    }

    /// Whether it sees writes to the control plane.
    fn watches(&self) -> bool {
        self.role() != Some(Role::Webhook)
    }

    /// Its sign of readiness, if the file names one.
    fn ready(&self) -> Option<Readiness> {
        None
    }

    /// The URL of its webhook, if the run does not choose it.
    fn url(&self) -> Option<&str> {
        None
    }

    /// The authorities of its webhook's certificate, if the run does not make it.
    fn ca(&self) -> Option<&Path> {
        None
    }

    /// The name in its webhook's certificate, if that is not the host of its URL.
    fn server_name(&self) -> Option<&str> {
        None
    }

    /// Whether it runs in Pods, which needs a control plane with a node.
    fn needs_node(&self) -> bool {
        false
    }

    /// The Pods that exist before the run.
    fn attached_pods(&self) -> Option<&PodsOf> {
        None
    }

    /// Its user at the control plane, if its manifests define it.
    fn user(&self) -> Option<String> {
        None
    }

    /// The names of the Service in front of its webhook.
    fn service_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the run makes its serving certificate and puts it into a Secret.
    fn makes_certificate(&self) -> bool {
        false
    }

    /// The configured address for reviews.
    fn serves(&self) -> Option<&Serves> {
        None
    }

    /// The key with its review address, for messages.
    fn serving(&self) -> &'static str {
        "`serves: {path: /mutate}`"
    }

    /// The folders that a kubelet would mount for its processes.
    fn mounts(&self) -> Option<&BTreeMap<PathBuf, super::Mount>> {
        None
    }

    /// Whether a run starts it, and may give it another clock.
    fn is_started(&self) -> bool {
        false
    }

    /// The names of its processes, if it has several.
    fn processes(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The planned actions on its processes.
    fn upkeep(&self) -> Upkeep {
        Upkeep::default()
    }

    /// Lets its clock run `rate` times faster. A subject that is not started keeps its own.
    fn hurry(&mut self, _rate: u32) {}

    /// The line of a plan about its processes.
    fn plan(&self) -> Option<(&'static str, String)> {
        None
    }

    /// The reason why its processes are not sampled, and other notes for the reader of the report.
    fn notes(&self) -> Notes {
        Notes::default()
    }

    /// The programs to start in a run, or the running subject.
    fn start(&self, scene: &Scene<'_>) -> anyhow::Result<Start>;
}

/// The run's values for a subject that is to be started.
pub struct Scene<'a> {
    pub ground: &'a Ground,
    /// A line of its output that is waited for.
    pub awaited: Option<Arc<Line>>,
    /// Whether a bug is planted in it.
    pub is_planted: bool,
    /// The path of the service, if one was named.
    pub program: Option<&'a Path>,
    /// The world's addresses for the service's configuration, made on demand because they take a port.
    pub wiring: &'a dyn Fn() -> anyhow::Result<Wiring>,
    /// Writes a file with this name for it.
    pub write: &'a dyn Fn(&str, &str) -> anyhow::Result<PathBuf>,
}

/// A subject just before the run.
pub enum Start {
    /// Programs to start, and the address of their health page, if the run knows it.
    Programs(Vec<Launch>, Option<SocketAddr>),
    /// A running subject, and the path of its kubeconfig if one is named.
    Runs(Attached, Option<PathBuf>),
    /// A subject in Pods.
    Deployed(Box<Planned>),
}

impl Start {
    pub fn launches(&self) -> &[Launch] {
        match self {
            Self::Programs(launches, _) => launches,
            Self::Runs(..) | Self::Deployed(_) => &[],
        }
    }

    /// The files of all its programs.
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

/// Planned actions on processes that the harness starts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Upkeep {
    pub restart: Option<Restart>,
    pub back_off: Option<BackOff>,
    pub restarts: Option<Restarts>,
    pub certificates: Option<Certificates>,
    pub trusted_keys: Option<TrustedKeys>,
    /// Number of processes that verify image signatures.
    pub validators: usize,
    pub validator_restarts: Option<ValidatorRestarts>,
    pub validator_delay: Option<ValidatorDelay>,
    pub clock_rate: Option<u32>,
    pub stop_timeout: Option<Span>,
}

impl Upkeep {
    /// The delays after a crash, with the control plane's lifetimes divided by `compression`.
    pub fn delays(&self, compression: u32) -> Delays {
        self.back_off.unwrap_or_default().delays(compression)
    }

    /// Time to exit after SIGTERM.
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

/// Notes of a kind for the reader of the report.
#[derive(Debug, Default)]
pub struct Notes {
    /// The reason why its processes are not sampled.
    pub unsampled: Option<&'static str>,
    /// A further note for the reader of the report.
    pub note: Option<&'static str>,
}

/// A text with placeholders `${NAME}`.
pub struct Templated<'t> {
    /// The key of the text.
    pub key: &'static str,
    pub text: &'t str,
    /// Names beside those of the run.
    pub own: Vec<&'t str>,
}

/// The role of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// The subject answers admission reviews, and watches nothing. Its policy is unknown: every answer that an API
    /// server accepts is right.
    Webhook,
    /// The subject watches, and answers reviews by an unknown policy.
    Both,
}

impl Role {
    /// The value in a scenario file.
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
            /// Its kind, with the keys of that kind.
            pub kind: SubjectKind,
            $($(#[$about])* pub $name: $type,)*
        }

        /// The system under test: the key of its kind, and the keys of every subject.
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

            pub fn kind_mut(&mut self) -> &mut dyn Kind {
                match &mut self.kind { $(SubjectKind::$settings(settings) => settings,)* }
            }
        }

        /// The keys of each kind.
        fn keys() -> BTreeMap<&'static str, Vec<String>> {
            BTreeMap::from([$((stringify!($key), properties(&schemars::schema_for!($settings)))),*])
        }
    };
}

subject! {
    kinds {
        /// The built-in `longhaul-service`.
        service: Service,
        /// Any command: the program and its arguments, or a mapping.
        command: Command,
        /// A subject that runs already: it is observed, and neither started nor stopped.
        attach: Attach,
        /// A subject in Pods of a real node: manifests that are applied, and images.
        deployment: Deployment,
    }
    shared {
        /// The webhooks that are registered in the control plane before the load and removed at the end: `webhook`,
        /// optionally with settings as `{webhook: {failurePolicy: Fail}}`, or the project's own configurations,
        /// `{webhooks: config/webhook/manifests.yaml}`. Default: none.
        install: Option<Install>,
        /// Its rights at the control plane. Default: the service has the rights of its manifests, and every other
        /// subject has all.
        rbac: Option<Rbac>,
        /// The resources that it is configured to watch and that are judged, as `plural.group/version` (`configmaps/v1`
        /// in the core group). Default: those that the script and the churn write. It gets them as `LONGHAUL_WATCH`,
        /// the first one first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        watches: Vec<String>,
        /// How the subject proves its observations. A subject of `role: webhook` observes nothing and has no witness.
        #[serde(default = "no_witness")]
        witness: Witness,
        /// The address of a page with its state: JSON lines, one per object, with `namespace`, `name`, `uid` and
        /// `resourceVersion`, and `resource` (`packages.longhaul.dev`) if the page covers several. The service has such
        /// a page by default.
        world: Option<String>,
        /// Its own metrics: the address of its Prometheus page, over plain HTTP, or a mapping. The heap in use of its
        /// runtime or allocator is recognised in it, and judges growth before the resident set does.
        /// `${LONGHAUL_METRICS_PORT}` in it, and in the arguments and variables of a command, is a free port, which the
        /// command also finds in the variable of that name. The service has such a page by default.
        metrics: Option<Metrics>,
        /// The objects that it creates for each churned object; a list if they are of several kinds. A witness that
        /// uses children uses the first kind.
        #[serde(default, skip_serializing_if = "no_children")]
        children: Kinds,
        /// Time until it is ready.
        #[serde(default = "default_start_timeout")]
        start_timeout: Span,
    }
}

/// The error for a subject without a kind.
const UNNAMED: &str = "`subject` has no kind: add `service: {}` for the built-in service, `command: [program, argument, …]`, `attach: \
                       {pid: NUMBER}` or `deployment: {manifests: [FOLDER]}`";

impl Subject {
    /// Whether it has nothing that it could prove to have seen.
    pub fn watches_nothing(&self) -> bool {
        !self.kind().watches()
    }

    /// Whether its right answers to reviews are unknown.
    pub fn has_own_policy(&self) -> bool {
        self.kind().role().is_some()
    }

    pub fn serves(&self) -> bool {
        let told = self.kind().url().is_some() || self.kind().serves().is_some_and(|serves| serves.path.is_some());
        self.kind().is_service() || told || self.own_webhooks_file().is_some()
    }

    pub fn upkeep(&self) -> Upkeep {
        self.kind().upkeep()
    }

    /// The settings of the service, if it is the subject.
    pub fn service_mut(&mut self) -> Option<&mut Service> {
        match &mut self.kind {
            SubjectKind::Service(service) => Some(service),
            _ => None,
        }
    }

    /// The command, if the subject is one.
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

    /// Refuses keys that do not fit together.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        self.kind().check(self)?;
        self.upkeep().check()
    }

    /// The file with the configurations of its own webhooks.
    pub fn own_webhooks_file(&self) -> Option<&Path> {
        match &self.install {
            Some(Install::Webhooks(file)) => Some(file),
            Some(Install::Webhook(_)) | None => None,
        }
    }

    /// The Service in front of the first of them, if there is one.
    pub fn own_service(&self) -> Option<ServicePort> {
        let configurations = self.own_webhooks().ok()?;
        let service = configurations.first()?.object.pointer("/webhooks/0/clientConfig/service")?.clone();
        let text = |key: &str| Some(service[key].as_str()?.to_owned());
        let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
        Some(ServicePort { namespace: text("namespace")?, name: text("name")?, port })
    }

    /// Reads the configurations of its own webhooks; empty if it has none.
    pub fn own_webhooks(&self) -> Result<Vec<Configuration>, String> {
        let ground = Ground::looked_at(Path::new(""));
        self.own_webhooks_file().map_or(Ok(Vec::new()), |file| webhook::read(&ground, file))
    }
}

fn wrong<T>(key: &'static str, text: impl Into<String>) -> Result<T, Wrong> {
    Err((key, text.into()))
}

/// A key without a value counts as present: `service:` has all defaults.
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
