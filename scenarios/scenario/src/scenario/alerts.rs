//! The receivers of alerts that the harness runs.
//!
//! Owns the keys of `alerts:`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Receivers of alerts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Alerts {
    /// A second receiver that misbehaves. It need not get any alert, and no review may wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
}

/// The misbehaviour of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Beside {
    /// The receiver accepts connections and never answers.
    Silent,
    /// The receiver answers 500.
    Refusing,
    /// Nothing listens at its address.
    Gone,
}
