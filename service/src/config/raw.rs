//! The configuration file as written: serde types that refuse every unknown key.
//!
//! Owns the spelling of the keys. Meaning, defaults and checks are in the parent module.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::quantity::{Size, Span};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct File {
    pub admission: Option<Admission>,
    pub health: Option<Health>,
    pub resolve: Resolve,
    pub kubernetes: Kubernetes,
    pub watch: Watch,
    pub reconcile: Reconcile,
    pub log: Log,
    pub shutdown: Shutdown,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Admission {
    pub listen: SocketAddr,
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub max_body_bytes: Option<Size>,
    pub max_in_flight: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Health {
    pub listen: SocketAddr,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Resolve {
    pub skip_prefixes: Vec<String>,
    pub timeout: Option<Span>,
    pub cache: Cache,
    pub registries: Vec<Registry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Cache {
    pub ttl: Option<Span>,
    pub max_bytes: Option<Size>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Registry {
    pub host: String,
    pub endpoint: Option<String>,
    #[serde(default)]
    pub plain_http: bool,
    pub ca_file: Option<PathBuf>,
    pub username: Option<String>,
    pub password_file: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Kubernetes {
    pub kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Watch {
    pub transport: Transport,
    pub resource: Resource,
    pub relist_interval: Option<Span>,
    pub server_timeout: Option<Span>,
    pub silence_limit: Option<Span>,
    pub backoff: Backoff,
}

/// How the watch talks to the API server.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// One HTTP/1.1 connection for each watch.
    #[default]
    Http1,
    /// Streams of one HTTP/2 connection.
    Http2,
}

/// What is watched.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// `packages.longhaul.dev/v1alpha1`.
    #[default]
    Packages,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Backoff {
    pub initial: Option<Span>,
    pub max: Option<Span>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Reconcile {
    pub queue: QueueKey,
    pub workers: Option<usize>,
    pub retries: Option<Vec<Span>>,
}

/// What is kept in order by the reconcile queue: two objects with the same key are never worked on at once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QueueKey {
    /// One object.
    #[default]
    KindNsName,
    /// All objects of a namespace.
    KindNs,
    /// All objects of the kind.
    Kind,
    /// Everything.
    Global,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Log {
    pub format: LogFormat,
    pub level: Level,
}

/// How log lines look.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One readable line an event.
    #[default]
    Text,
    /// One JSON object an event.
    Json,
}

/// The least severe line that is written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Everything, including single requests.
    Trace,
    /// What a developer wants.
    Debug,
    /// What an operator wants.
    #[default]
    Info,
    /// Only what may need attention.
    Warn,
    /// Only failures.
    Error,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Shutdown {
    pub drain: Option<Span>,
}
