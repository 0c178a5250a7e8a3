//! The configuration sections of the process: health listener, log, shutdown, and the connection to the API server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::quantity::Span;
use super::{Checker, Environment, Error, Section, YamlError, yaml};

/// Default of `drain`: shorter than the 30 s that Kubernetes gives a terminating Pod.
const DRAIN: Duration = Duration::from_secs(20);

/// The section `health`; absent when this process has no health listener.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Health {
    pub listen: SocketAddr,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Kubernetes {
    /// Path of a kubeconfig. Default: `$KUBECONFIG`, then the service account files of a Pod.
    pub kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Log {
    pub format: LogFormat,
    /// The lowest level that is logged.
    pub level: Level,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Log format: each event is one line of readable text.
    #[default]
    Text,
    /// Log format: each event is one JSON object.
    Json,
}

/// A log level: events of lower levels are not logged.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// All events, even single requests.
    Trace,
    /// Steps of an operation, which help developers.
    Debug,
    /// Changes, which operators should know.
    #[default]
    Info,
    /// Events that may need attention.
    Warn,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shutdown {
    /// Longest time between the signal that ends the process and the exit of the process.
    pub drain: Duration,
}

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawFile {
    health: Option<Health>,
    kubernetes: Kubernetes,
    log: Log,
    shutdown: RawShutdown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawShutdown {
    drain: Option<Span>,
}

impl Section for Health {
    const KEYS: &'static [&'static str] = &["health"];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, _: &Checker<'_>) -> Result<Option<Self>, Error> {
        Ok(raw.health)
    }
}

impl Section for Kubernetes {
    const KEYS: &'static [&'static str] = &["kubernetes"];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, check: &Checker<'_>) -> Result<Option<Self>, Error> {
        Ok(Some(Self { kubeconfig: raw.kubernetes.kubeconfig.map(|path| check.folder.join(path)) }))
    }
}

impl Section for Shutdown {
    const KEYS: &'static [&'static str] = &["shutdown"];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, _: &Checker<'_>) -> Result<Option<Self>, Error> {
        Ok(Some(Self { drain: raw.shutdown.drain.map_or(DRAIN, |span| span.0) }))
    }
}

impl Section for Log {
    const KEYS: &'static [&'static str] = &["log"];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, _: &Checker<'_>) -> Result<Option<Self>, Error> {
        Ok(Some(raw.log))
    }

    fn overrule(raw: &mut RawFile, environment: &Environment<'_>) -> Result<(), Error> {
        if let Some(value) = environment.read("LOG_LEVEL") {
            raw.log.level = match value.as_str() {
                "trace" => Level::Trace,
                "debug" => Level::Debug,
                "info" => Level::Info,
                "warn" | "warning" => Level::Warn,
                "error" => Level::Error,
                other => return Err(Environment::wrong("LOG_LEVEL", other, "trace, debug, info, warn, error")),
            };
        }
        if let Some(value) = environment.read("LOG_FORMAT") {
            raw.log.format = match value.as_str() {
                "text" | "plain" => LogFormat::Text,
                "json" => LogFormat::Json,
                other => return Err(Environment::wrong("LOG_FORMAT", other, "text, json")),
            };
        }
        Ok(())
    }
}
