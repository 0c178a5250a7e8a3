//! Charts that compare the runs of several subjects on one time axis. Each chart has a curve for each subject, and the
//! faults of all runs as bands.

use super::super::chart::{Chart, Curve, Mark, position, reach};
use super::super::scale::Scale;
use super::pair::{self, Series, of_count};
use super::{Axis, axis, clock, gap_ms, plain_axis};
use crate::ledger::Outcome;
use crate::record::{ApiRow, EndReason, Interval, Record};
use crate::words::three_digits;

/// The CSS class of each subject's curve, in the order of subjects; there are as many classes as a comparison may have
/// subjects.
pub(in crate::render::html) const CLASSES: [&str; 16] =
    ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16"];

/// Series of a client's watches, which come before the series of its resources.
const FIRST: [Series; 5] = [
    Series { id: "lost", title: "Lost so far: missed, ghosts", unit: Some(1.0), words: of_count, read: lost },
    Series { id: "observations", title: "Events seen a second", unit: Some(1.0), words: a_second, read: observations },
    Series {
        id: "pending",
        title: "Versions not seen yet",
        unit: Some(1.0),
        words: of_count,
        read: |record, _| record.intervals.iter().map(|row| (row.end_ms, row.pending as f64)).collect(),
    },
    Series {
        id: "watches",
        title: "Open watches",
        unit: Some(1.0),
        words: of_count,
        read: |record, _| {
            if !record.requests.told {
                return Vec::new();
            }
            record.intervals.iter().map(|row| (row.end_ms, row.api.subject_open_watches as f64)).collect()
        },
    },
    Series {
        id: "asked",
        title: "Requests a second",
        unit: Some(1.0),
        words: a_second,
        read: |record, _| {
            if !record.requests.told {
                return Vec::new();
            }
            rate(record, |row| row.subject_requests)
        },
    },
];

/// One chart for each series that any run has. A subject without a run has no curve, and the other subjects keep their
/// colours.
pub(in crate::render::html) fn charts(runs: &[(&str, Option<&Record>)]) -> (Axis, Vec<Chart>) {
    let longest = runs.iter().filter_map(|(_, run)| *run).max_by_key(|run| run.length_ms());
    let Some(longest) = longest else { return (plain_axis(1), Vec::new()) };
    let length_ms = longest.length_ms().max(1);
    let ends = ends(runs, length_ms);
    let drawn = FIRST.iter().chain(&pair::SERIES).filter_map(|series| chart(series, runs, length_ms));
    let charts = drawn.map(|chart| Chart { marks: ends.clone(), ..chart }).collect();
    (axis(longest, length_ms), charts)
}

fn chart(series: &Series, runs: &[(&str, Option<&Record>)], length_ms: u64) -> Option<Chart> {
    let lines: Vec<Vec<(u64, f64)>> =
        runs.iter().map(|(_, run)| run.map(|run| (series.read)(run, length_ms)).unwrap_or_default()).collect();
    let (least, most) = reach(lines.iter().flatten().map(|(_, value)| *value))?;
    let scale = series.unit.map_or_else(|| Scale::log(least, most), |unit| Scale::linear(most, unit));
    let words = &series.words;
    let curves = lines.iter().zip(runs).zip(CLASSES).filter_map(|((points, (name, run)), class)| {
        let gap = gap_ms((*run)?, length_ms);
        (!points.is_empty()).then(|| Curve::over_time(*name, class, points, (length_ms, gap), scale, words))
    });
    let names = (series.id, series.title, if series.unit.is_some() { "" } else { "logarithmic" });
    let summary = format!("between {} and {}", words(least), words(most));
    Some(Chart::new(names, (scale, words), curves.collect(), summary))
}

fn ends(runs: &[(&str, Option<&Record>)], length_ms: u64) -> Vec<Mark> {
    let mark = |(name, run): &(&str, Option<&Record>)| {
        let end = run.as_ref()?.end.as_ref()?;
        let EndReason::SubjectExited { status, .. } = &end.reason else { return None };
        let at_ms = end.ended_ms.min(length_ms);
        Some(Mark {
            at: position(at_ms as f64 / length_ms as f64 * 100.0),
            class: "lost",
            label: format!("{name} ended at {} with {status}", clock(at_ms)),
        })
    };
    runs.iter().filter_map(mark).collect()
}

/// The cumulative number of lost versions, over the time of their commit.
fn lost(record: &Record, length_ms: u64) -> Vec<(u64, f64)> {
    let is_lost = |outcome: Outcome| matches!(outcome, Outcome::Missed | Outcome::Ghost | Outcome::IdentitySwap);
    let rows = record.anomalies.iter().filter(|row| is_lost(row.outcome));
    let mut times: Vec<u64> = rows.map(|row| row.committed_ms.unwrap_or(row.t_ms).min(length_ms)).collect();
    times.sort_unstable();
    let at = |t_ms: u64| (t_ms, times.partition_point(|lost_ms| *lost_ms <= t_ms) as f64);
    record.intervals.iter().map(|row| at(row.end_ms)).collect()
}

fn observations(record: &Record, _: u64) -> Vec<(u64, f64)> {
    per_second(record, |row| row.events.observations)
}

fn rate(record: &Record, read: fn(&ApiRow) -> u64) -> Vec<(u64, f64)> {
    per_second(record, |row| read(&row.api))
}

fn per_second(record: &Record, read: impl Fn(&Interval) -> u64) -> Vec<(u64, f64)> {
    let point = |row: &Interval| {
        let ms = row.end_ms.saturating_sub(row.start_ms).max(1);
        (u64::midpoint(row.start_ms, row.end_ms), read(row) as f64 * 1000.0 / ms as f64)
    };
    record.intervals.iter().map(point).collect()
}

fn a_second(value: f64) -> String {
    format!("{}/s", three_digits(value))
}
