//! Reviews by what became of them.

use super::super::chart::Chart;
use super::resources::lines_chart;
use super::thinned;
use crate::record::{AdmissionRow, Record};
use crate::words::three_digits;

pub(super) fn reviews(record: &Record, length_ms: u64) -> Option<Chart> {
    let rate = |read: &dyn Fn(&AdmissionRow) -> u64| -> Vec<(u64, f64)> {
        let each = record.intervals.iter().filter_map(|row| {
            let seconds = row.end_ms.saturating_sub(row.start_ms).max(1) as f64 / 1000.0;
            let rate = read(row.admission.as_ref()?) as f64 / seconds;
            Some([(row.start_ms, rate), (row.end_ms.saturating_sub(1).max(row.start_ms), rate)])
        });
        thinned(each.flatten(), length_ms)
    };
    let failed = |row: &AdmissionRow| row.http_error + row.timeout + row.connect + row.tls + row.invalid_response;
    let lines = [
        ("allowed", "c1", rate(&|row| row.allowed)),
        ("denied", "c3", rate(&|row| row.denied)),
        ("no valid answer", "c2", rate(&failed)),
        ("not sent", "c4 thin", rate(&|row| row.overflow)),
    ];
    let words = |value: f64| format!("{}/s", three_digits(value));
    let names = ("reviews".into(), "Reviews".into(), "by outcome, a second; each step is the mean of an interval");
    lines_chart(record, length_ms, names, (1.0, &words), None, &lines)
}
