//! Alerts on their way to the process that sends them to receivers.

use serde::{Deserialize, Serialize};
use service_core::alert::Alert;

/// Most alerts in one call.
pub const ALERTS_MAX: usize = 100;
/// Largest body: that many alerts with the images of large objects.
pub const BODY_BYTES_MAX: usize = 4 << 20;

/// Alerts in their order, as the receiving process reads them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Brought {
    /// The version of the contract.
    pub contract: u32,
    pub alerts: Vec<Alert>,
}

/// The same alerts, as the sending process writes them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bringing<'a> {
    /// The version of the contract.
    pub contract: u32,
    pub alerts: &'a [&'a Alert],
}

/// The receiving process accepted the alerts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    /// The version of the contract.
    pub contract: u32,
    pub taken: usize,
}
