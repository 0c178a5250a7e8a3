//! A cache that the subject's processes may share: the Redis of a scenario.
//!
//! Owns the keys of `sharedCache:`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// A Redis that the harness runs, with its misbehaviours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct SharedCache {
    /// A time in which every connection is cut, new ones at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away: Option<Away>,
    /// Every read is answered with a forged verdict "verified". Stored values are never returned.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forges: bool,
}

/// The time in which it is not reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Away {
    /// The begin, counted from the start of the load.
    pub at: Span,
    /// The duration.
    #[serde(rename = "for")]
    pub lasts: Span,
}
