//! Budgets for objects: the subject's steady writes, its finalizers, objects made by other clients, and children.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Rate;

/// Limits on the subject's writes while no other client writes. With or without this section, each run is judged that
/// has such a time.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Writes {
    /// How often the subject may write one object while no other client writes. The time judged is the drain, after
    /// some time to catch up. An object counts if it was written in each third of that time, and more often than this
    /// limit. Leases, events and writes without a change do not count. `0/s`: not at all. Default `6/m`.
    pub steady: Option<Rate>,
}

/// Limits on deletions that the subject's finalizers hold up. Each run with churn is judged, with or without this
/// section.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finalizers {
    /// Deleted objects that still exist after the drain because of a finalizer that the subject added. Two kinds do not
    /// count: objects deleted less than the deadline of events before the end, and objects whose writes were refused so
    /// often that client-go would still be waiting. Default 0.
    pub stuck: Option<u64>,
}

/// Limits on the subject's requests for churned or judged objects that it did not make. With or without this section,
/// each run is judged whose control plane reports the author of each request (the mock).
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectLimits {
    /// Objects that other clients made and deleted, and that the subject made again under the same namespace and name.
    /// An object that the subject had made or deleted before does not count. Default 0.
    pub resurrected: Option<u64>,
    /// Objects that other clients made and that the subject deleted before any other client requested the deletion. Set
    /// a number if deletion is the subject's task, as for a time-to-live controller. Default 0.
    pub deleted_by_others: Option<u64>,
}

/// Limits on the subject's children at any time. Each scenario with `subject.children` is judged, with or without this
/// section.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChildrenLimits {
    /// Objects that at any time had more children than `subject.children` says, even if corrected later. Children of an
    /// older version of their parent may exist beside their replacements for 5 s, the shortest deadline of events.
    /// Default 0.
    pub excess: Option<u64>,
    /// Children without an owner reference that still exist at the end although their parent is deleted: no garbage
    /// collector removes them. A child does not count if it has outlived its parent by less than the deadline of
    /// events. With `by: owner` such a child is recognised by the name or a label of its parent. Default 0.
    pub orphaned: Option<u64>,
}
