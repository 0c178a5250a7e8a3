//! The rows of the record's files: one interval, one sample, one fault, one anomaly, the end.
//!
//! Owns their fields and units. No row judges; counts are facts. What is zero, false, empty or none is left out of intervals and samples:
//! there are tens of thousands of both, and it is half of what they would be. Longer than 500 lines because every field carries its unit in a
//! comment, and who reads a record wants all rows in one place.

use std::ops::{Add, AddAssign, Sub};

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cgroup, Evidence, Sockets};
use crate::ledger::Outcome;
use facts::{Change, Commit};

/// The part of the run that a moment belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Load runs, but latency is not judged yet.
    WarmUp,
    /// The part that is judged.
    Steady,
    /// No new load; the subject may catch up.
    Drain,
}

/// One row of `intervals.jsonl`: what happened since the row before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interval {
    /// Start of the interval.
    pub start_ms: u64,
    /// End of the interval.
    pub end_ms: u64,
    /// The phase in which it ended.
    pub phase: Phase,
    /// Set on the last row of a run that ended by itself; the ledger was finished before it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub last: bool,
    /// Outcomes decided in this interval.
    pub events: EventCounts,
    /// Objects that exist at the end of the interval.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub live_objects: u64,
    /// Versions that wait for an observation at the end of the interval.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pending: u64,
    /// The ledger's deadline in this interval.
    pub deadline_ms: u64,
    /// Lag of observations made in this interval, of commits made while no fault was active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Quantiles>,
    /// Admission load; none if the scenario has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<AdmissionRow>,
    /// Calls of the subject's API over Deployments; none if the scenario has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallsRow>,
    /// Object churn; none if the scenario has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub churn: Option<ChurnRow>,
    /// What came through the witness.
    pub witness: WitnessRow,
    /// What the control plane was asked.
    pub api: ApiRow,
    /// What the registry was asked; none where nobody counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<RegistryRow>,
    /// The ids of the faults that were active at some time of the interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults_active: Vec<String>,
    /// What the control plane refused to the subject, because its roles do not allow it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// How often the control plane called each registered webhook since the row that told it before; in the last row, where the control
    /// plane tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookRow>,
}

/// Calls of one registered webhook, by the control plane's own account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookRow {
    /// Its name.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// How many of these it refused, or gave no valid answer to.
    pub rejected: u64,
}

/// Requests of the subject that the control plane refused for want of a right.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// What was asked for: `list networkpolicies of networking.k8s.io`.
    pub what: String,
    /// How often.
    pub times: u64,
}

/// Outcomes of the ledger, counted. In an interval: those decided since the row before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventCounts {
    /// Versions committed to the control plane, deletions too.
    #[serde(skip_serializing_if = "is_zero")]
    pub commits: u64,
    /// Observations that the witness carried, of any kind.
    #[serde(skip_serializing_if = "is_zero")]
    pub observations: u64,
    /// Versions observed within the deadline.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed: u64,
    /// Versions superseded in time by an observed later version.
    #[serde(skip_serializing_if = "is_zero")]
    pub coalesced: u64,
    /// Versions observed or superseded only after the deadline.
    #[serde(skip_serializing_if = "is_zero")]
    pub late: u64,
    /// Versions of which neither they nor a later version were observed by the end.
    #[serde(skip_serializing_if = "is_zero")]
    pub missed: u64,
    /// Objects of which no version was observed by the end.
    #[serde(skip_serializing_if = "is_zero")]
    pub unseen: u64,
    /// Deletions not observed by the end.
    #[serde(skip_serializing_if = "is_zero")]
    pub ghost: u64,
    /// Deletions observed only after the deadline.
    #[serde(skip_serializing_if = "is_zero")]
    pub late_ghost: u64,
    /// Observations of a version observed before.
    #[serde(skip_serializing_if = "is_zero")]
    pub duplicate: u64,
    /// Observations of an older version after a newer one.
    #[serde(skip_serializing_if = "is_zero")]
    pub regressed: u64,
    /// Observations of something never committed.
    #[serde(skip_serializing_if = "is_zero")]
    pub phantom: u64,
    /// Observations of a version after the object's deletion was observed.
    #[serde(skip_serializing_if = "is_zero")]
    pub resurrected: u64,
    /// Objects replaced under the same name whose deletion was never observed.
    #[serde(skip_serializing_if = "is_zero")]
    pub identity_swap: u64,
    /// Versions of objects created and deleted inside one outage of the subject's stream.
    #[serde(skip_serializing_if = "is_zero")]
    pub unobservable: u64,
}

