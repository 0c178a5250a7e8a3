//! Routine actions of a cluster on a subject: restarts, new certificates, and new trusted keys.
//!
//! Owns the keys of scenarios. None of them is a fault: a subject must not lose a call over them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// Default time of the first restart: when load has settled.
const DEFAULT_FIRST: Span = Span::from_secs(3);
/// Default lag: the time until every node knows that a Pod is terminating, on a quiet cluster.
const DEFAULT_LAG: Span = Span::from_millis(300);

/// Restarts like the rolling update of a Deployment: a new process is started, and the common address leads to it once
/// it is ready. Then the old one gets SIGTERM and drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Restarts {
    /// Number of restarts.
    pub count: u32,
    /// Time between the beginnings of two restarts. A slow restart delays the next one.
    pub every: Span,
    /// Begin of the first restart, counted from the start of the warm-up.
    #[serde(default = "default_first")]
    pub at: Span,
    /// Time after SIGTERM in which new connections still reach the old process. In a cluster, this lasts until every
    /// node knows that it is terminating.
    #[serde(default = "default_lag")]
    pub lag: Span,
}

/// Short-lived serving certificates that are replaced before they expire, as by cert-manager and the kubelet: both
/// files at once, by moving a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Certificates {
    /// Interval of the replacements.
    pub every: Span,
    /// Validity of each certificate. A subject that keeps an old one fails when it expires.
    pub valid: Span,
}

/// Keys of signed images that disappear from the service's configuration and return the next time: another key is
/// written into the file of one of the two trusted keys, by moving a file over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TrustedKeys {
    /// Interval of the changes.
    pub every: Span,
}

/// Validators that are replaced, one after the other, like the Pods of a `StatefulSet`: each gets SIGTERM, is gone for
/// a while, and starts again at its old address. Each waits until the one before it is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ValidatorRestarts {
    /// Number of replacements.
    pub count: u32,
    /// Time between the beginnings of two replacements.
    pub every: Span,
    /// Begin of the first replacement, counted from the start of the warm-up.
    #[serde(default = "default_first")]
    pub at: Span,
    /// Time without a process, between the end of one and the start of the next. Default: it starts at once.
    #[serde(default)]
    pub away: Span,
}

/// Validators that answer late: their traffic is delayed for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ValidatorDelay {
    /// Begin of the delay, counted from the start of the load.
    pub at: Span,
    /// Duration of the delay.
    #[serde(rename = "for")]
    pub lasts: Span,
    /// The added time of an answer: half of it on the way there, half on the way back.
    pub by: Span,
}

impl ValidatorRestarts {
    /// Begin of number `done`, counted from 0; `None` after the last.
    pub fn due(&self, done: u32) -> Option<std::time::Duration> {
        (done < self.count).then(|| self.at.0 + self.every.0 * done)
    }
}

impl Restarts {
    /// Begin of number `done`, counted from 0; `None` after the last.
    pub fn due(&self, done: u32) -> Option<std::time::Duration> {
        (done < self.count).then(|| self.at.0 + self.every.0 * done)
    }
}

fn default_first() -> Span {
    DEFAULT_FIRST
}

fn default_lag() -> Span {
    DEFAULT_LAG
}
