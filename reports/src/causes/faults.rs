//! When faults were active, and which of them change what arrives.

use std::collections::BTreeSet;

use crate::record::{FaultEvent, FaultRow, Record, is_unsure};

/// When each fault was active.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    spans: Vec<Active>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Active {
    id: String,
    name: String,
    from_ms: u64,
    to_ms: u64,
}

impl Faults {
    /// Those that had a real effect in a run, from their beginning on.
    pub fn of(record: &Record) -> Self {
        Self::of_rows(&record.faults)
    }

    /// The same from their rows, in order.
    pub fn of_rows(rows: &[FaultRow]) -> Self {
        let hit: BTreeSet<&str> = rows.iter().filter(|row| row.hits > 0).map(|row| row.id.as_str()).collect();
        let mut spans: Vec<Active> = Vec::new();
        for row in rows {
            match row.event {
                FaultEvent::Started if hit.contains(row.id.as_str()) => {
                    let (id, name) = (row.id.clone(), row.name.clone());
                    spans.push(Active { id, name, from_ms: row.t_ms, to_ms: u64::MAX });
                }
                FaultEvent::Ended => {
                    let open = spans.iter_mut().rev().find(|span| span.id == row.id && span.to_ms == u64::MAX);
                    if let Some(span) = open {
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

    /// The first of them under which what was sent may not have arrived as it was.
    pub(super) fn unsure_between(&self, from_ms: u64, to_ms: u64) -> Option<&str> {
        self.overlapping(from_ms, to_ms).find(|name| is_unsure(name))
    }

    fn overlapping(&self, from_ms: u64, to_ms: u64) -> impl Iterator<Item = &str> {
        let overlaps = move |span: &&Active| span.from_ms <= to_ms && span.to_ms >= from_ms;
        self.spans.iter().filter(overlaps).map(|span| span.name.as_str())
    }
}
