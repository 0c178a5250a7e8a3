//! Budgets of watch events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// Limits on watch events. `missed`, `ghost`, `regressed`, `phantom`, `resurrected` and `identitySwap` are 0 whenever
/// this section is present: each of them breaks a promise of the API to a watcher.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Events {
    /// Versions that were not observed by the end of the drain phase, nor a later one. Default 0.
    pub missed: Option<u64>,
    /// Deletions that were not observed by the end. Default 0.
    pub ghost: Option<u64>,
    /// Observations of an older version of an object after a newer one. Default 0.
    pub regressed: Option<u64>,
    /// Observations of a version that was never committed. Default 0.
    pub phantom: Option<u64>,
    /// Observations of a version of an object after its deletion was observed. Default 0.
    pub resurrected: Option<u64>,
    /// Objects replaced under the same name whose deletion was never observed. Default 0.
    pub identity_swap: Option<u64>,
    /// Objects of which no version was observed by the end. Absent: 0 if the witness reports objects without their
    /// versions, so that `missed` cannot be judged; else not judged.
    pub unseen: Option<u64>,
    /// Versions observed only after the deadline, deletions too. Absent: not judged.
    pub late: Option<u64>,
    /// Observations of a version that had been observed already. Absent: not judged.
    pub duplicate: Option<u64>,
    /// Which versions must be observed. `latest`: a version that a newer one superseded may be left out; `every-version`: it may not.
    /// Default `latest`.
    pub delivery: Option<Delivery>,
    /// The 99th percentile of the time from commit to observation, of commits made while no fault was active; needs about 300 of them, so
    /// `churn`.
    pub lag_p99: Option<Span>,
    /// The longest time from a commit that was observed late to the observation that settled it.
    pub heal: Option<Span>,
    /// The time after which an observation is late. Default: 5 s, or three times the warm-up's 99th percentile of the lag if that is more.
    pub deadline: Option<Span>,
    /// `true`: after the drain the subject's view equals a fresh list of the churned objects (after `churn: {end: empty}` an
    /// empty one). The view is `subject.world` (the service's is `/debug/watch`), else the subject's children
    /// (`subject.children`), else the last report of each object.
    pub converged: Option<bool>,
    /// `true`: after the drain each object has exactly the children of `subject.children`: none missing, extra, of an older
    /// version, edited by `drift` or without its parent. A drifted child proves something only if it was restored before
    /// anybody wrote the parent again.
    pub restored: Option<bool>,
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
