//! The times of faults, and which faults change or lose data before it arrives.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{FaultEvent, FaultRow, Record, is_unsure};

/// The time of each fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    spans: Vec<Active>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Active {
    name: String,
    from_ms: u64,
    to_ms: u64,
}

impl Faults {
    /// The faults that had a real effect in a run, each from its start on.
    pub fn of(record: &Record) -> Self {
        Self::of_rows(&record.faults)
    }

    /// Like [`Self::of`], from the rows of faults in order.
    pub fn of_rows(rows: &[FaultRow]) -> Self {
        let hit: BTreeSet<&str> = rows.iter().filter(|row| row.hits > 0).map(|row| row.id.as_str()).collect();
        let mut spans: Vec<Active> = Vec::new();
        // The open entries by fault: an end closes the last entry of its own fault.
        let mut open: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for row in rows {
            match row.event {
                FaultEvent::Started if hit.contains(row.id.as_str()) => {
                    open.entry(&row.id).or_default().push(spans.len());
                    spans.push(Active { name: row.name.clone(), from_ms: row.t_ms, to_ms: u64::MAX });
                }
                FaultEvent::Ended => {
                    let last = open.get_mut(row.id.as_str()).and_then(Vec::pop);
                    if let Some(span) = last.and_then(|at| spans.get_mut(at)) {
                        span.to_ms = row.t_ms;
                    }
                }
                _ => {}
            }
        }
        Self { spans }
    }

    /// The first fault that was active at some time in between.
    pub(super) fn between(&self, from_ms: u64, to_ms: u64) -> Option<&str> {
        self.overlapping(from_ms, to_ms).next()
    }

    /// The first such fault under which sent data may not have arrived unchanged.
    pub(super) fn unsure_between(&self, from_ms: u64, to_ms: u64) -> Option<&str> {
        self.overlapping(from_ms, to_ms).find(|name| is_unsure(name))
    }

    fn overlapping(&self, from_ms: u64, to_ms: u64) -> impl Iterator<Item = &str> {
        let overlaps = move |span: &&Active| span.from_ms <= to_ms && span.to_ms >= from_ms;
        self.spans.iter().filter(overlaps).map(|span| span.name.as_str())
    }
}
