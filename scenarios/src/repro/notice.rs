//! How soon a client reacted to a fault, computed from the run record. Does no I/O.

use std::collections::BTreeSet;

use facts::Change;
use reports::record::{Events, FaultEvent, Record};

/// Times since the first hit of any fault, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Notice {
    /// Time until the client's next list or watch of a judged resource.
    pub(super) asked_ms: Option<u64>,
    /// Time until the first observation of a version that was committed after the hit.
    pub(super) observed_ms: Option<u64>,
}

impl Notice {
    /// The times in this record; `None` if no fault had hits.
    pub(super) fn of(record: &Record, events: &Events) -> Option<Self> {
        let hits = record.faults.iter().filter(|row| row.event == FaultEvent::Hit);
        let hit_ms = hits.map(|row| row.t_ms).min()?;
        let judged: BTreeSet<&str> = record.manifest.judged.iter().map(String::as_str).collect();
        let asked = record.requests.rows.iter().filter(|row| row.follows() && judged.contains(row.resource.as_str()));
        let asked_ms = asked.map(|row| row.t_ms).filter(|t_ms| *t_ms > hit_ms).min();
        let later: BTreeSet<(&str, &str)> = events
            .commits
            .iter()
            .filter(|event| event.t_ms > hit_ms)
            .map(|event| (event.commit.uid.as_str(), event.commit.revision.as_str()))
            .collect();
        let gone: BTreeSet<&str> = events
            .commits
            .iter()
            .filter(|event| event.t_ms > hit_ms && event.commit.change == Change::Deleted)
            .map(|event| event.commit.uid.as_str())
            .collect();
        let proves = |seen: &&facts::Observation| {
            // A client that relists learns of a deletion without its revision.
            later.contains(&(seen.uid.as_str(), seen.revision.as_str()))
                || (seen.change == Change::Deleted && gone.contains(seen.uid.as_str()))
        };
        let observed_ms = events.observations.iter().filter(proves).map(|seen| seen.t_ms).min();
        let since = |t_ms: u64| t_ms.saturating_sub(hit_ms);
        Some(Self { asked_ms: asked_ms.map(since), observed_ms: observed_ms.map(since) })
    }
}
