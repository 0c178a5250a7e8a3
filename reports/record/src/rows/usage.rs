//! One row of `samples.jsonl`: what processes and the machine used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cgroup, Sockets};

/// One row of `samples.jsonl`: resources at one moment.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// When it was taken.
    pub t_ms: u64,
    /// The subject's process tree, or what kubelets tell of its Pods on other machines; none if it was not running or nobody tells.
    pub subject: Option<Process>,
    /// The harness itself.
    pub harness: Option<Process>,
    /// The machine.
    pub machine: MachineRow,
    /// The subject's TCP sockets by state; read every few seconds, because the kernel lists those of all processes.
    pub sockets: Option<Sockets>,
    /// The subject's memory cgroup, where it has one of its own; read with the sockets.
    pub cgroup: Option<Cgroup>,
    /// What taking the sample cost, in microseconds.
    pub read_cost_us: u64,
    /// What reading the proportional set cost of it, in microseconds: the kernel walks all pages and holds the subject's map meanwhile.
    pub rollup_cost_us: Option<u64>,
    /// Kept for its large resident set alone, where only one sample of an interval is kept: it counts for ceilings, and would bend
    /// what is computed from samples that were taken in turn.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub peak: bool,
}

/// Resources of a process tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Process {
    /// Processes in the tree.
    pub processes: u64,
    /// Resident set, in bytes.
    pub rss_bytes: u64,
    /// Proportional set, in bytes; read at most once a minute because it is expensive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pss_bytes: Option<u64>,
    /// Anonymous part of the resident set, in bytes.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub anon_bytes: u64,
    /// Processor time since the start, in milliseconds.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub cpu_ms: u64,
    /// Threads.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub threads: u64,
    /// Open file descriptors by class.
    pub fds: Fds,
    /// How often the program was started in this run.
    pub starts: u32,
    /// Told by the kubelets of its Pods: processor time and memory alone, the resident set being the working set.
    #[serde(skip_serializing_if = "super::is_false")]
    pub told: bool,
}

/// Open file descriptors by class.
#[serde_with::apply(u64 => #[serde(skip_serializing_if = "super::is_zero")])]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Fds {
    /// Sockets.
    pub socket: u64,
    /// Files and directories.
    pub file: u64,
    /// Pipes.
    pub pipe: u64,
    /// Everything else: epoll, eventfd, timerfd, …
    pub other: u64,
}

/// Pressure on the machine. A field is none where the kernel does not say.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineRow {
    /// Share of the last 10 s in which some task waited for a processor, in percent.
    pub psi_cpu_some_pct: Option<f64>,
    /// Share of the last 10 s in which some task waited for memory, in percent.
    pub psi_memory_some_pct: Option<f64>,
    /// Share of the last 10 s in which some task waited for a disk, in percent.
    pub psi_io_some_pct: Option<f64>,
    /// Processor time taken by other guests of the host since boot, in milliseconds.
    pub steal_ms: Option<u64>,
    /// Time of all processors together in which anything ran, since boot, in milliseconds.
    pub busy_ms: Option<u64>,
    /// Time of all processors together in which nothing ran, since boot, in milliseconds.
    pub idle_ms: Option<u64>,
    /// The load average of one minute.
    pub load_1m: Option<f64>,
    /// How long the machine has been suspended since the run began to sample, in milliseconds.
    pub suspended_ms: Option<u64>,
    /// How far the wall clock has been set since then, in milliseconds; negative where it was set back.
    pub clock_set_ms: Option<i64>,
}

impl Fds {
    /// All of them.
    pub fn total(self) -> u64 {
        self.socket + self.file + self.pipe + self.other
    }
}
