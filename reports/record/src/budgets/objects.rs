//! Budgets of objects: the subject's writes, its finalizers, objects of others, and children.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Rate;

/// Limits on the subject's writes when nobody else writes. Judged of every run that leaves the subject some time alone,
/// with or without this section.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Writes {
    /// How often the subject may write one object while nobody else writes, in the drain after some time to catch up. An object
    /// counts if it was written in each third of that time and more often than this. Leases, events and unchanged writes do not
    /// count. `0/s`: not at all. Default `6/m`.
    pub steady: Option<Rate>,
}

/// Limits on deletions that the subject's finalizers hold up. Judged of every run with churn, with or without this
/// section.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finalizers {
    /// Deleted objects that still exist after the drain because of a finalizer that the subject added. Not counted: deletions within
    /// the deadline of events before the end, and objects whose writes were refused so often that client-go would still be waiting.
    /// Default 0.
    pub stuck: Option<u64>,
}

/// Limits on the subject's requests for churned or judged objects that it did not make. Judged of every run whose
/// control plane reports the author of each request (the mock), with or without this section.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectLimits {
    /// Objects that others made and deleted, and that the subject made again under the same namespace and name. Objects that the
    /// subject itself had made or deleted do not count. Default 0.
    pub resurrected: Option<u64>,
    /// Objects that others made and that the subject deleted before anybody else asked for it. Allow a number for a subject whose task
    /// is deletion, such as a controller of times to live. Default 0.
    pub deleted_by_others: Option<u64>,
}

/// Limits on the subject's children at any time. Judged of every scenario with `subject.children`, with or without this
/// section.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChildrenLimits {
    /// Objects that at any time had more children than `subject.children` says, even if corrected later. Children of an older version
    /// of their parent may stand beside their replacements for the least deadline of events. Default 0.
    pub excess: Option<u64>,
    /// Children without an owner reference that exist at the end although their parent is gone: no garbage collector removes them. Not
    /// counted: those that outlived the parent by less than the deadline of events. With `by: owner` such a child is recognised by the
    /// name or a label of the parent. Default 0.
    pub orphaned: Option<u64>,
}
