//! Judges whether the harness stalled, for how long, and which anomalies the stall explains.
//!
//! Owns the condition `validity.pace`. A stall of the harness can only make a subject look worse than it is. Therefore
//! a pass stays a pass, and an anomaly outside of a stall is the subject's fault.

use std::collections::BTreeSet;

use super::condition;
use crate::judge::doubt::{self, Doubts, Unmet};
use crate::judge::rule::{Findings, Name};
use crate::ledger::Outcome;
use crate::record::{AnomalyRow, Record};
use crate::words::millis;

pub(super) const PACE: Name = condition("pace");
/// Largest lateness of churn that is no stall, in milliseconds. Later churn takes too much of the time of at least 5 s
/// that the subject has for an observation.
const CHURN_LATE_MS: u64 = 2500;
/// The longest interval that is no stall, in milliseconds. The harness writes a row of an interval every 5 s. In an
/// interval longer than this, the harness stood still for as long as the shortest deadline of an observation.
/// Observations of such an interval were read late, or are missing because of the stall.
const INTERVAL_MS_MAX: u64 = 10_000;
const REMEDY: &str = "run it again on a quieter machine, or with fewer `--jobs`";

/// A time range in which the harness did not keep up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stall {
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let slow = intervals(record);
    if let Some(longest) = slow.iter().max_by_key(|stall| stall.to_ms - stall.from_ms) {
        let (from, to) = (millis(longest.from_ms), millis(longest.to_ms));
        let lost_ms: u64 = slow.iter().map(|stall| (stall.to_ms - stall.from_ms).saturating_sub(5000)).sum();
        let unmet = Unmet {
            name: PACE,
            observed: millis(longest.to_ms - longest.from_ms),
            limit: format!("at most {}", millis(INTERVAL_MS_MAX)),
            text: format!(
                "the harness did not keep up for {} in all: its interval from {from} to {to} should have taken 5 s; {REMEDY}.",
                millis(lost_ms)
            ),
            because: format!("the harness did not keep up from {from} to {to}"),
        };
        findings.unmet(unmet, Doubts::Broken, |name, _| doubt::is_observed(name) && !is_whole(record, name, &slow));
    }
    let late = late_changes(record);
    if let Some(longest) = late.iter().max_by_key(|stall| stall.to_ms - stall.from_ms) {
        let late_ms = worst_ms(record);
        let unmet = Unmet {
            name: PACE,
            observed: millis(late_ms),
            limit: format!("at most {}", millis(CHURN_LATE_MS)),
            text: format!(
                "object changes were {} late, so the subject had less time for them than planned; {REMEDY}.",
                millis(late_ms)
            ),
            because: format!(
                "object changes came up to {} late from {} to {}",
                millis(late_ms),
                millis(longest.from_ms),
                millis(longest.to_ms)
            ),
        };
        // Changes that come together make a peak, and no growth.
        let peaks = |name: Name| name.section == "memory" && matches!(name.key, "ceiling" | "retained");
        findings.unmet(unmet, Doubts::Broken, |name, _| {
            peaks(name) || (name.section == "events" && !is_whole(record, name, &late))
        });
    }
}

/// Intervals that took too long. The run's last interval does not count: in it the ledger decides the open versions,
/// and no load is measured.
fn intervals(record: &Record) -> Vec<Stall> {
    let rows = record.intervals.iter().filter(|row| !row.last);
    let slow = rows.filter(|row| row.end_ms.saturating_sub(row.start_ms) > INTERVAL_MS_MAX);
    slow.map(|row| Stall { from_ms: row.start_ms, to_ms: row.end_ms }).collect()
}

fn late_changes(record: &Record) -> Vec<Stall> {
    let rows = record.intervals.iter().filter_map(|row| {
        let late_ms = row.churn.as_ref()?.lateness.as_ref()?.max_us / 1000;
        (late_ms > CHURN_LATE_MS).then(|| Stall { from_ms: row.start_ms.saturating_sub(late_ms), to_ms: row.end_ms })
    });
    rows.collect()
}

fn worst_ms(record: &Record) -> u64 {
    let lateness = record.intervals.iter().filter_map(|row| row.churn.as_ref()?.lateness.as_ref());
    lateness.map(|lateness| lateness.max_us / 1000).max().unwrap_or(0)
}

/// Whether the budget is broken by events outside of the stalls alone.
fn is_whole(record: &Record, name: Name, stalls: &[Stall]) -> bool {
    let Some(events) = record.manifest.budgets.events.as_ref().filter(|_| name.section == "events") else {
        return false;
    };
    let (of, limit): (&[Outcome], Option<u64>) = match name.key {
        "missed" => (&[Outcome::Missed], events.missed),
        "ghost" => (&[Outcome::Ghost], events.ghost),
        "identitySwap" => (&[Outcome::IdentitySwap], events.identity_swap),
        "late" => (&[Outcome::Late, Outcome::LateGhost], events.late),
        // Lateness does not cause these.
        "regressed" | "phantom" | "resurrected" => return true,
        _ => return false,
    };
    let apart = |row: &&AnomalyRow| {
        let from_ms = row.committed_ms.or(row.observed_ms).unwrap_or(row.t_ms);
        let to_ms = from_ms.saturating_add(deadline_ms(record, from_ms));
        of.contains(&row.outcome) && stalls.iter().all(|stall| to_ms < stall.from_ms || from_ms > stall.to_ms)
    };
    record.anomalies.iter().filter(apart).count() as u64 > limit.unwrap_or(0)
}

/// The deadline of observations, in milliseconds, for a version committed at `t_ms`.
pub(super) fn deadline_ms(record: &Record, t_ms: u64) -> u64 {
    let row = record.intervals.iter().find(|row| row.end_ms > t_ms);
    row.or(record.intervals.last()).map_or(0, |row| row.deadline_ms)
}

/// Whether the budget is broken by events before the sample that showed a step of a clock; later events may be caused
/// by the step.
pub(super) fn is_whole_before(record: &Record, name: Name, t_ms: u64) -> bool {
    // From the sample before it.
    let from_ms =
        record.samples.iter().map(|row| row.t_ms).take_while(|before_ms| *before_ms < t_ms).last().unwrap_or(0);
    is_whole(record, name, &[Stall { from_ms, to_ms: u64::MAX }])
}

/// The number of objects with a lost version, as far as the record has rows for them.
pub(super) fn objects_lost(record: &Record) -> u64 {
    let lost = record.anomalies.iter().filter(|row| matches!(row.outcome, Outcome::Missed | Outcome::Ghost));
    lost.map(|row| row.uid.as_str()).collect::<BTreeSet<_>>().len() as u64
}
