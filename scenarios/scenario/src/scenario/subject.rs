//! The system under test: what is asked of every subject, and the kinds that exist.
//!
//! A kind is one file below, with the keys that it takes, and one line in the list. It tells what is started, how that is told where things are,
//! and what it can be asked. Everything else asks through [`Kind`] and compares no names.

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

/// How long a subject may take until it is ready. Generous: a Node controller on a busy CI machine needs ten seconds.
const DEFAULT_START_TIMEOUT: Span = Span::from_secs(60);
/// How long a subject may take to exit after SIGTERM before it is killed. kubelet's default grace is 30 s.
const DEFAULT_STOP_TIMEOUT: Span = Span::from_secs(30);

/// A key that is wrong, and what is wrong with it.
pub(super) type Wrong = (&'static str, String);

/// One kind of subject. The type that has it holds its keys.
pub trait Kind {
    /// The key of a scenario file that holds its settings.
    fn name(&self) -> &'static str;

    /// Refuses keys that do not fit together.
    fn check(&self, subject: &Subject) -> Result<(), Wrong>;

    /// The service of this house. It has its own policy, pages, roles and API, and finds the registry under any name.
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

    /// The files that make up its build, where the program file does not tell.
    fn build(&self) -> &[PathBuf] {
        &[]
    }

    /// The texts in which `${NAME}` stands for a value of the run, with their keys.
    fn texts(&self) -> Vec<Templated<'_>> {
        Vec::new()
    }

    /// The part that it plays, where that is told.
    fn role(&self) -> Option<Role> {
        None
    }

    /// Whether it sees what is written to the control plane.
    fn watches(&self) -> bool {
        self.role() != Some(Role::Webhook)
    }

    /// The sign by which it is known to be ready, where one is named.
    fn ready(&self) -> Option<Readiness> {
        None
    }

    /// The address of its webhook, where it is not for the run to say.
    fn url(&self) -> Option<&str> {
        None
    }

    /// The certificates of who signed that of its webhook, where the run does not.
    fn ca(&self) -> Option<&Path> {
        None
    }

    /// What the certificate of its webhook is for, where that is not the host of its address.
    fn server_name(&self) -> Option<&str> {
        None
    }

    /// Whether it runs in Pods, which only a control plane with a node has.
    fn needs_node(&self) -> bool {
        false
    }

    /// Its Pods, where they are there already.
    fn attached_pods(&self) -> Option<&PodsOf> {
        None
    }

    /// As whom it asks the control plane, where its manifests say that.
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

    /// Where it is told to serve reviews.
    fn serves(&self) -> Option<&Serves> {
        None
    }

    /// The key by which it says where it serves reviews, for the author of a file.
    fn serving(&self) -> &'static str {
        "`serves: {path: /mutate}`"
    }

    /// Whether a run starts it, and may give it another clock.
    fn is_started(&self) -> bool {
        false
    }

    /// The names of its processes, where it has several.
    fn processes(&self) -> Vec<&str> {
        Vec::new()
    }

    /// What is done to its processes.
    fn upkeep(&self) -> Upkeep {
        Upkeep::default()
    }

    /// Lets its clock run so many times faster. A subject that is not started keeps its own.
    fn hurry(&mut self, _rate: u32) {}

    /// The line of a plan about its processes.
    fn plan(&self) -> Option<(&'static str, String)> {
        None
    }

    /// Why nothing is known of its processes, and what else a reader of the report must know.
    fn notes(&self) -> Notes {
        Notes::default()
    }

    /// What is to be started in a run, or runs already.
    fn start(&self, scene: &Scene<'_>) -> anyhow::Result<Start>;
}

/// What a run tells a subject that is to be started.
pub struct Scene<'a> {
    /// The files of the scenario.
    pub ground: &'a Ground,
    /// A line of its output that is waited for.
    pub awaited: Option<Arc<Line>>,
    /// A bug is planted in it.
    pub is_planted: bool,
    /// The program of the service, if one was named.
    pub program: Option<&'a Path>,
    /// The world as the service is told of it, made on demand: it takes a port.
    pub wiring: &'a dyn Fn() -> anyhow::Result<Wiring>,
    /// Writes a file of this name for it.
    pub write: &'a dyn Fn(&str, &str) -> anyhow::Result<PathBuf>,
}

/// A subject just before the run.
pub enum Start {
    /// Programs to be started, and where they tell how they are, if the run knows.
    Programs(Vec<Launch>, Option<SocketAddr>),
    /// It runs already, and reads this file if one is named.
    Runs(Attached, Option<PathBuf>),
    /// It runs in Pods.
    Deployed(Box<Planned>),
}

impl Start {
    /// The programs to be started.
    pub fn launches(&self) -> &[Launch] {
        match self {
            Self::Programs(launches, _) => launches,
            Self::Runs(..) | Self::Deployed(_) => &[],
        }
    }

    /// The program files of all of it.
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

/// What is done to processes that the harness starts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Upkeep {
    pub restart: Option<Restart>,
    pub back_off: Option<BackOff>,
    pub restarts: Option<Restarts>,
    pub certificates: Option<Certificates>,
    pub trusted_keys: Option<TrustedKeys>,
    /// Processes that say who signed an image.
    pub validators: usize,
    pub validator_restarts: Option<ValidatorRestarts>,
    pub validator_delay: Option<ValidatorDelay>,
    pub clock_rate: Option<u32>,
    pub stop_timeout: Option<Span>,
}

impl Upkeep {
    /// How long nobody runs after a crash, where what a server lets live for a while lives so many times shorter.
    pub fn delays(&self, compression: u32) -> Delays {
        self.back_off.unwrap_or_default().delays(compression)
    }

