//! What a cluster does to a subject in everyday life: it restarts it, gives it other certificates, and lets it trust other keys.
//!
//! Owns the keys of scenarios. None is a fault: a subject must not lose a call over them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// The first restart comes when load has settled.
const DEFAULT_FIRST: Span = Span::from_secs(3);
/// As long as it takes until every node knows that a Pod is going, on a quiet cluster.
const DEFAULT_LAG: Span = Span::from_millis(300);

/// Restarts as the rolling update of a Deployment does them: a new process is started and waited for, the address in front of both
/// leads to it too, the old one gets SIGTERM and drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Restarts {
    /// How many.
    pub count: u32,
    /// How long from the beginning of one to the beginning of the next. One that is not over holds the next one up.
    pub every: Span,
    /// When the first one begins, counted from the start of the warm-up.
    #[serde(default = "default_first")]
    pub at: Span,
    /// For so long after SIGTERM new connections still come to the old process, as in a cluster until every node knows that it is
    /// going.
    #[serde(default = "default_lag")]
    pub lag: Span,
}

/// Serving certificates that end soon and are replaced before they do, as cert-manager and the kubelet do it: both files at once,
/// by moving a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Certificates {
    /// How often the files change.
    pub every: Span,
    /// How long each certificate is valid. Whoever goes on with an old one fails by it.
    pub valid: Span,
}

/// Keys of signed images that are taken out of the service's configuration, and come back the next time: another key is written into the
/// file of one of the two that it trusts, by moving a file over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TrustedKeys {
    /// How often.
    pub every: Span,
}

/// Validators that are replaced, one after the other: each gets SIGTERM, is gone for a while, and begins anew at its old address, as the Pods of
/// a `StatefulSet` do. None goes before the one before it is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ValidatorRestarts {
    /// How many.
    pub count: u32,
    /// How long from the beginning of one to the beginning of the next.
    pub every: Span,
    /// When the first one begins, counted from the start of the warm-up.
    #[serde(default = "default_first")]
    pub at: Span,
    /// For so long nobody is there, after one has ended and before it begins anew. Default: it begins at once.
    #[serde(default)]
    pub away: Span,
}

/// Validators whose answers come late: whatever goes between them and whoever asks is held up for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ValidatorDelay {
    /// From when on, counted from the start of the load.
    pub at: Span,
    /// For how long.
    #[serde(rename = "for")]
    pub lasts: Span,
    /// How much later an answer comes: half of it on the way there, half on the way back.
    pub by: Span,
}

impl ValidatorRestarts {
    /// When number `done` begins, counted from 0; none after the last.
    pub fn due(&self, done: u32) -> Option<std::time::Duration> {
        (done < self.count).then(|| self.at.0 + self.every.0 * done)
    }
}

impl Restarts {
    /// When number `done` begins, counted from 0; none after the last.
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
