//! One row of `samples.jsonl`: the resources that processes and the machine use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cgroup, Sockets};

/// One row of `samples.jsonl`: the resources in use at one moment.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// When the sample was taken.
    pub t_ms: u64,
    /// The subject's process tree, or the kubelets' figures for its Pods on other machines. None if the subject was not
    /// running or no figures exist.
    pub subject: Option<Process>,
    /// The harness's own process.
    pub harness: Option<Process>,
    /// The pressure on the machine.
    pub machine: MachineRow,
    /// The subject's TCP sockets by state. The sockets are read only every few seconds, because the kernel lists the
    /// sockets of all processes.
    pub sockets: Option<Sockets>,
    /// The subject's memory cgroup, if the subject has its own; read with the sockets.
    pub cgroup: Option<Cgroup>,
    /// The time that taking the sample took, in microseconds.
    pub read_cost_us: u64,
    /// The time that reading the proportional set took, in microseconds. While the proportional set is read, the kernel
    /// walks all pages and locks the subject's memory map.
    pub rollup_cost_us: Option<u64>,
    /// Whether the sample is kept only for its large resident set, beside the one sample that is kept of each interval.
    /// A sample that is kept for its size counts for ceilings, but not for results that need samples at even distances.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub peak: bool,
}

/// Resources of a process tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Process {
    /// Number of processes in the tree.
    pub processes: u64,
    /// Resident set, in bytes.
    pub rss_bytes: u64,
    /// Proportional set, in bytes; read at most once a minute because reading is expensive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pss_bytes: Option<u64>,
    /// The anonymous memory of the resident set, in bytes.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub anon_bytes: u64,
    /// Processor time since the start of the processes, in milliseconds.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub cpu_ms: u64,
    /// Number of threads.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub threads: u64,
    /// Open file descriptors by class.
    pub fds: Fds,
    /// How often the program was started in this run.
    pub starts: u32,
    /// Whether the figures come from the kubelets of the subject's Pods. Kubelets report only processor time and
    /// memory, with the working set as resident set.
    #[serde(skip_serializing_if = "super::is_false")]
    pub told: bool,
}

/// Open file descriptors by class.
#[serde_with::apply(u64 => #[serde(skip_serializing_if = "super::is_zero")])]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Fds {
    /// Number of sockets.
    pub socket: u64,
    /// Number of files and directories.
    pub file: u64,
    /// Number of pipes.
    pub pipe: u64,
    /// Number of all other descriptors: epoll, eventfd, timerfd, …
    pub other: u64,
}

/// Pressure on the machine of the run. A field is none if the kernel does not report it.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineRow {
    /// Percentage of the last 10 s in which some task waited for a processor.
    pub psi_cpu_some_pct: Option<f64>,
    /// Percentage of the last 10 s in which some task waited for memory.
    pub psi_memory_some_pct: Option<f64>,
    /// Percentage of the last 10 s in which some task waited for a disk.
    pub psi_io_some_pct: Option<f64>,
    /// Processor time taken by other virtual machines of the host since boot, in milliseconds.
    pub steal_ms: Option<u64>,
    /// Time of all processors together in which any task ran, since boot, in milliseconds.
    pub busy_ms: Option<u64>,
    /// Time of all processors together in which no task ran, since boot, in milliseconds.
    pub idle_ms: Option<u64>,
    /// The load average of one minute.
    pub load_1m: Option<f64>,
    /// How long the machine was suspended since the first sample of the run, in milliseconds.
    pub suspended_ms: Option<u64>,
    /// How far the wall clock was set since the first sample of the run, in milliseconds; negative if it was set back.
    pub clock_set_ms: Option<i64>,
}

impl Fds {
    /// The number of open file descriptors of all classes.
    pub fn total(self) -> u64 {
        self.socket + self.file + self.pipe + self.other
    }
}
