//! Facts about a subject beyond its process figures: its own metrics, its sockets by state, and its memory cgroup.
//!
//! Owns the rows that hold a subject's metrics, sockets and memory cgroup. The observer decides which of these facts
//! are read, and how often.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of series of the subject's metrics that are read, apart from the heap.
pub const METRIC_SERIES_MAX: usize = 32;

/// The series of the subject's own metrics that are read, as the manifest lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricsPlan {
    /// The address of the metrics page.
    pub url: String,
    /// How often the metrics page is read, in milliseconds.
    pub every_ms: u64,
    /// The series with the heap in use, if the scenario names it; otherwise the harness recognises the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap: Option<String>,
    /// Further series that are read, each as a name with labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
}

/// One row of `metrics.jsonl`: the values of the subject's own metrics at one time.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricsRow {
    /// When the metrics page had been read.
    pub t_ms: u64,
    /// The time that reading the metrics page took, in microseconds.
    pub took_us: u64,
    /// The length of the metrics page, in bytes.
    pub page_bytes: u64,
    /// The heap in use, in bytes; none if the metrics page does not have it.
    pub heap_bytes: Option<u64>,
    /// The runtime or allocator that reports the heap, such as `Go` or `jemalloc`; only the first row with a heap and
    /// the first row after a change have this field.
    pub heap_of: Option<String>,
    /// The values of the series in the manifest; a series that the metrics page lacks is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, f64>,
    /// Why the metrics page could not be read.
    pub error: Option<String>,
}

/// The TCP sockets of the subject, by the state of their connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Sockets {
    /// Sockets that listen.
    pub listen: u64,
    /// Sockets with an open connection.
    pub established: u64,
    /// Sockets whose peer has closed the connection while the subject has not: typical of a leaked connection.
    pub close_wait: u64,
    /// Sockets whose connection is being opened.
    pub opening: u64,
    /// Sockets whose connection is being closed.
    pub closing: u64,
}

/// The memory cgroup of the subject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cgroup {
    /// The cgroup version: 1 or 2.
    pub version: u8,
    /// All memory that is charged to the cgroup, including page cache, in bytes.
    pub current_bytes: u64,
    /// Anonymous memory, in bytes.
    pub anon_bytes: u64,
    /// Page cache, in bytes.
    pub file_bytes: u64,
    /// How often the kernel killed a process of the cgroup because memory ran out.
    pub oom_kills: u64,
}
