//! The configuration file as written, and its small sections: serde types that refuse every unknown key.
//!
//! Owns the spelling of the top-level keys. A larger section has a file of its own with its keys, defaults and checks.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::admission::RawAdmission;
use super::policy::RawPolicy;
use super::quantity::Span;
use super::reconcile::RawReconcile;
use super::replicas::RawReplicas;
use super::resolve::RawResolve;
use super::validators::RawValidator;
use super::watch::RawWatch;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct File {
    pub version: Option<u32>,
    pub admission: Option<RawAdmission>,
    pub replicas: Option<RawReplicas>,
    pub health: Option<Health>,
    pub resolve: RawResolve,
    pub validators: Vec<RawValidator>,
    pub policy: RawPolicy,
    pub kubernetes: Kubernetes,
    pub watch: RawWatch,
    pub reconcile: RawReconcile,
    pub log: Log,
    pub shutdown: Shutdown,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Health {
    pub listen: SocketAddr,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Kubernetes {
    pub kubeconfig: Option<PathBuf>,
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
