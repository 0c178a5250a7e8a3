//! The rows of the files of a record. This file defines the row of an interval, with the counts of the ledger, the
//! witness, the API server and the registry. `load.rs` defines the rows of admission load, API calls, alerts and churn,
//! `usage.rs` those of samples, and `happened.rs` those of faults, anomalies and the end.
//!
//! The modules of rows own the fields of rows and their units. Rows hold facts and judge nothing. Rows of intervals and
//! samples leave out fields that are zero, false, empty or none. A long run has tens of thousands of such rows, and the
//! left-out fields would double their size.

mod happened;
mod load;
mod usage;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcome::{EventCounts, is_zero};

pub use happened::{
    AnomalyRow, Audited, CommitEvent, End, EndReason, FaultEvent, FaultRow, HOLE_DETAIL_MAX, HOLES_MAX, Hole, Lost,
    is_unsure,
};
pub use load::{
    AdmissionRow, AlertsRow, CallsRow, ChurnRow, Quantiles, Refused, SAMPLES_BEYOND, StoredRow, WebhookRow,
    quantile_us, samples_needed,
};
pub use usage::{Fds, MachineRow, Process, Sample};

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Load runs, but latency is not judged yet.
    WarmUp,
    /// The phase in which the budgets are judged.
    Steady,
    /// The harness makes no new changes; the subject may catch up.
    Drain,
}

/// One row of `intervals.jsonl`: the counts since the previous row.
#[serde_with::apply(
    Option => #[serde(default, skip_serializing_if = "Option::is_none")],
    Vec => #[serde(default, skip_serializing_if = "Vec::is_empty")],
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interval {
    /// Start of the interval.
    pub start_ms: u64,
    /// End of the interval.
    pub end_ms: u64,
    /// The phase in which the interval ended.
    pub phase: Phase,
    /// Whether this is the last row of a run that ended by itself. The ledger was finished before that row.
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
    /// The time from commit to observation, for observations of this interval and commits made while no fault was
    /// active.
    pub lag: Option<Quantiles>,
    /// Admission load; none if the scenario has none.
    pub admission: Option<AdmissionRow>,
    /// Calls to the subject's API that scales Deployments; none if the scenario has none.
    pub calls: Option<CallsRow>,
    /// Alerts of the subject; none if the scenario has no receiver.
    pub alerts: Option<AlertsRow>,
    /// Object churn; none if the scenario has none.
    pub churn: Option<ChurnRow>,
    /// The lines that the witness received.
    pub witness: WitnessRow,
    /// The requests to the control plane.
    pub api: ApiRow,
    /// The requests to the registry; none if the registry does not count them.
    pub registry: Option<RegistryRow>,
    /// The ids of the faults that were active at some time of the interval.
    pub faults_active: Vec<String>,
    /// The subject's requests that the control plane refused because the subject's roles do not allow them.
    pub refused: Vec<Refused>,
    /// The calls of each registered webhook by the control plane in the whole run. Only the last row has this field, if
    /// the control plane reports the calls.
    pub webhooks: Vec<WebhookRow>,
}

/// The lines that the witness received in one interval.
#[serde_with::apply(u64 => #[serde(skip_serializing_if = "is_zero")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WitnessRow {
    /// Lines, or other units in which the witness counts.
    pub lines: u64,
    /// Lines that could not be read as an observation.
    pub malformed: u64,
    /// The first line of the run that could not be read: its number, the reason, and its beginning. Only the row of the
    /// line's interval has this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// The requests to the control plane in one interval.
#[serde_with::apply(
    u64 => #[serde(skip_serializing_if = "is_zero")],
    Option => #[serde(skip_serializing_if = "Option::is_none")],
)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiRow {
    /// Requests of all clients, including the harness.
    pub requests: u64,
    /// Requests of the subject.
    pub subject_requests: u64,
    /// Watches that the subject opened.
    pub subject_watches: u64,
    /// Lists that the subject asked for; each page counts.
    pub subject_lists: u64,
    /// The subject's lists and watches of judged resources; none if the harness missed some requests.
    pub subject_follows: Option<u64>,
    /// Watches of the subject that are open at the end of the interval.
    pub subject_open_watches: u64,
    /// Connections on which the subject sent its first request. A connection that the subject opens and never uses is
    /// not recognised as the subject's.
    pub subject_connections: u64,
    /// Connections of the subject that are open at the end of the interval.
    pub subject_open_connections: u64,
    /// Milliseconds since the subject's last request, while none of its requests is open; none while one is open.
    pub subject_idle_ms: Option<u64>,
    /// Answers 410, as HTTP status or inside a stream, sent to the subject.
    pub gone_answers: u64,
    /// Answers 410 for a resourceVersion that had been answered to the subject with 410 before.
    pub repeated_gone: u64,
}

/// The requests to the registry in one interval, without the harness's own probes.
#[serde_with::apply(u64 => #[serde(skip_serializing_if = "is_zero")])]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryRow {
    /// Requests to the registry, including those for tokens.
    pub requests: u64,
    /// Requests that were answered with a status of 400 to 599.
    pub refused: u64,
    /// Requests that got no answer.
    pub unanswered: u64,
    /// Distinct tags that were requested since the start of the run.
    pub tags_total: u64,
    /// The most requests for one tag since the start of the run.
    pub most_of_one_tag: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields that a row leaves out are read back as zero or empty. A row of an older build has all fields and can be
    /// read as well.
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
            alerts: None,
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
