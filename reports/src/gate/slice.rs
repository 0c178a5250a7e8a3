//! What one slice measured, and how hard the machine was pressed meanwhile.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::Metric;
use super::order::Side;

/// One slice of load on one build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Slice {
    /// 1, or 2 for the session that confirms.
    pub session: u32,
    /// Its block, from 0.
    pub block: u32,
    /// Its place in the block, 0 to 3.
    pub place: u32,
    /// Which build was under load.
    pub side: Side,
    /// What was sent, as SHA-256: equal for both slices of a pair.
    pub fingerprint: String,
    /// How long it was measured, in milliseconds.
    pub lasted_ms: u64,
    /// Requests whose time came.
    pub planned: u64,
    /// Requests with a valid answer.
    pub answered: u64,
    /// Changes of objects that were made for the subject to see.
    #[serde(default)]
    pub changes: u64,
    /// The machine meanwhile.
    pub pressure: Pressure,
    /// What was measured; what could not be is absent.
    pub values: BTreeMap<Metric, f64>,
}

impl Slice {
    /// Session, block and place in it.
    pub fn place(&self) -> (u32, u32, u32) {
        (self.session, self.block, self.place)
    }
}

/// How hard the machine was pressed in a slice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pressure {
    /// The share of the time in which something waited for a processor (pressure stall information); absent where the kernel does not tell.
    pub cpu: Option<f64>,
    /// The same for the disk.
    pub io: Option<f64>,
    /// The share of the processors' time that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// How late the generator itself sent, at the 99th percentile, in microseconds.
    pub lateness_us: u64,
}

/// A count that is no slice: a build that was run alone, under an instrument that makes it slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Counted {
    /// 1, or 2 for the session that confirms.
    pub session: u32,
    /// Which build.
    pub side: Side,
    /// What was counted.
    pub metric: Metric,
    /// How many, a request or an event.
    pub value: f64,
}
