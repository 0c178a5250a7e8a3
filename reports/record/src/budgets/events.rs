//! Budgets of watch events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

use super::requests::AtLeast;

/// Limits on watch events. `missed`, `ghost`, `regressed`, `phantom`, `resurrected` and `identitySwap` default to 0 if
/// this section is present. Each of these outcomes breaks a promise of the API to a watcher.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Events {
    /// Versions of which neither they nor a later version was observed by the end of the drain phase. Default 0.
    pub missed: Option<u64>,
    /// Deletions that were not observed by the end of the drain phase. Default 0.
    pub ghost: Option<u64>,
    /// Observations of an older version of an object after a newer one. Default 0.
    pub regressed: Option<u64>,
    /// Observations of a version that was never committed. Default 0.
    pub phantom: Option<u64>,
    /// Observations of a version of an object after its deletion was observed. Default 0.
    pub resurrected: Option<u64>,
    /// Objects replaced under the same name whose deletion was never observed. Default 0.
    pub identity_swap: Option<u64>,
    /// Objects of which no version was observed by the end. If the witness reports objects without their versions,
    /// `missed` cannot be judged and the default is 0. Otherwise an absent key is not judged.
    pub unseen: Option<u64>,
    /// Versions and deletions observed only after the deadline. Absent: not judged.
    pub late: Option<u64>,
    /// Observations of a version that had been observed already. Absent: not judged.
    pub duplicate: Option<u64>,
    /// The versions that must be observed. With `latest`, a version that a newer one superseded may stay unobserved.
    /// With `every-version`, each version must be observed. Default `latest`.
    pub delivery: Option<Delivery>,
    /// The 99th percentile of the time from commit to observation, for commits made while no fault was active. Needs
    /// `churn` with about 300 such commits.
    pub lag_p99: Option<Span>,
    /// The longest time from the commit of a version that was observed late to the observation that settled the
    /// version.
    pub heal: Option<Span>,
    /// `{min: 1}`: how many observations the witness must report in the whole run. A witness that reports nothing breaks
    /// only this limit: without it, such a run decides nothing.
    pub reported: Option<AtLeast>,
    /// The time after which an observation is late. Default: 5 s, or three times the 99th percentile of the lag in the
    /// warm-up if that is longer.
    pub deadline: Option<Span>,
    /// `true`: after the drain the subject's view must equal a fresh list of the churned objects. After `churn: {end:
    /// empty}` the view must be empty. The view is `subject.world` (for the built-in service `/debug/watch`), else the
    /// subject's children (`subject.children`), else the last report of each object.
    pub converged: Option<bool>,
    /// `true`: after the drain each object must have exactly the children of `subject.children`. No child may be
    /// missing, superfluous, of an older version, still edited by `drift`, or without its parent. A restored child
    /// proves the subject's work only if no client wrote the parent between edit and restoration.
    pub restored: Option<bool>,
}

/// Which versions of an object the subject must observe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// The latest version. A version superseded by an observed later one is coalesced, which the API permits.
    #[default]
    Latest,
    /// Each version. A coalesced version breaks the budget.
    EveryVersion,
}
