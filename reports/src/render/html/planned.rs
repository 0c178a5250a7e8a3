//! The table of planned and actual numbers of a run, such as reviews and changes. A run that did less than planned
//! proves less than its scenario promises.

use crate::record::{Phase, Record};
use crate::words::{count, counted, millis, percent};

/// One line of the table: a planned and an actual number.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub what: &'static str,
    pub plan: String,
    pub happened: String,
}

pub(super) fn lines(record: &Record) -> Vec<Line> {
    let phases = record.manifest.phases;
    let lasted = |phase| -> u64 {
        let rows = record.intervals.iter().filter(|row| row.phase == phase);
        rows.map(|row| row.end_ms.saturating_sub(row.start_ms)).sum()
    };
    let mut lines: Vec<Line> = [
        ("warm-up", phases.warm_up_ms, Phase::WarmUp),
        ("steady phase", phases.steady_ms, Phase::Steady),
        ("drain", phases.drain_ms, Phase::Drain),
    ]
    .into_iter()
    .map(|(what, planned_ms, phase)| Line { what, plan: millis(planned_ms), happened: millis(lasted(phase)) })
    .collect();
    let reviews = record.intervals.iter().filter_map(|row| row.admission.as_ref());
    let (due, sent) = reviews.fold((0, 0), |(due, sent), row| (due + row.planned, sent + row.sent));
    if due > 0 {
        lines.push(Line { what: "reviews", plan: count(due), happened: share(sent, due, "sent") });
    }
    let churn = record.intervals.iter().filter_map(|row| row.churn.as_ref());
    let (due, done) =
        churn.fold((0, 0), |(due, done), row| (due + row.planned, done + row.created + row.updated + row.deleted));
    if due > 0 {
        lines.push(Line { what: "object changes", plan: count(due), happened: share(done, due, "done") });
    }
    if !record.manifest.faults.is_empty() {
        let told = record.fault_rows();
        let hit = told.values().filter(|rows| rows.iter().any(|row| row.hits > 0)).count() as u64;
        let hits: u64 = told.values().map(|rows| rows.iter().map(|row| row.hits).max().unwrap_or(0)).sum();
        lines.push(Line {
            what: "faults",
            plan: count(record.manifest.faults.len() as u64),
            happened: format!("{} of them had an effect, {} in all", count(hit), counted(hits, "hit")),
        });
    }
    lines
}

fn share(done: u64, due: u64, verb: &str) -> String {
    if done == due {
        return format!("all {verb}");
    }
    format!("{} {verb}, {}", count(done), percent(done as f64 / due as f64))
}
