//! Who is told what became of reviews: the receivers of alerts that the harness runs.
//!
//! Owns the keys of `alerts:`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Receivers of alerts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Alerts {
    /// A second receiver that is not well. Nothing is expected of it, and nobody may wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
}

/// What is wrong with a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Beside {
    /// It takes connections and never answers.
    Silent,
    /// It answers 500.
    Refusing,
    /// Nobody listens.
    Gone,
}