/// A few points of a distribution. A percentile is present only with at least 100 samples beyond it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Quantiles {
    /// Samples.
    #[serde(skip_serializing_if = "is_zero")]
    pub count: u64,
    /// Median, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<u64>,
    /// 90th percentile, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90_us: Option<u64>,
    /// 99th percentile, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<u64>,
    /// 99.9th percentile, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p999_us: Option<u64>,
    /// The largest sample, in microseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_us: u64,
}

/// Calls of the subject's API over Deployments, of one interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CallsRow {
    /// Calls that were due.
    #[serde(skip_serializing_if = "is_zero")]
    pub planned: u64,
    /// Calls that were made.
    #[serde(skip_serializing_if = "is_zero")]
    pub sent: u64,
    /// Calls that were due but could not be made, because too many were under way.
    #[serde(skip_serializing_if = "is_zero")]
    pub overflow: u64,
    /// Counts and lists that were read.
    #[serde(skip_serializing_if = "is_zero")]
    pub read: u64,
    /// Counts that were set.
    #[serde(skip_serializing_if = "is_zero")]
    pub set: u64,
    /// Calls of those who may call that were not answered with success.
    #[serde(skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// Counts that others set past the subject.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_others: u64,
    /// Those of them that the control plane refused.
    #[serde(skip_serializing_if = "is_zero")]
    pub others_failed: u64,
    /// Calls of those who must be refused, that were.
    #[serde(skip_serializing_if = "is_zero")]
    pub turned_away: u64,
    /// Calls of those who must be refused, that were let in.
    #[serde(skip_serializing_if = "is_zero")]
    pub let_in: u64,
    /// Calls of those who must be refused, that found nobody: no connection came about, or time was over.
    #[serde(skip_serializing_if = "is_zero")]
    pub unanswered: u64,
    /// Answers that told a count, or that there is none, compared with what was committed.
    #[serde(skip_serializing_if = "is_zero")]
    pub judged: u64,
    /// Of these, those that told what never was.
    #[serde(skip_serializing_if = "is_zero")]
    pub wrong: u64,
    /// Counts that were said to be set and never were.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Answers that could not be judged.
    #[serde(skip_serializing_if = "is_zero")]
    pub unjudged: u64,
    /// Response time of reads from the planned start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Quantiles>,
    /// Response time of writes from the planned start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_response: Option<Quantiles>,
    /// How much later than planned calls were started by the generator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Quantiles>,
    /// How old the counts were that were told: from the commit that followed, to the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staleness: Option<Quantiles>,
    /// Some errors and wrong answers in words, at most five.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// Admission load of one interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AdmissionRow {
    /// Reviews that were due.
    #[serde(skip_serializing_if = "is_zero")]
    pub planned: u64,
    /// Reviews that were sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub sent: u64,
    /// Reviews that were due but could not be sent, because too many were under way.
    #[serde(skip_serializing_if = "is_zero")]
    pub overflow: u64,
    /// Answers that allowed.
    #[serde(skip_serializing_if = "is_zero")]
    pub allowed: u64,
    /// Answers that denied.
    #[serde(skip_serializing_if = "is_zero")]
    pub denied: u64,
    /// Answers with an HTTP status other than 200.
    #[serde(skip_serializing_if = "is_zero")]
    pub http_error: u64,
    /// Reviews without an answer in time.
    #[serde(skip_serializing_if = "is_zero")]
    pub timeout: u64,
    /// Reviews for which no connection could be made.
    #[serde(skip_serializing_if = "is_zero")]
    pub connect: u64,
    /// Reviews for which the TLS handshake failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub tls: u64,
    /// Answers that kube-apiserver would have refused.
    #[serde(skip_serializing_if = "is_zero")]
    pub invalid_response: u64,
    /// Reviews that were sent once more, because the server had surely not looked at them.
    #[serde(skip_serializing_if = "is_zero")]
    pub sent_again: u64,
    /// Those among the denials that are right only because the registry was sick, HTTP 500 in answer to an UPDATE included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unavailable: u64,
    /// Valid answers that differ from the right one in verdict or patch.
    #[serde(skip_serializing_if = "is_zero")]
    pub wrong_verdicts: u64,
    /// Those among them that allowed what had to be denied.
    #[serde(skip_serializing_if = "is_zero")]
    pub wrong_allows: u64,
    /// Response time from the planned start, of all outcomes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Quantiles>,
    /// Service time from the real start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Quantiles>,
    /// How much later than planned requests were started by the generator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Quantiles>,
    /// Up to 5 error texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// What the control plane stored, where the load goes through it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredRow>,
}

