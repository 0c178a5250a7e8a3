//! Budgets: the limits of a scenario that decide its verdict.
//!
//! Owns their spelling and their defaults. An absent section or field is not judged, with one exception that is stated at
//! [`Events`] and [`Admission`]: what breaks the API's contract has the budget zero as soon as the section is present.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Growth, Span};

pub use crate::judge::Requests;

/// The limits of a run. An absent section is not judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Budgets {
    /// What the subject may do wrong with watch events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Events>,
    /// What the subject may ask of the control plane. Only the mock control plane tells who asked what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    /// What admission reviews may cost and how often they may be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
    /// What the subject may ask of the registry, and what it may make of a sick one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<Registry>,
    /// How much memory the subject may use and gain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// How many file descriptors the subject may hold and gain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<Descriptors>,
    /// How many threads the subject may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<Threads>,
}

/// Limits on watch events. `missed`, `ghost`, `regressed`, `phantom`, `resurrected` and `identitySwap` are 0 whenever this
/// section is present: each of them breaks what the API promises a watcher.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Events {
    /// Versions of which neither they nor a later version were observed by the end. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// Deletions that were not observed by the end. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ghost: Option<u64>,
    /// Observations of an older version of an object after a newer one. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regressed: Option<u64>,
    /// Observations of something that was never committed. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phantom: Option<u64>,
    /// Observations of a version of an object after its deletion was observed. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resurrected: Option<u64>,
    /// Objects replaced under the same name whose deletion was never observed. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_swap: Option<u64>,
    /// Versions observed only after the deadline, deletions too. Absent: not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// Observations of a version that had been observed already. Absent: not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<u64>,
    /// The 99th percentile of the time from commit to observation, of commits made while no fault was active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_p99: Option<Span>,
    /// The longest time from a commit to the observation that made up for it, of commits observed late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heal: Option<Span>,
    /// Which versions must be observed. Default `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// The time after which an observation is late. Default: 5 s, or three times the warm-up's 99th percentile of the lag
    /// if that is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Span>,
}

/// Which versions of an object the subject must observe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// The latest one; a version superseded by an observed one is coalesced, which is legal.
    #[default]
    Latest,
    /// Each one; a coalesced version breaks the budget.
    EveryVersion,
}

/// A lower limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtLeast {
    /// The least that must be reached.
    pub min: u64,
}

/// Limits on the subject's connections, counted by the control plane. A connection is known to be the subject's from its first
/// request on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Connections {
    /// How many may be open when the drain phase ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u64>,
    /// How many new ones may be used for each watch that is opened, from the end of the first watch on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_reconnect: Option<f64>,
}

/// Limits on admission reviews. `wrongVerdicts` is 0 whenever this section is present.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Admission {
    /// The median of the response time from the planned start, in the steady phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<Span>,
    /// The 99th percentile of the response time from the planned start, in the steady phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<Span>,
    /// The 99.9th percentile of the response time from the planned start, in the steady phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999: Option<Span>,
    /// Answers that differ from the right one in verdict or patch. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong_verdicts: Option<u64>,
    /// Reviews without a valid answer: HTTP error, timeout, connect, TLS, invalid response. Absent: not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// Objects that the control plane stored with an image that has no digest, whether the webhook was asked or not. Needs load
    /// through the API server. Absent: not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpinned: Option<u64>,
}

/// Limits on what the subject asks of the registry, and on what becomes of reviews when that is sick.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Registry {
    /// Requests in the whole run, tokens included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Requests for the manifest of any one tag in the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_image: Option<u64>,
    /// Reviews that were refused only because the registry was sick: what a cache knows need not be refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<u64>,
    /// How long after a tag has moved a review may still be answered with the digest that it left; later answers are wrong
    /// (`admission.wrongVerdicts`). Absent: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness: Option<Span>,
}

/// Limits on the subject's memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Memory {
    /// The largest resident set of the process tree in any sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Bytes>,
    /// How much the resident set may grow with time at a constant population.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    /// How much the resident set may grow with each distinct object that has come and gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth_per_object: Option<Bytes>,
}

/// Limits on the subject's open file descriptors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Descriptors {
    /// The most descriptors in any sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<u64>,
    /// How many more at the end of the steady phase than at the end of the warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<u64>,
}

/// Limits on the subject's threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Threads {
    /// The most threads in any sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_budget_is_refused() {
        let error = serde_json::from_str::<Budgets>(r#"{"events": {"mised": 0}}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `mised`"), "{error}");
    }

    #[test]
    fn absent_budgets_stay_absent() {
        let budgets: Budgets = serde_json::from_str(r#"{"memory": {"ceiling": "64MiB"}}"#).unwrap();
        assert_eq!(budgets.events, None);
        assert_eq!(serde_json::to_string(&budgets).unwrap(), r#"{"memory":{"ceiling":"64MiB"}}"#);
    }
}
