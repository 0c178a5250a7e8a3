//! The facts of one trial: the subject's writes, the numbers of objects that came and went, and the end state.
//!
//! Owns the file that a trial leaves for the hunt. `run/audit.rs` fills it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that a hunt learns from one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Audit {
    /// Why the audit is incomplete; absent if it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lacks: Option<String>,
    /// The subject's writes, in the order of their answers.
    pub(crate) writes: Vec<Write>,
    /// The numbers of objects by resource.
    pub(crate) changes: BTreeMap<String, Changes>,
    /// The objects at the end, ordered by resource.
    pub(crate) objects: Vec<Object>,
    /// The resources that the subject watches.
    pub(crate) watched: Vec<String>,
    /// The hits of each fault, in the order of the scenario.
    pub(crate) hits: Vec<u64>,
}

/// One write of the subject.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Write {
    /// Milliseconds from the start of the warm-up.
    pub(crate) t_ms: u64,
    /// `create`, `update`, `patch` or `delete`.
    pub(crate) verb: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    /// Namespace and name.
    pub(crate) object: String,
    pub(crate) fields: Vec<String>,
    pub(crate) status: u16,
}

/// How many objects of one resource came and went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Changes {
    pub(crate) created: u64,
    pub(crate) deleted: u64,
    /// The highest increase of the number of objects at any moment.
    pub(crate) most: i64,
}

/// One object at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Object {
    pub(crate) resource: String,
    pub(crate) object: Value,
}

/// Resources that have no meaning for a comparison: their objects report events or renew leases.
const IGNORED: [&str; 4] =
    ["events", "events.events.k8s.io", "leases.coordination.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"];

/// Whether a hunt ignores a resource.
pub(crate) fn is_ignored(resource: &str) -> bool {
    IGNORED.contains(&resource)
}
