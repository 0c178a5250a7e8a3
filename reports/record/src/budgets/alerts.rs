//! Budgets for the alerts that the subject sends to receivers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on the alerts that receivers get. With this section, each decision must be reported once.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Alerts {
    /// Decisions about objects with images whose alert did not reach the receiver correctly within ten seconds. Default
    /// 0.
    pub lost: Option<u64>,
    /// Superfluous alerts: a repeated alert for one decision, or an alert for a review that the harness never sent.
    /// Default 0.
    pub twice: Option<u64>,
    /// Alerts for dry runs, which change nothing and need no alert. Default 0.
    pub on_dry_run: Option<u64>,
}
