//! What is known of a subject besides its processes: its own metrics, its sockets by state, and its memory cgroup.
//!
//! Owns the rows and their bounds. What is read, and how often, is the observer's.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Series of the subject's metrics that are followed at most; the heap is not among them.
pub const METRIC_SERIES_MAX: usize = 32;

/// What of the subject's own metrics is followed, in the manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricsPlan {
    /// The address of the page.
    pub url: String,
    /// How often it is read, in milliseconds.
    pub every_ms: u64,
    /// The series that is the heap in use, where the scenario names it; otherwise it is recognised.
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
    /// How long that took, in microseconds.
    pub took_us: u64,
    /// The length of the page, in bytes.
    pub page_bytes: u64,
    /// The heap in use, in bytes, where the page tells it.
    pub heap_bytes: Option<u64>,
    /// What tells it, such as `Go` or `jemalloc`; only in the first row that has it, and in the first after a change.
    pub heap_of: Option<String>,
    /// The values of the series that are followed; what the page does not have is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, f64>,
    /// Why nothing could be read.
    pub error: Option<String>,
}

/// The TCP sockets of the subject, by the state of their connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Sockets {
    /// It listens.
    pub listen: u64,
    /// The connection is open.
    pub established: u64,
    /// The peer has closed, the subject has not: the usual face of a leaked connection.
    pub close_wait: u64,
    /// It is being opened.
    pub opening: u64,
    /// It is being closed.
    pub closing: u64,
}

/// The memory cgroup of the subject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cgroup {
    /// 1 or 2.
    pub version: u8,
    /// All memory that is charged to it, page cache included, in bytes.
    pub current_bytes: u64,
    /// Anonymous memory, in bytes.
    pub anon_bytes: u64,
    /// Page cache, in bytes.
    pub file_bytes: u64,
    /// How often the kernel killed a process in it for want of memory.
    pub oom_kills: u64,
}
