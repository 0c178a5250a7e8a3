//! `sharedCache`: a Redis in which the processes of the built-in service share verdicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// A Redis that the harness runs, and how it misbehaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct SharedCache {
    /// A period in which the Redis cuts every connection, including new ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away: Option<Away>,
    /// The Redis answers every read with a forged verdict "verified", and never returns stored values.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forges: bool,
}

/// The period in which the Redis is not reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Away {
    /// Start of the period, counted from the start of the load.
    pub at: Span,
    /// Length of the period.
    #[serde(rename = "for")]
    pub lasts: Span,
}
