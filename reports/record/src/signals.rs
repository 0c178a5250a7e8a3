//! Facts about a subject beyond its processes: its own metrics, its sockets by state, and its memory cgroup.
//!
//! Owns the rows and their bounds. The observer decides what is read, and how often.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most series of the subject's metrics that are followed; the heap is not counted.
pub const METRIC_SERIES_MAX: usize = 32;

/// The part of the subject's own metrics that is followed, in the manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricsPlan {
    /// The address of the metrics page.
    pub url: String,
    /// How often it is read, in milliseconds.
    pub every_ms: u64,
    /// The series that is the heap in use, if the scenario names it; otherwise the harness recognises it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap: Option<String>,
    /// The other series that are followed, each as a name with labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
}

/// One row of `metrics.jsonl`: one reading of the subject's own metrics.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricsRow {
    /// When the page had been read.
    pub t_ms: u64,
    /// The time to read the page, in microseconds.
    pub took_us: u64,
    /// The length of the page, in bytes.
    pub page_bytes: u64,
    /// The heap in use, in bytes, if the page has it.
    pub heap_bytes: Option<u64>,
    /// The runtime or allocator that reports it, such as `Go` or `jemalloc`; only in the first row that has it, and in
    /// the first after a change.
    pub heap_of: Option<String>,
    /// The values of the series that are followed, without those that are not on the page.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, f64>,
    /// Why the page could not be read.
    pub error: Option<String>,
}

/// The TCP sockets of the subject, by the state of their connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Sockets {
    /// Listening.
    pub listen: u64,
    /// The connection is open.
    pub established: u64,
    /// The peer has closed, the subject has not: typical of a leaked connection.
    pub close_wait: u64,
    /// The connection is being opened.
    pub opening: u64,
    /// The connection is being closed.
    pub closing: u64,
}

/// The memory cgroup of the subject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cgroup {
    /// The cgroup version: 1 or 2.
    pub version: u8,
    /// All memory that is charged to it, page cache included, in bytes.
    pub current_bytes: u64,
    /// Anonymous memory, in bytes.
    pub anon_bytes: u64,
    /// Page cache, in bytes.
    pub file_bytes: u64,
    /// How often the kernel killed a process in it because memory ran out.
    pub oom_kills: u64,
}
