//! The rows of faults, anomalies, commits, and the end of a run.

use facts::{Change, Commit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Evidence, Outcome};

/// The kind of an event of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FaultEvent {
    /// A fault is on the schedule.
    Planned,
    /// A fault was switched on.
    Started,
    /// A fault had a real effect; `hits` counts such effects.
    Hit,
    /// A fault was switched off.
    Ended,
    /// A canary before the fault, which proves that the path from write to observation worked.
    CanaryBefore,
    /// A canary after the fault, which proves that the path from write to observation works again.
    CanaryAfter,
}

/// One row of `faults.jsonl`.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FaultRow {
    /// When the event happened.
    pub t_ms: u64,
    /// The fault's id in the manifest.
    pub id: String,
    /// The name in the catalogue of faults.
    pub name: String,
    /// The kind of event.
    pub event: FaultEvent,
    /// Number of real effects of the fault so far.
    pub hits: u64,
    /// For a canary event: whether the subject reported the canary.
    pub ok: Option<bool>,
    /// Details for people.
    pub detail: Option<String>,
}

/// Faults that may change or lose data after it was sent: faults of the network and of the process, and faults that
/// change bytes.
const UNSURE: [&str; 7] =
    ["net-", "freeze", "no-pong", "truncated-line", "slow-drip", "event-edited", "subject-restart"];

/// Whether data sent during a fault of this name may be lost or changed before it arrives.
pub fn is_unsure(name: &str) -> bool {
    UNSURE.iter().any(|unsure| name.starts_with(unsure))
}

/// One row of `anomalies.jsonl`: an outcome that is neither observed nor coalesced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnomalyRow {
    /// When the outcome was decided.
    pub t_ms: u64,
    /// The outcome of the version or observation.
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
    /// When the version was committed; none if it never was.
    pub committed_ms: Option<u64>,
    /// When the version, or a later one that superseded it, was observed; none if neither was.
    pub observed_ms: Option<u64>,
    /// The control plane's record of sending the version: never sent, or sent and when.
    pub delivery: Option<String>,
    /// Lines of watch streams near the version, at most 20.
    #[serde(default)]
    pub wire: Vec<String>,
    /// Details for people.
    pub detail: Option<String>,
    /// The history of the version's object. None in older records, and none if the rows of this outcome have reached
    /// their maximum size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// `end.json`: how the run ended. Absent if the harness itself was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// When the run ended.
    pub ended_ms: u64,
    /// Why the run ended.
    pub reason: EndReason,
    /// The rows that were lost to a full disk; none if all were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// Gaps in the records that the harness reads from a real control plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Hole>,
}

/// A time range for which a record that the harness reads from a real control plane is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hole {
    /// The record of the control plane that has the gap.
    pub of: Audited,
    /// No entry was lost before this time.
    pub from_ms: u64,
    /// No entry was lost after this time.
    pub to_ms: u64,
    /// The reason for the gap, for people.
    pub detail: String,
}

/// A record that the harness reads from a real control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Audited {
    /// The record of the versions that were written.
    Commits,
    /// The record of the subject's requests: the audit log of a real API server.
    Requests,
}

/// Maximum number of gaps that are recorded. Gaps beyond this number would not change the verdict.
pub const HOLES_MAX: usize = 10;
/// Maximum length of a gap's reason in the record, in bytes.
pub const HOLE_DETAIL_MAX: usize = 200;

/// The rows that a record lost to a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lost {
    /// The number of lost rows in all files.
    pub rows: u64,
    /// No row was lost before this time.
    pub from_ms: u64,
    /// No row was lost after this time; none if the disk stayed full.
    pub to_ms: Option<u64>,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum EndReason {
    /// All phases ran.
    Completed,
    /// The harness was stopped by a signal.
    Interrupted {
        /// The signal's name, such as `SIGINT`.
        signal: String,
    },
    /// The subject was never ready.
    SubjectNotReady {
        /// The condition that the harness waited for.
        detail: String,
        /// How long the harness waited, in milliseconds; none if the subject could not be started, or ended before it
        /// was ready.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited_ms: Option<u64>,
    },
    /// The subject counted as ready, but requested no resource that the harness changes.
    NeverAsked {
        /// The resources that the subject requested instead, the churned resources, and a remedy.
        detail: String,
    },
    /// The subject ended before the run ended.
    SubjectExited {
        /// The exit status or signal, for people.
        status: String,
        /// The last lines that the subject printed.
        detail: String,
    },
    /// The Pod of a load generator ended or fell silent.
    LoadLost {
        /// The load generator that was lost, and how the loss was noticed.
        detail: String,
    },
    /// No observation came although commits were made.
    WitnessSilent {
        /// The condition that the harness waited for.
        detail: String,
    },
    /// The harness failed.
    HarnessError {
        /// The error with its causes.
        detail: String,
    },
}

/// One row of `commits.jsonl.zst`, which is written only on request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitEvent {
    /// When the version was committed.
    pub t_ms: u64,
    #[serde(flatten)]
    pub commit: Commit,
}
