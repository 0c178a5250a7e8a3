//! Budgets of alerts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on the alerts that receivers get. With this section, each decision must be reported once.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Alerts {
    /// Decisions about objects with images that were not correctly reported to the receiver within ten seconds. Default 0.
    pub lost: Option<u64>,
    /// Superfluous alerts: of a decision that was reported before, or of a review that nobody sent. Default 0.
    pub twice: Option<u64>,
    /// Alerts of a dry run, which changes nothing. Default 0.
    pub on_dry_run: Option<u64>,
}
