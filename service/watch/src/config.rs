//! The section `watch`: resource, transport and time limits of a watch; and the settings of the leader election.

use std::time::Duration;

use serde::Deserialize;

use service_core::config::quantity::Span;
use service_core::config::{Checker, Error, Section, YamlError, yaml};
use service_core::kube::Transport;

/// The interval Pepr uses for the same safety net.
const RELIST_INTERVAL: Duration = Duration::from_mins(10);
/// A dead link shows when the server should have ended the watch and did not; 45 s keeps that under a minute.
const SERVER_TIMEOUT: Duration = Duration::from_secs(45);
/// The server's timeout and 5 s for a slow end of the stream.
const SILENCE_LIMIT: Duration = Duration::from_secs(50);
/// Twice the time a busy server needs to answer; the actual wait is drawn between zero and this.
const BACKOFF_INITIAL: Duration = Duration::from_millis(200);
/// A recovered server is found again within half a minute.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    pub transport: Transport,
    /// The kind of the watched objects.
    pub resource: Resource,
    /// Time between two safety relists next to a healthy watch.
    pub relist_interval: Duration,
    /// `timeoutSeconds` of a watch request.
    pub server_timeout: Duration,
    /// Longest time without a byte before a stream is closed.
    pub silence_limit: Duration,
    /// Upper bound of the first back-off.
    pub backoff_initial: Duration,
    /// Upper bound of any back-off.
    pub backoff_max: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Whether there is an election; if absent, there is one exactly when the namespace is known.
    pub enabled: Option<bool>,
    pub name: String,
    /// The Lease's namespace; if absent, the pod's.
    pub namespace: Option<String>,
    /// How long other replicas wait after the last renewal that they saw; whole seconds.
    pub duration: Duration,
    /// How long a leader works after the last renewal that it sent.
    pub renew: Duration,
    /// Pause between attempts.
    pub retry: Duration,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawWatch {
    pub transport: Transport,
    pub resource: Resource,
    pub relist_interval: Option<Span>,
    pub server_timeout: Option<Span>,
    pub silence_limit: Option<Span>,
    pub backoff: RawBackoff,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// `packages.longhaul.dev/v1alpha1`.
    #[default]
    Packages,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawBackoff {
    pub initial: Option<Span>,
    pub max: Option<Span>,
}

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawFile {
    watch: RawWatch,
}

impl Section for Watch {
    const KEYS: &'static [&'static str] = &["watch"];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, check: &Checker<'_>) -> Result<Option<Self>, Error> {
        let raw = raw.watch;
        let watch = Watch {
            transport: raw.transport,
            resource: raw.resource,
            relist_interval: check.positive("watch.relistInterval", raw.relist_interval, RELIST_INTERVAL)?,
            server_timeout: check.positive("watch.serverTimeout", raw.server_timeout, SERVER_TIMEOUT)?,
            silence_limit: check.positive("watch.silenceLimit", raw.silence_limit, SILENCE_LIMIT)?,
            backoff_initial: check.positive("watch.backoff.initial", raw.backoff.initial, BACKOFF_INITIAL)?,
            backoff_max: check.positive("watch.backoff.max", raw.backoff.max, BACKOFF_MAX)?,
        };
        if watch.server_timeout < Duration::from_secs(1) {
            return Err(check.value("watch.serverTimeout", "is sent in whole seconds: write at least 1s"));
        }
        if watch.backoff_initial > watch.backoff_max {
            return Err(check.value("watch.backoff.initial", "is longer than watch.backoff.max"));
        }
        Ok(Some(watch))
    }
}
