//! The judge of alerts: every decision needs exactly one alert, and a dry run needs none.
//!
//! Owns the budgets `alerts.*`. The answers to reviews show the decisions, and a receiver of the harness gets the
//! alerts.

use super::rule::{Name, Section, section};
use super::{Findings, Verdict};
use crate::budgets::Alerts;
use crate::record::{AlertsRow, Record};
use crate::words::{count, counted};

mod lost;
mod on_dry_run;
#[cfg(test)]
mod tests;
mod twice;

section! {
    Alerts as "alerts", judge "alerts", facts<'a> Vec<&'a AlertsRow>;
    lost "lost": u64 = lost::Lost,
    twice "twice": u64 = twice::Twice,
    on_dry_run "onDryRun": u64 = on_dry_run::OnDryRun,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(budget) = &record.manifest.budgets.alerts else { return };
    let rows = record.intervals.iter().filter_map(|row| row.alerts.as_ref()).collect();
    budget.judge_each(record, &rows, findings);
}

/// A count of alerts with its limit.
struct AtMost<'a> {
    observed: u64,
    limit: u64,
    /// The number of answers or alerts among which the count is taken. If this number is zero, the budget is undecided.
    of: u64,
    among: &'a str,
    /// The name of what is counted, in the singular and in the plural.
    what: (&'a str, &'a str),
    /// The beginning of example texts that belong to this count.
    sort: &'a str,
}

impl AtMost<'_> {
    fn judge(self, rows: &[&AlertsRow], name: Name, findings: &mut Findings) {
        let Self { observed, limit, of, among, what, sort } = self;
        let said = format!("{} {}", count(observed), if observed == 1 { what.0 } else { what.1 });
        let (verdict, text) = match () {
            () if observed > limit => {
                let mut examples = rows.iter().flat_map(|row| &row.examples);
                let example = examples.find(|text| text.starts_with(sort));
                let example = example.map_or_else(String::new, |text| format!("; for example: {text}"));
                (Verdict::Fail, format!("{said}, of {}{example}.", counted(of, among)))
            }
            () if of == 0 => (Verdict::Inconclusive, format!("there was no {among}, so there was nothing to judge.")),
            () => (Verdict::Pass, format!("{said}, of {}.", counted(of, among))),
        };
        findings.push(name, verdict, count(observed), count(limit), text).used(observed as f64, limit as f64);
    }
}

fn sum(rows: &[&AlertsRow], field: fn(&AlertsRow) -> u64) -> u64 {
    rows.iter().map(|row| field(row)).sum()
}