/// What the control plane stored of admission load in one interval, by a watch of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StoredRow {
    /// Versions with images that were stored.
    #[serde(skip_serializing_if = "is_zero")]
    pub versions: u64,
    /// Objects that became unpinned: stored with an image that has no digest.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpinned: u64,
    /// Up to 5 of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// Object churn of one interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChurnRow {
    /// Changes that were due.
    #[serde(skip_serializing_if = "is_zero")]
    pub planned: u64,
    /// Objects created.
    #[serde(skip_serializing_if = "is_zero")]
    pub created: u64,
    /// Objects updated.
    #[serde(skip_serializing_if = "is_zero")]
    pub updated: u64,
    /// Objects deleted.
    #[serde(skip_serializing_if = "is_zero")]
    pub deleted: u64,
    /// Changes that a webhook refused, rightly or not.
    #[serde(skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// Changes that the control plane refused.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// How much later than planned changes were started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Quantiles>,
    /// Distinct objects since the start of the run.
    #[serde(skip_serializing_if = "is_zero")]
    pub objects_total: u64,
}

/// What came through the witness in one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WitnessRow {
    /// Lines, or other units of the witness.
    #[serde(skip_serializing_if = "is_zero")]
    pub lines: u64,
    /// Lines that could not be read as an observation.
    #[serde(skip_serializing_if = "is_zero")]
    pub malformed: u64,
    /// The first line of the run that could not be read: its number, why, and its beginning. In the row of its interval alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// What the control plane was asked in one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiRow {
    /// Requests of everybody, the harness too.
    #[serde(skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// Requests of the subject.
    #[serde(skip_serializing_if = "is_zero")]
    pub subject_requests: u64,
    /// Watches that the subject opened.
    #[serde(skip_serializing_if = "is_zero")]
    pub subject_watches: u64,
    /// Lists that the subject asked for, one a page.
    #[serde(skip_serializing_if = "is_zero")]
    pub subject_lists: u64,
    /// Lists and watches of what is judged that the subject sent; none where not each request was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_follows: Option<u64>,
    /// Watches of the subject that are open at the end of the interval.
    #[serde(skip_serializing_if = "is_zero")]
    pub subject_open_watches: u64,
    /// Connections on which the subject sent its first request. One that it opens and never uses is not known to be its own.
    #[serde(skip_serializing_if = "is_zero")]
    pub subject_connections: u64,
    /// Connections of the subject that are open at the end of the interval.
    #[serde(skip_serializing_if = "is_zero")]
    pub subject_open_connections: u64,
    /// Milliseconds since the subject's last request, while none of its requests is open; none while one is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_idle_ms: Option<u64>,
    /// Answers 410, as HTTP status or inside a stream, sent to the subject.
    #[serde(skip_serializing_if = "is_zero")]
    pub gone_answers: u64,
    /// Those among them for a resourceVersion that had been refused to the subject before.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeated_gone: u64,
}

