//! What happened: faults, anomalies, commits, and the end.

use facts::{Change, Commit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Evidence, Outcome};

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
    /// What happened.
    pub event: FaultEvent,
    /// Real effects so far.
    pub hits: u64,
    /// For a canary: whether it was healthy.
    pub ok: Option<bool>,
    /// More for people.
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
    /// What the harness could not see of a real control plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Hole>,
}

/// A stretch of time of which an audit of the harness knows no more than its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hole {
    /// Of which audit.
    pub of: Audited,
    /// Up to here nothing was lost.
    pub from_ms: u64,
    /// From here on everything was seen again.
    pub to_ms: u64,
    /// Why.
    pub detail: String,
}

/// What an audit of the harness tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Audited {
    /// Which versions were written.
    Commits,
    /// What the subject asked, by the audit log of a real API server.
    Requests,
}

/// Holes that are told: what they leave open, more of them leave open as well.
pub const HOLES_MAX: usize = 10;
/// Bytes that are told of why there is one.
pub const HOLE_DETAIL_MAX: usize = 200;

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
        /// For how long, in milliseconds; none where it could not be started, or ended before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited_ms: Option<u64>,
    },
    /// The subject counted as ready, and asked for nothing that was churned.
    NeverAsked {
        /// What it asked for instead, what was churned, and what to do.
        detail: String,
    },
    /// The subject ended before the run did.
    SubjectExited {
        /// The exit status or signal, for people.
        status: String,
        /// Its last words.
        detail: String,
    },
    /// What sent load was taken away by what it ran on.
    LoadLost {
        /// Who, and how that was seen.
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
