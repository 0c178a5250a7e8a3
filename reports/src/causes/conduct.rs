//! What the subject did in the run as a whole, as far as it explains what became of single versions.
//!
//! Owns the proofs of it: each is lines on the wire, and where they are missing nothing is said.

use crate::judge::Queue;
use crate::record::{LEASES, Record, RequestRow, Sees, Sight, Verb};
use crate::words::{counted, millis, three_digits};

/// Reads of a Lease that somebody else holds, from which on the subject may be said to wait for it: client-go asks every two seconds.
const LEASE_READS_MIN: usize = 3;

/// What is known of the run as a whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Conduct {
    /// Why it never became the leader, if it did not.
    pub never_led: Option<String>,
    /// It asked for nothing.
    pub is_silent: bool,
    /// What it was at work on when the run ended.
    pub queue: Option<Queue>,
    /// Nothing in this control plane makes workloads ready.
    pub nothing_readies: bool,
    /// The witness tells each event as the subject has read it; others tell only of what the subject wrote.
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
    /// What became of it, for a sentence.
    pub(super) fn told(&self) -> String {
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

/// Why the subject never led: its Lease was refused to it, or somebody else had it, and it did nothing that a leader does.
fn never_led(record: &Record) -> Option<String> {
    let rows = &record.requests.rows;
    let leases: Vec<&RequestRow> = rows.iter().filter(|row| row.resource == LEASES).collect();
    let took = leases.iter().any(|row| row.writes() && row.succeeded());
    let leads = rows.iter().any(|row| row.writes() && row.succeeded() && !row.is_aside());
    if leases.is_empty() || took || leads || record.totals().observations > 0 {
        return None;
    }
    // That there is none yet is how it begins.
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

/// A mock without a part for kubelet and the controllers stores workloads and does no more.
fn nothing_readies(record: &Record) -> bool {
    let plays = record.manifest.scenario.pointer("/controlPlane/workloads");
    record.manifest.control_plane == "mock" && plays.is_none_or(serde_json::Value::is_null)
}