/// What the registry was asked in one interval; the harness's own canaries are not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryRow {
    /// Requests, tokens included.
    #[serde(skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// Those among them that were answered with a status of the 400s or 500s.
    #[serde(skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// Those among them that got no answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub unanswered: u64,
    /// Distinct tags that were asked for, since the start.
    #[serde(skip_serializing_if = "is_zero")]
    pub tags_total: u64,
    /// The most requests for one tag, since the start.
    #[serde(skip_serializing_if = "is_zero")]
    pub most_of_one_tag: u64,
}

/// One row of `samples.jsonl`: resources at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// When it was taken.
    pub t_ms: u64,
    /// The subject's process tree; none if it was not running or is not on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Process>,
    /// The harness itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<Process>,
    /// The machine.
    pub machine: MachineRow,
    /// The subject's TCP sockets by state; read every few seconds, because the kernel lists those of all processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<Sockets>,
    /// The subject's memory cgroup, where it has one of its own; read with the sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Cgroup>,
    /// What taking the sample cost, in microseconds.
    pub read_cost_us: u64,
    /// What reading the proportional set cost of it, in microseconds: the kernel walks all pages and holds the subject's map meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollup_cost_us: Option<u64>,
    /// Kept for its large resident set alone, where only one sample of an interval is kept: it counts for ceilings, and would bend
    /// what is computed from samples that were taken in turn.
    #[serde(default, skip_serializing_if = "is_false")]
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
    #[serde(skip_serializing_if = "is_zero")]
    pub anon_bytes: u64,
    /// Processor time since the start, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub cpu_ms: u64,
    /// Threads.
    #[serde(skip_serializing_if = "is_zero")]
    pub threads: u64,
    /// Open file descriptors by class.
    pub fds: Fds,
    /// How often the program was started in this run.
    pub starts: u32,
}

/// Open file descriptors by class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Fds {
    /// Sockets.
    #[serde(skip_serializing_if = "is_zero")]
    pub socket: u64,
    /// Files and directories.
    #[serde(skip_serializing_if = "is_zero")]
    pub file: u64,
    /// Pipes.
    #[serde(skip_serializing_if = "is_zero")]
    pub pipe: u64,
    /// Everything else: epoll, eventfd, timerfd, …
    #[serde(skip_serializing_if = "is_zero")]
    pub other: u64,
}

/// Pressure on the machine. A field is none where the kernel does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineRow {
    /// Share of the last 10 s in which some task waited for a processor, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi_cpu_some_pct: Option<f64>,
    /// Share of the last 10 s in which some task waited for memory, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi_memory_some_pct: Option<f64>,
    /// Share of the last 10 s in which some task waited for a disk, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi_io_some_pct: Option<f64>,
    /// Processor time taken by other guests of the host since boot, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_ms: Option<u64>,
    /// The load average of one minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_1m: Option<f64>,
    /// How long the machine has been suspended since the run began to sample, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended_ms: Option<u64>,
    /// How far the wall clock has been set since then, in milliseconds; negative where it was set back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_set_ms: Option<i64>,
}

/// What happened to a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FaultEvent {
    /// It is on the schedule.
    Planned,
    /// It was switched on.
    Started,
    /// It had a real effect; `hits` counts them.
    Hit,
    /// It was switched off.
    Ended,
    /// A probe before the fault, to prove that things worked.
    CanaryBefore,
    /// A probe after the fault, to prove that things work again.
    CanaryAfter,
}

/// One row of `faults.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FaultRow {
    /// When it happened.
    pub t_ms: u64,
    /// The fault's id in the manifest.
    pub id: String,
    /// The name in the catalogue of faults.
    pub name: String,
    /// What happened.
    pub event: FaultEvent,
    /// Real effects so far.
    pub hits: u64,
    /// For a canary: whether it was healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// More for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Faults under which what was sent does not prove what arrived: of the network, of the process, and those that change bytes.
const UNSURE: [&str; 7] =
    ["net-", "freeze", "no-pong", "truncated-line", "slow-drip", "event-edited", "subject-restart"];

