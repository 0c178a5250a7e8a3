//! The section `watch` (resource, transport and time limits of a watch), and the settings of the leader election.

use std::time::Duration;

use serde::Deserialize;

use service_core::config::quantity::Span;
use service_core::config::{Checker, Error, Section, YamlError, yaml};
use service_core::kube::Transport;

/// Default time between two safety relists (lists beside a working watch), as in Pepr.
const RELIST_INTERVAL: Duration = Duration::from_mins(10);
/// Default `timeoutSeconds` of a watch. If the server does not end the watch within its timeout, the connection is
/// dead. With 45 s, a dead connection is noticed in less than a minute.
const SERVER_TIMEOUT: Duration = Duration::from_secs(45);
/// Default of `silenceLimit`: the server's timeout, and 5 s for a slow end of the stream.
const SILENCE_LIMIT: Duration = Duration::from_secs(50);
/// Default upper bound of the first back-off: twice the response time of a busy server. The delay is drawn at random
/// between zero and this bound.
const BACKOFF_INITIAL: Duration = Duration::from_millis(200);
/// Default upper bound of any back-off: a server that works again is found within half a minute.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    pub transport: Transport,
    pub resource: Resource,
    /// Time between two safety relists, which run while a watch works.
    pub relist_interval: Duration,
    pub server_timeout: Duration,
    /// Longest time without a byte; a stream that is silent for longer is closed.
    pub silence_limit: Duration,
    /// Upper bound of the first back-off after a failure.
    pub backoff_initial: Duration,
    /// Upper bound of the back-off after any number of failures.
    pub backoff_max: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Whether replicas elect a leader; if absent, they elect a leader exactly if the namespace is known.
    pub enabled: Option<bool>,
    pub name: String,
    /// The Lease's namespace; if absent, the namespace of the Pod.
    pub namespace: Option<String>,
    /// Time that other replicas wait after they have seen the last renewal of the Lease; whole seconds.
    pub duration: Duration,
    /// Time for which a leader works after it sent the last renewal of the Lease.
    pub renew: Duration,
    /// Pause between two attempts to get or renew the Lease.
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
    /// The resource `packages` of `longhaul.dev/v1alpha1`.
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
