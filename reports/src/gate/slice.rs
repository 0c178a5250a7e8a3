//! The measurements of one slice, and the machine's pressure meanwhile.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::Metric;
use super::order::Side;

/// One slice of load on one build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Slice {
    /// The number of the session: 1, or 2 for the session that confirms.
    pub session: u32,
    /// Its block, from 0.
    pub block: u32,
    /// Its place in the block, 0 to 3.
    pub place: u32,
    /// The build under load.
    pub side: Side,
    /// The SHA-256 of the payloads: equal for both slices of a pair.
    pub fingerprint: String,
    /// The measured length, in milliseconds.
    pub lasted_ms: u64,
    /// Requests that were due.
    pub planned: u64,
    /// Requests with a valid answer.
    pub answered: u64,
    /// Changes of objects made for the subject to observe.
    #[serde(default)]
    pub changes: u64,
    /// The machine's pressure meanwhile.
    pub pressure: Pressure,
    /// The measured values, without those that could not be measured.
    pub values: BTreeMap<Metric, f64>,
}

impl Slice {
    /// Session, block and place in it.
    pub fn place(&self) -> (u32, u32, u32) {
        (self.session, self.block, self.place)
    }
}

/// The machine's pressure in a slice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pressure {
    /// The share of the time in which some task waited for a processor (pressure stall information); absent if the
    /// kernel does not report it.
    pub cpu: Option<f64>,
    /// The share of the time in which some task waited for a disk.
    pub io: Option<f64>,
    /// The share of the processors' time that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// The lateness of the generator at the 99th percentile, in microseconds.
    pub lateness_us: u64,
}

/// An exact count outside of the slices: a build was run alone, under an instrument that makes it slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Counted {
    /// The number of the session: 1, or 2 for the session that confirms.
    pub session: u32,
    /// The build that was counted.
    pub side: Side,
    /// The metric that was counted.
    pub metric: Metric,
    /// The count per request or per event.
    pub value: f64,
}