/// Whether what was sent under a fault of this name may not have arrived as it was.
pub fn is_unsure(name: &str) -> bool {
    UNSURE.iter().any(|unsure| name.starts_with(unsure))
}

/// One row of `anomalies.jsonl`: an outcome that is neither observed nor coalesced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnomalyRow {
    /// When it was decided.
    pub t_ms: u64,
    /// What became of the version or observation.
    pub outcome: Outcome,
    /// The resource, such as `packages.longhaul.dev`.
    pub resource: String,
    /// The object's namespace; empty for cluster-wide objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The object's uid.
    pub uid: String,
    /// The version's resourceVersion.
    pub revision: String,
    /// The kind of change that made the version.
    pub change: Change,
    /// When it was committed, if it was.
    pub committed_ms: Option<u64>,
    /// When it, or what superseded it, was observed, if it was.
    pub observed_ms: Option<u64>,
    /// What the control plane knows of its delivery: never sent, or sent and when.
    pub delivery: Option<String>,
    /// Stream lines round it, capped.
    #[serde(default)]
    pub wire: Vec<String>,
    /// More for people.
    pub detail: Option<String>,
    /// The history of its object; none in records from before it was told, and where there are too many of the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// `end.json`: how the run ended. Absent if the harness itself was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// When it ended.
    pub ended_ms: u64,
    /// Why it ended.
    pub reason: EndReason,
    /// What of the record was lost, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
}

/// What a full disk took from a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lost {
    /// Rows of all files.
    pub rows: u64,
    /// Up to here nothing was lost.
    pub from_ms: u64,
    /// From here on everything was written again; none where it was not.
    pub to_ms: Option<u64>,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum EndReason {
    /// All phases ran.
    Completed,
    /// Somebody stopped the harness.
    Interrupted {
        /// The signal's name, such as `SIGINT`.
        signal: String,
    },
    /// The subject was never ready.
    SubjectNotReady {
        /// What was waited for.
        detail: String,
    },
    /// The subject ended before the run did.
    SubjectExited {
        /// The exit status or signal, for people.
        status: String,
        /// Its last words.
        detail: String,
    },
    /// No observation came although commits were made.
    WitnessSilent {
        /// What was waited for.
        detail: String,
    },
    /// The harness failed.
    HarnessError {
        /// The error with its causes.
        detail: String,
    },
}

/// One row of `commits.jsonl.zst`, written only on request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitEvent {
    /// When it was committed.
    pub t_ms: u64,
    /// What was committed.
    #[serde(flatten)]
    pub commit: Commit,
}

/// Samples that must lie beyond a percentile before it is printed.
pub const SAMPLES_BEYOND: u64 = 100;

impl Quantiles {
    /// The points of a histogram whose values are microseconds.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |parts_per_thousand: u64| quantile_us(histogram, parts_per_thousand);
        Self {
            count: histogram.len(),
            p50_us: at(500),
            p90_us: at(900),
            p99_us: at(990),
            p999_us: at(999),
            max_us: if histogram.is_empty() { 0 } else { histogram.max() },
        }
    }

    /// The points of a histogram, or none if it is empty.
    pub fn of_any(histogram: &Histogram<u64>) -> Option<Self> {
        (!histogram.is_empty()).then(|| Self::of(histogram))
    }
}

/// The samples needed before the quantile of so many parts per thousand may be printed.
pub fn samples_needed(parts_per_thousand: u64) -> u64 {
    (SAMPLES_BEYOND * 1000).div_ceil(1000 - parts_per_thousand.min(999))
}

