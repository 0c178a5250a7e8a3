//! `restarts`, `certificates`, `trustedKeys` and the like: routine actions of a cluster on a subject.
//!
//! Restarts and certificate changes are no faults: a subject must not lose a call because of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// Default time of the first restart, counted from the start of the warm-up. At this time the load is steady.
const DEFAULT_FIRST: Span = Span::from_secs(3);
/// Default of `lag`: the time in which every node of a cluster without much load learns that a Pod is terminating.
const DEFAULT_LAG: Span = Span::from_millis(300);

/// Restarts like those of a Deployment's rolling update. A new process is started, and once it is ready, the webhook's
/// address leads to the new process. After that, the old process gets SIGTERM and drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Restarts {
    /// Number of restarts.
    pub count: u32,
    /// Time between the starts of two restarts. A slow restart delays the next restart.
    pub every: Span,
    /// Start of the first restart, counted from the start of the warm-up.
    #[serde(default = "default_first")]
    pub at: Span,
    /// Time after SIGTERM in which new connections still reach the old process. In a cluster, the old process gets new
    /// connections until every node knows that the Pod is terminating.
    #[serde(default = "default_lag")]
    pub lag: Span,
}

/// Short-lived serving certificates that are replaced before they expire, as by cert-manager and the kubelet.
/// Certificate and key change at the same moment, because a symbolic link is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Certificates {
    /// Interval between two replacements.
    pub every: Span,
    /// Validity of each certificate. A subject that keeps using an old certificate fails when that certificate expires.
    pub valid: Span,
}

/// Trusted keys that disappear from the service's configuration, and return with the next change of keys. For each
/// change, a file with another key replaces the file of one of the two trusted keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TrustedKeys {
    /// Interval between two changes.
    pub every: Span,
}

/// Replacements of the validators, one after the other, like the Pods of a `StatefulSet`. Each validator gets SIGTERM,
/// is gone for a while, and starts again at its old address. The next replacement waits until the validator is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ValidatorRestarts {
    /// Number of replacements.
    pub count: u32,
    /// Time between the starts of two replacements.
    pub every: Span,
    /// Start of the first replacement, counted from the start of the warm-up.
    #[serde(default = "default_first")]
    pub at: Span,
    /// Time between the end of a validator's process and the start of its next one. Default: the next process starts at
    /// once.
    #[serde(default)]
    pub away: Span,
}

/// A period in which the validators' traffic is delayed, so that they answer late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ValidatorDelay {
    /// Start of the period, counted from the start of the load.
    pub at: Span,
    /// Length of the period.
    #[serde(rename = "for")]
    pub lasts: Span,
    /// Time that is added to each answer: half on the way to the validator, half on the way back.
    pub by: Span,
}

impl ValidatorRestarts {
    /// Time of the restart with this number, counted from 0; `None` after the last restart.
    pub fn due(&self, done: u32) -> Option<std::time::Duration> {
        (done < self.count).then(|| self.at.0 + self.every.0 * done)
    }
}

impl Restarts {
    /// Time of the replacement with this number, counted from 0; `None` after the last replacement.
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
