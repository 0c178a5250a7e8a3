//! One row of `samples.jsonl`: the resources that processes and the machine used.

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
    /// The subject's process tree, or the kubelets' figures for its Pods on other machines; none if it was not running
    /// or no figures exist.
    pub subject: Option<Process>,
    /// The harness itself.
    pub harness: Option<Process>,
    /// The pressure on the machine.
    pub machine: MachineRow,
    /// The subject's TCP sockets by state; read every few seconds, because the kernel lists those of all processes.
    pub sockets: Option<Sockets>,
    /// The subject's memory cgroup, if it has one of its own; read with the sockets.
    pub cgroup: Option<Cgroup>,
    /// The time to take the sample, in microseconds.
    pub read_cost_us: u64,
    /// The time to read the proportional set, in microseconds: the kernel walks all pages and locks the subject's
    /// memory map meanwhile.
    pub rollup_cost_us: Option<u64>,
    /// Kept only for its large resident set, when one sample of an interval is kept. It counts for ceilings, and would
    /// distort results that need samples at even distances.
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
    /// Whether the figures come from the kubelets of its Pods: processor time and memory only, with the working set as
    /// the resident set.
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

/// Pressure on the machine. A field is none if the kernel does not report it.
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
    /// How far the wall clock has been set since then, in milliseconds; negative if it was set back.
    pub clock_set_ms: Option<i64>,
}

impl Fds {
    /// The sum of all classes.
    pub fn total(self) -> u64 {
        self.socket + self.file + self.pipe + self.other
    }
}
