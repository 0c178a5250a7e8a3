//! The values of one measurement, and the machine's pressure in it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::Metric;
use super::order::Side;

/// One measurement: a short time of load on one of the builds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Slice {
    /// The number of the session: 1, or 2 for the session that confirms a result.
    pub session: u32,
    /// The number of the measurement's block, from 0.
    pub block: u32,
    /// The index of the measurement in its block, 0 to 3.
    pub place: u32,
    /// The build under load.
    pub side: Side,
    /// The SHA-256 of the payloads: equal for both measurements of a pair.
    pub fingerprint: String,
    /// The length of the measurement, in milliseconds.
    pub lasted_ms: u64,
    /// Requests that the schedule planned.
    pub planned: u64,
    /// Requests with a valid answer.
    pub answered: u64,
    /// Changes of objects made for the subject to observe.
    #[serde(default)]
    pub changes: u64,
    /// The machine's pressure in the measurement.
    pub pressure: Pressure,
    /// The measured values, without those that could not be measured.
    pub values: BTreeMap<Metric, f64>,
}

impl Slice {
    /// The number of the session, of the block and of the measurement in the block.
    pub fn place(&self) -> (u32, u32, u32) {
        (self.session, self.block, self.place)
    }
}

/// The machine's pressure in a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pressure {
    /// The fraction of the time in which some task waited for a processor (pressure stall information). Absent if the
    /// kernel does not report pressure.
    pub cpu: Option<f64>,
    /// The fraction of the time in which some task waited for a disk.
    pub io: Option<f64>,
    /// The fraction of the processors' time that the hypervisor gave to other virtual machines.
    pub steal: Option<f64>,
    /// The 99th percentile of the load generator's lateness, in microseconds.
    pub lateness_us: u64,
}

/// An exact count of one build, such as instructions, made outside of the measurements. While counting, the build ran
/// alone, under an instrument that makes it slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Counted {
    /// The number of the session: 1, or 2 for the session that confirms a result.
    pub session: u32,
    /// The build that was counted.
    pub side: Side,
    /// The metric that was counted.
    pub metric: Metric,
    /// The count per request or per event.
    pub value: f64,
}
