//! The series of two runs, each pair in one chart: A and B since the start of each.

use super::super::chart::{Chart, Curve, reach};
use super::super::scale::{Scale, whole};
use super::resources::{of_subject, processor_share};
use super::{Axis, gap_ms, plain_axis, thinned};
use crate::record::{Quantiles, Record, tag};
use crate::words::{bytes, count, micros, three_digits};

const MIB: f64 = 1_048_576.0;

/// A series: identity, title, style, and its values in one run.
pub(super) struct Series {
    pub id: &'static str,
    pub title: &'static str,
    /// The unit of a linear scale; none for a logarithmic one.
    pub unit: Option<f64>,
    pub words: fn(f64) -> String,
    pub read: fn(&Record, u64) -> Vec<(u64, f64)>,
}

pub(super) const SERIES: [Series; 9] = [
    Series {
        id: "p50",
        title: "Admission latency, median",
        unit: None,
        words: of_micros,
        read: |record, _| latency(record, tag::RESPONSE, |q| q.p50_us),
    },
    Series {
        id: "p99",
        title: "Admission latency, p99",
        unit: None,
        words: of_micros,
        read: |record, _| latency(record, tag::RESPONSE, |q| q.p99_us),
    },
    Series {
        id: "lag",
        title: "Event lag, median",
        unit: None,
        words: of_micros,
        read: |record, _| latency(record, tag::LAG, |q| q.p50_us),
    },
    Series {
        id: "lag-max",
        title: "Event lag, slowest",
        unit: None,
        words: of_micros,
        read: |record, _| latency(record, tag::LAG, |q| Some(q.max_us)),
    },
    Series {
        id: "memory",
        title: "Resident set",
        unit: Some(MIB),
        words: of_bytes,
        read: |record, length_ms| of_subject(record, length_ms, |process| process.rss_bytes),
    },
    Series { id: "heap", title: "Heap in use", unit: Some(MIB), words: of_bytes, read: heap },
    Series {
        id: "processor",
        title: "Processor",
        unit: Some(1.0),
        words: of_percent,
        read: |record, length_ms| processor_share(record, length_ms, |row| row.subject),
    },
    Series {
        id: "descriptors",
        title: "Descriptors",
        unit: Some(1.0),
        words: of_count,
        read: |record, length_ms| of_subject(record, length_ms, |process| process.fds.total()),
    },
    Series {
        id: "threads",
        title: "Threads",
        unit: Some(1.0),
        words: of_count,
        read: |record, length_ms| of_subject(record, length_ms, |process| process.threads),
    },
];

pub(in crate::render::html) fn charts(a: &Record, b: &Record) -> (Axis, Vec<Chart>) {
    let length_ms = a.length_ms().max(b.length_ms()).max(1);
    let drawn = SERIES.iter().filter_map(|series| chart(series, [a, b], length_ms));
    (plain_axis(length_ms), drawn.collect())
}

/// None if neither run has it.
fn chart(series: &Series, runs: [&Record; 2], length_ms: u64) -> Option<Chart> {
    let lines = runs.map(|run| (series.read)(run, length_ms));
    let (least, most) = reach(lines.iter().flatten().map(|(_, value)| *value))?;
    let scale = series.unit.map_or_else(|| Scale::log(least, most), |unit| Scale::linear(most, unit));
    let words = &series.words;
    let curves = lines.iter().zip(runs).zip([("A", "c1"), ("B", "c2")]).map(|((points, run), (name, class))| {
        Curve::over_time(name, class, points, (length_ms, gap_ms(run, length_ms)), scale, words)
    });
    let names = (series.id, series.title, if series.unit.is_some() { "" } else { "logarithmic" });
    let summary = format!("between {} and {}", words(least), words(most));
    Some(Chart::new(names, (scale, words), curves.collect(), summary))
}

fn latency(record: &Record, tag: &str, read: fn(&Quantiles) -> Option<u64>) -> Vec<(u64, f64)> {
    let slices = record.latency.slices(tag).iter();
    slices
        .filter_map(|slice| Some((u64::midpoint(slice.start_ms, slice.end_ms), read(&slice.quantiles)? as f64)))
        .collect()
}

fn heap(record: &Record, length_ms: u64) -> Vec<(u64, f64)> {
    thinned(record.metrics.iter().filter_map(|row| Some((row.t_ms, row.heap_bytes? as f64))), length_ms)
}

fn of_micros(value: f64) -> String {
    micros(whole(value))
}

fn of_bytes(value: f64) -> String {
    bytes(whole(value))
}

pub(super) fn of_count(value: f64) -> String {
    count(whole(value))
}

fn of_percent(value: f64) -> String {
    format!("{} %", three_digits(value))
}
