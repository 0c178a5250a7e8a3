//! The faults on the time axis: when each was active, and when it had an effect.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::super::chart::{Mark, position};
use super::{BAND_PARTS, HIT_MARKS, clock};
use crate::record::{FaultEvent, Record};
use crate::words::count;

/// A fault that was active, with the times from the record.
pub(super) struct Played<'a> {
    pub name: &'a str,
    pub from_ms: u64,
    pub to_ms: u64,
    pub hits: u64,
}

/// The start, the end and the hits of one fault.
#[derive(Default)]
struct Moments {
    started_ms: Option<u64>,
    hit_ms: Option<u64>,
    ended_ms: Option<u64>,
    hits: u64,
}

/// All faults that were active, in the order in which the run planned them.
pub(super) fn played(record: &Record) -> Vec<Played<'_>> {
    let mut told: BTreeMap<&str, Moments> = BTreeMap::new();
    for row in &record.faults {
        let fault = told.entry(&row.id).or_default();
        fault.hits = fault.hits.max(row.hits);
        let first = match row.event {
            FaultEvent::Started => &mut fault.started_ms,
            FaultEvent::Hit => &mut fault.hit_ms,
            FaultEvent::Ended => &mut fault.ended_ms,
            FaultEvent::Planned | FaultEvent::CanaryBefore | FaultEvent::CanaryAfter => continue,
        };
        first.get_or_insert(row.t_ms);
    }
    let active = record.manifest.faults.iter().filter_map(|fault| {
        let told = told.get(fault.id.as_str())?;
        let from_ms = told.started_ms.or(told.hit_ms)?;
        let planned_end = fault.for_ms.map(|for_ms| from_ms.saturating_add(for_ms));
        let to_ms = told.ended_ms.or(planned_end).or(told.hit_ms).unwrap_or(from_ms);
        Some(Played { name: &fault.name, from_ms, to_ms: to_ms.max(from_ms), hits: told.hits })
    });
    active.collect()
}

/// All faults as one SVG path, which every chart uses, so that the report stays small even with thousands of faults.
pub(super) fn bands(played: &[Played<'_>], length_ms: u64) -> String {
    let part = |t_ms: u64| t_ms.min(length_ms).saturating_mul(BAND_PARTS) / length_ms.max(1);
    let mut covered: BTreeSet<u64> = BTreeSet::new();
    for fault in played {
        covered.extend(part(fault.from_ms)..=part(fault.to_ms));
    }
    let mut path = String::new();
    let mut covered = covered.into_iter().peekable();
    while let Some(first) = covered.next() {
        let mut last = first;
        while covered.next_if_eq(&(last + 1)).is_some() {
            last += 1;
        }
        let percent = |part: u64| position(part as f64 / BAND_PARTS as f64 * 100.0);
        // Writing to a String cannot fail.
        let _ = write!(path, "M{} 0h{}v100h-{1}z", percent(first), percent(last + 1 - first));
    }
    path
}

/// Marks on the axis at the times of hits of faults. Hits at about the same time share a mark.
pub(super) fn hits(record: &Record, length_ms: u64) -> Vec<Mark> {
    let width_ms = (length_ms / HIT_MARKS).max(1);
    let mut before: BTreeMap<&str, u64> = BTreeMap::new();
    // The mark is at the first of them, so that no mark precedes its fault.
    let mut places: BTreeMap<u64, (u64, u64, BTreeSet<&str>)> = BTreeMap::new();
    for row in record.faults.iter().filter(|row| row.event == FaultEvent::Hit) {
        // Of a fault with many hits only some have a row; each row has the count of all.
        let counted = before.entry(&row.id).or_default();
        let at_ms = row.t_ms.min(length_ms);
        let place = places.entry(at_ms / width_ms).or_insert_with(|| (0, at_ms, BTreeSet::new()));
        place.0 += row.hits.saturating_sub(*counted);
        place.1 = place.1.min(at_ms);
        place.2.insert(&row.name);
        *counted = row.hits.max(*counted);
    }
    let mark = |(hits, at_ms, names): (u64, u64, BTreeSet<&str>)| {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        Mark {
            at: position(at_ms as f64 / length_ms.max(1) as f64 * 100.0),
            class: "hit",
            label: format!("{} from {} on: {names}", hits_of(hits), clock(at_ms)),
        }
    };
    places.into_values().map(mark).collect()
}

fn hits_of(hits: u64) -> String {
    if hits == 1 { "hit once".to_owned() } else { format!("hit {} times", count(hits)) }
}
