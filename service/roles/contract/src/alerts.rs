//! The messages by which one process passes alerts to another process, which sends them to receivers.

use serde::{Deserialize, Serialize};
use service_core::alert::Alert;

/// Maximum number of alerts in one call.
pub const ALERTS_MAX: usize = 100;
/// Largest body of a call, in bytes: the maximum number of alerts, each with the images of a large object.
pub const BODY_BYTES_MAX: usize = 4 << 20;

/// A call with alerts in order, as the receiving process parses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Brought {
    pub contract: u32,
    pub alerts: Vec<Alert>,
}

/// A call with alerts in order, as the sending process writes it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bringing<'a> {
    pub contract: u32,
    pub alerts: &'a [&'a Alert],
}

/// The answer that confirms that the alerts were accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    pub contract: u32,
    pub taken: usize,
}
