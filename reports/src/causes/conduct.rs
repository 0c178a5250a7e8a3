//! The subject's behaviour in the whole run, as far as it explains why single versions were missed or late.
//!
//! Owns the proofs of the subject's behaviour, which consist of recorded requests. Without recorded requests the module
//! claims nothing.

use crate::judge::Queue;
use crate::record::{LEASES, Record, RequestRow, Sees, Sight, Verb};
use crate::words::{counted, millis, three_digits};

/// Minimum number of reads of a Lease with another holder that prove that the subject waits for the Lease. client-go
/// reads it every two seconds.
const LEASE_READS_MIN: usize = 3;

/// Facts about the subject in the whole run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Conduct {
    /// Why the subject never became the leader; none if it led, or if no Lease shows the leader.
    pub never_led: Option<String>,
    /// Whether the subject sent no request in the whole run.
    pub is_silent: bool,
    /// The objects that the subject still had to process when the run ended.
    pub queue: Option<Queue>,
    /// Whether the control plane has no controller that sets workloads ready.
    pub nothing_readies: bool,
    /// Whether the witness reports each event that the subject has read. Other witnesses report only the objects that
    /// the subject writes.
    pub tells_each: bool,
}

impl Conduct {
    pub fn of(record: &Record) -> Self {
        let told = record.requests.told;
        Self {
            never_led: told.then(|| never_led(record)).flatten(),
            is_silent: told && record.requests.rows.is_empty() && record.requests.summaries.is_empty(),
            queue: Queue::of(record),
            nothing_readies: nothing_readies(record),
            tells_each: record.manifest.witness_sees.unwrap_or(Sees::ALL).can(Sight::Each),
        }
    }
}

impl Queue {
    /// The outcome of an anomaly, as a clause of a sentence.
    pub(super) fn clause(&self) -> String {
        let waited = counted(self.waiting, "object");
        match self.requests.filter(|_| self.is_constant) {
            Some(requests) => format!(
                "from {} on the subject sent a constant {} requests a second, and {waited} still waited after the drain: it limits \
                 itself, and {}",
                millis(self.from_ms),
                three_digits(requests.as_per_second()),
                self.needs()
            ),
            None => {
                format!(
                    "the subject worked in order until the end of the drain, and {waited} still waited: it {}",
                    self.needs()
                )
            }
        }
    }
}

/// Why the subject never led: its Lease was refused or held by another process, and the subject did nothing that only a
/// leader does.
fn never_led(record: &Record) -> Option<String> {
    let rows = &record.requests.rows;
    let leases: Vec<&RequestRow> = rows.iter().filter(|row| row.resource == LEASES).collect();
    let took = leases.iter().any(|row| row.writes() && row.succeeded());
    let leads = rows.iter().any(|row| row.writes() && row.succeeded() && !row.is_aside());
    if leases.is_empty() || took || leads || record.totals().observations > 0 {
        return None;
    }
    // A Lease that does not exist yet is normal at the start.
    let is_refused = |row: &&&RequestRow| row.status >= 400 && !(row.verb == Verb::Get && row.status == 404);
    let refused: Vec<&&RequestRow> = leases.iter().filter(is_refused).collect();
    let writes: Vec<&&RequestRow> = refused.iter().copied().filter(|row| row.writes()).collect();
    let refused = if writes.is_empty() { refused } else { writes };
    if let Some(first) = refused.first() {
        return Some(format!(
            "the subject never became the leader: its Lease {} was refused {} with {}{}",
            place(first),
            counted(refused.len() as u64, "time"),
            first.status,
            first.message.as_ref().map(|message| format!(" ({message})")).unwrap_or_default()
        ));
    }
    let reads: Vec<&&RequestRow> = leases.iter().filter(|row| row.verb == Verb::Get && row.succeeded()).collect();
    let first = reads.first().filter(|_| reads.len() >= LEASE_READS_MIN)?;
    Some(format!(
        "the subject never became the leader: it read the Lease {} {} and never took it, so another process holds it",
        place(first),
        counted(reads.len() as u64, "time")
    ))
}

fn place(row: &RequestRow) -> String {
    match (row.namespace.as_str(), row.name.as_str()) {
        (namespace, "") => format!("in the namespace `{namespace}`"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// Whether no program sets workloads ready: a mock without controllers and kubelet only stores them.
fn nothing_readies(record: &Record) -> bool {
    let plays = record.manifest.scenario.pointer("/controlPlane/workloads");
    record.manifest.control_plane == "mock" && plays.is_none_or(serde_json::Value::is_null)
}
