//! The chart of admission reviews by their outcome.

use super::super::chart::{Chart, Curve, reach};
use super::super::scale::Scale;
use super::{cuts, rates};
use crate::record::{AdmissionRow, Record};
use crate::words::three_digits;

/// Name and CSS class of a curve, and how the count of its outcome is read from an interval.
type Line = (&'static str, &'static str, fn(&AdmissionRow) -> u64);

const LINES: [Line; 4] = [
    ("allowed", "c1", |row| row.allowed),
    ("denied", "c3", |row| row.denied),
    ("no valid answer", "c2", |row| row.http_error + row.timeout + row.connect + row.tls + row.invalid_response),
    ("not sent", "c4 thin", |row| row.overflow),
];

pub(super) fn reviews(record: &Record, length_ms: u64) -> Option<Chart> {
    let cuts = cuts(record, length_ms);
    let drawn = LINES.map(|(name, class, read)| {
        (name, class, cuts.steps(rates(record, move |row| Some(read(row.admission.as_ref()?)))))
    });
    let (_, most) = reach(drawn.iter().flat_map(|(.., steps)| steps).map(|step| step.value))?;
    let scale = Scale::linear(most, 1.0);
    let words = |value: f64| format!("{}/s", three_digits(value));
    let curve = |(name, class, steps): &(&str, &'static str, Vec<_>)| {
        Curve::steps(*name, class, steps, length_ms, scale, &words)
    };
    let names = ("reviews", "Reviews", "by outcome, a second; each step is the mean of an interval");
    let summary = format!("at most {} of one outcome", words(most));
    Some(Chart::new(names, (scale, &words), drawn.iter().map(curve).collect(), summary))
}