/// A quantile in microseconds, or none if fewer than [`SAMPLES_BEYOND`] samples lie beyond it.
pub fn quantile_us(histogram: &Histogram<u64>, parts_per_thousand: u64) -> Option<u64> {
    (histogram.len() >= samples_needed(parts_per_thousand))
        .then(|| histogram.value_at_quantile(parts_per_thousand as f64 / 1000.0))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Fds {
    /// All of them.
    pub fn total(self) -> u64 {
        self.socket + self.file + self.pipe + self.other
    }
}

impl AdmissionRow {
    /// Reviews without a valid answer.
    pub fn errors(&self) -> u64 {
        self.http_error + self.timeout + self.connect + self.tls + self.invalid_response
    }
}

/// Applies one operation to every count.
macro_rules! each_count {
    ($left:expr, $right:expr, $op:expr, $($field:ident),+) => { EventCounts { $($field: $op($left.$field, $right.$field)),+ } };
}

impl EventCounts {
    fn zip(self, other: Self, op: impl Fn(u64, u64) -> u64) -> Self {
        each_count!(
            self,
            other,
            op,
            commits,
            observations,
            observed,
            coalesced,
            late,
            missed,
            unseen,
            ghost,
            late_ghost,
            duplicate,
            regressed,
            phantom,
            resurrected,
            identity_swap,
            unobservable
        )
    }
}

impl Add for EventCounts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }
}

impl AddAssign for EventCounts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// The counts since an earlier reading.
impl Sub for EventCounts {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        self.zip(earlier, u64::saturating_sub)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A percentile is printed only with at least 100 samples beyond it.
    #[test]
    fn percentiles_need_samples_beyond_them() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        histogram.record_n(500, 9_999).unwrap();
        assert_eq!((Quantiles::of(&histogram).p90_us, Quantiles::of(&histogram).p99_us), (Some(500), None));
        histogram.record(900).unwrap();
        let points = Quantiles::of(&histogram);
        assert_eq!((points.p99_us, points.p999_us, points.max_us), (Some(500), None, 900));
        assert_eq!((samples_needed(500), samples_needed(990), samples_needed(999)), (200, 10_000, 100_000));
    }

    #[test]
    fn counts_add_and_subtract_every_field() {
        let schema = schemars::schema_for!(EventCounts);
        let fields = schema.get("properties").unwrap().as_object().unwrap().keys();
        let counts = fields.enumerate().map(|(i, key)| (key.clone(), serde_json::Value::from(i + 1)));
        let all: EventCounts = serde_json::from_value(counts.collect()).unwrap();
        assert_eq!((all + all) - all, all);
        assert_eq!(serde_json::to_value(all + all).unwrap()["unobservable"], 2 * all.unobservable);
        assert_ne!(all.unobservable, 0);
    }

    /// What is left out of a row is read as what it was: nothing. A row of an older build has all of it and is read as well.
    #[test]
    fn what_is_nothing_is_left_out_and_read_back() {
        let row = Interval {
            start_ms: 0,
            end_ms: 5000,
            phase: Phase::WarmUp,
            last: false,
            calls: None,
            events: EventCounts { commits: 3, ..EventCounts::default() },
            live_objects: 0,
            pending: 0,
            deadline_ms: 5000,
            lag: None,
            admission: Some(AdmissionRow::default()),
            churn: None,
            witness: WitnessRow::default(),
            api: ApiRow { subject_idle_ms: Some(0), ..ApiRow::default() },
            registry: None,
            webhooks: Vec::new(),
            faults_active: Vec::new(),
            refused: Vec::new(),
        };
        let text = serde_json::to_string(&row).unwrap();
        let lean = r#"{"startMs":0,"endMs":5000,"phase":"warm-up","events":{"commits":3},"deadlineMs":5000,"admission":{},"witness":{},"api":{"subjectIdleMs":0}}"#;
        assert_eq!(text, lean);
        assert_eq!(serde_json::from_str::<Interval>(&text).unwrap(), row);
        let older = r#"{"startMs":0,"endMs":5000,"phase":"warm-up","last":false,"events":{"commits":3,"missed":0},"liveObjects":0,
            "pending":0,"deadlineMs":5000,"lag":null,"admission":{"planned":0,"response":null,"examples":[]},"churn":null,
            "witness":{"lines":0},"api":{"requests":0,"subjectIdleMs":0,"subjectFollows":null},"faultsActive":[]}"#;
        assert_eq!(serde_json::from_str::<Interval>(older).unwrap(), row);
    }
}
