//! A cache that the subject's processes may share: the Redis of a scenario.
//!
//! Owns the keys of `sharedCache:`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// A Redis that the harness runs, and what is wrong with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct SharedCache {
    /// Every connection is cut, and new ones as soon as they come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away: Option<Away>,
    /// Whatever is asked for, it says that somebody verified it. What was kept it gives to nobody.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forges: bool,
}

/// When it is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Away {
    /// From when on, counted from the start of the load.
    pub at: Span,
    /// For how long.
    #[serde(rename = "for")]
    pub lasts: Span,
}
