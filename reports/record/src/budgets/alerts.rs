//! What receivers of alerts may be told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on what receivers of alerts are told. Whoever has the section tells each decision once.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Alerts {
    /// Decisions about objects with images of which the receiver was not told as what they were, admitted or refused, within ten seconds.
    /// Default 0.
    pub lost: Option<u64>,
    /// Alerts that are one too many: of a decision that was reported before, or of a review that nobody sent. Default 0.
    pub twice: Option<u64>,
    /// Alerts of a dry run, which changes nothing. Default 0.
    pub on_dry_run: Option<u64>,
}