    /// How long it may take to exit after SIGTERM.
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

/// What a kind makes a reader of the report know.
#[derive(Debug, Default)]
pub struct Notes {
    /// Why nothing is known of its processes.
    pub unsampled: Option<&'static str>,
    /// What else is to be known.
    pub note: Option<&'static str>,
}

/// A text in which `${NAME}` stands for a value.
pub struct Templated<'t> {
    /// The key under which it stands.
    pub key: &'static str,
    pub text: &'t str,
    /// Names beside those of the run.
    pub own: Vec<&'t str>,
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

impl Role {
    /// As it is written in a scenario file.
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
        /// The kinds of subject that exist, with their keys.
        #[derive(Debug, Clone)]
        pub enum SubjectKind {
            $($(#[$of])* $settings($settings),)*
        }

        /// The system under test.
        #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "Written", into = "Written")]
        pub struct Subject {
            /// What it is, with the keys of that kind.
            pub kind: SubjectKind,
            $($(#[$about])* pub $name: $type,)*
        }

        /// The system under test: the key of its kind, and what is asked of every subject.
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
            /// What is asked of its kind.
            pub fn kind(&self) -> &dyn Kind {
                match &self.kind { $(SubjectKind::$settings(settings) => settings,)* }
            }

            /// Its kind, to be changed.
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
        /// What runs already: it is observed, and neither started nor stopped.
        attach: Attach,
        /// What runs in Pods of a real node: manifests that are applied, and images.
        deployment: Deployment,
    }
    shared {
        /// What of it is registered in the control plane before the load, and removed at the end: `webhook`, perhaps with settings as
        /// `{webhook: {failurePolicy: Fail}}`, or the project's own configurations, `{webhooks: config/webhook/manifests.yaml}`. Default:
        /// nothing.
        install: Option<Install>,
        /// What it may do at the control plane. Left out, the service has the rights of its manifests and every other subject all.
        rbac: Option<Rbac>,
        /// What it is told to watch, and what is judged, as `plural.group/version` (`configmaps/v1` in the core group). Default: what
        /// the script and the churn write. It gets them as `LONGHAUL_WATCH`, the first one first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        watches: Vec<String>,
        /// How the subject proves what it saw. A subject of `role: webhook` saw nothing and has none.
        #[serde(default = "no_witness")]
        witness: Witness,
        /// Where it tells what it believes in: the address of a page of JSON lines, one for each object, with `namespace`, `name`, `uid` and
        /// `resourceVersion`, and `resource` (`packages.longhaul.dev`) where it tells of several. The service has such a page anyhow.
        world: Option<String>,
        /// Its own metrics: the address of its Prometheus page, over plain HTTP, or a mapping. The heap that its runtime or allocator has in use
        /// is recognised in it, and judges growth before the resident set does. `${LONGHAUL_METRICS_PORT}` in it, in the words and the variables
        /// of a command is a free port, which the command also finds in the variable of that name. The service has such a page anyhow.
        metrics: Option<Metrics>,
        /// The objects that it makes for each of those that are churned; a list where they are of several kinds. What a witness proves by
        /// children it proves by the first of them.
        #[serde(default, skip_serializing_if = "no_children")]
        children: Kinds,
        /// How long it may take until it is ready.
        #[serde(default = "default_start_timeout")]
        start_timeout: Span,
    }
}

/// What is wrong with a subject that is nothing.
const UNNAMED: &str = "`subject` has no kind: add `service: {}` for the built-in service, `command: [program, argument, …]`, `attach: \
                       {pid: NUMBER}` or `deployment: {manifests: [FOLDER]}`";

impl Subject {
    /// Whether there is nothing that it could prove to have seen.
    pub fn watches_nothing(&self) -> bool {
        !self.kind().watches()
    }

    /// Whether nobody knows how it has to answer reviews.
    pub fn has_own_policy(&self) -> bool {
        self.kind().role().is_some()
    }

    /// Whether it answers reviews.
    pub fn serves(&self) -> bool {
        let told = self.kind().url().is_some() || self.kind().serves().is_some_and(|serves| serves.path.is_some());
        self.kind().is_service() || told || self.own_webhooks_file().is_some()
    }

    /// What is done to its processes.
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

    /// The command, if it is one.
    pub fn command(&self) -> Option<&Command> {
        match &self.kind {
            SubjectKind::Command(command) => Some(command),
            _ => None,
        }
    }

    /// The same, to be changed.
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

    /// Where the configurations of its own webhooks are.
    pub fn own_webhooks_file(&self) -> Option<&Path> {
        match &self.install {
            Some(Install::Webhooks(file)) => Some(file),
            Some(Install::Webhook(_)) | None => None,
        }
    }

    /// The Service in front of the first of them, where there is one.
    pub fn own_service(&self) -> Option<ServicePort> {
        let configurations = self.own_webhooks().ok()?;
        let service = configurations.first()?.object.pointer("/webhooks/0/clientConfig/service")?.clone();
        let text = |key: &str| Some(service[key].as_str()?.to_owned());
        let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
        Some(ServicePort { namespace: text("namespace")?, name: text("name")?, port })
    }

    /// Reads them; none where it has none.
    pub fn own_webhooks(&self) -> Result<Vec<Configuration>, String> {
        let ground = Ground::looked_at(Path::new(""));
        self.own_webhooks_file().map_or(Ok(Vec::new()), |file| webhook::read(&ground, file))
    }
}

fn wrong<T>(key: &'static str, text: impl Into<String>) -> Result<T, Wrong> {
    Err((key, text.into()))
}

/// A key without a value is there: `service:` has all defaults.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer).map(|settings: Option<T>| Some(settings.unwrap_or_default()))
}

/// The keys of a mapping.
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
