//! The rows of events: faults, anomalies, commits, and the end.

use facts::{Change, Commit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Evidence, Outcome};

/// The kind of an event of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FaultEvent {
    /// The fault is on the schedule.
    Planned,
    /// The fault was switched on.
    Started,
    /// The fault had a real effect; `hits` counts them.
    Hit,
    /// The fault was switched off.
    Ended,
    /// A probe before the fault, which proves that the path worked.
    CanaryBefore,
    /// A probe after the fault, which proves that the path works again.
    CanaryAfter,
}

/// One row of `faults.jsonl`.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FaultRow {
    /// When it happened.
    pub t_ms: u64,
    /// The fault's id in the manifest.
    pub id: String,
    /// The name in the catalogue of faults.
    pub name: String,
    /// The kind of event.
    pub event: FaultEvent,
    /// Real effects so far.
    pub hits: u64,
    /// For a canary: whether it was healthy.
    pub ok: Option<bool>,
    /// Details for people.
    pub detail: Option<String>,
}

/// Faults that may change or lose sent data before it arrives: those of the network, of the process, and those that
/// change bytes.
const UNSURE: [&str; 7] =
    ["net-", "freeze", "no-pong", "truncated-line", "slow-drip", "event-edited", "subject-restart"];

/// Whether data sent under a fault of this name may not have arrived unchanged.
pub fn is_unsure(name: &str) -> bool {
    UNSURE.iter().any(|unsure| name.starts_with(unsure))
}

/// One row of `anomalies.jsonl`: an outcome that is neither observed nor coalesced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnomalyRow {
    /// When it was decided.
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
    /// When the version was committed, if it was.
    pub committed_ms: Option<u64>,
    /// When the version, or one that superseded it, was observed, if at all.
    pub observed_ms: Option<u64>,
    /// The control plane's knowledge of its delivery: never sent, or sent and when.
    pub delivery: Option<String>,
    /// Stream lines round it, capped.
    #[serde(default)]
    pub wire: Vec<String>,
    /// Details for people.
    pub detail: Option<String>,
    /// The history of its object; none in older records, and beyond the bound for this outcome.
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
    /// The lost part of the record, if there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// Gaps in the harness's view of a real control plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Hole>,
}

/// A time for which an audit of the harness knows only the outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hole {
    /// The audit with the gap.
    pub of: Audited,
    /// No entry was lost before this time.
    pub from_ms: u64,
    /// No entry was lost after this time.
    pub to_ms: u64,
    /// The reason.
    pub detail: String,
}

/// An audit of the harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Audited {
    /// The versions that were written.
    Commits,
    /// The subject's requests, by the audit log of a real API server.
    Requests,
}

/// Gaps that are recorded: more gaps would not change the verdict.
pub const HOLES_MAX: usize = 10;
/// Bytes of the reason that are recorded.
pub const HOLE_DETAIL_MAX: usize = 200;

/// The rows that a record lost to a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lost {
    /// The number of rows, of all files.
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
        /// The condition that was waited for.
        detail: String,
        /// The time waited, in milliseconds; none if the subject could not be started, or ended before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited_ms: Option<u64>,
    },
    /// The subject counted as ready, and requested no churned resource.
    NeverAsked {
        /// The resources that it requested instead, the churned resources, and a remedy.
        detail: String,
    },
    /// The subject ended before the run did.
    SubjectExited {
        /// The exit status or signal, for people.
        status: String,
        /// Its last lines of output.
        detail: String,
    },
    /// The machine or Pod that ran the load generator removed it.
    LoadLost {
        /// The lost generator, and how the loss was seen.
        detail: String,
    },
    /// No observation came although commits were made.
    WitnessSilent {
        /// The condition that was waited for.
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
    /// The version that was committed.
    #[serde(flatten)]
    pub commit: Commit,
}
