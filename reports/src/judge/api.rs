//! The judge of the subject's API that scales Deployments: correctness of answers, unauthorised calls, and response
//! time.
//!
//! Owns the budgets `api.*`. Answers are compared with the commits of the control plane, not with the subject's reports
//! about itself.

use units::Span;

use super::rule::{Name, Section, section};
use super::{Findings, Verdict};
use crate::budgets::Api;
use crate::record::{CallsRow, Record};
use crate::words::{count, counted};

mod latency;
mod let_in;
mod right;
mod staleness;
#[cfg(test)]
mod tests;

section! {
    Api as "api", judge "api", facts<'a> Vec<&'a CallsRow>;
    wrong "wrong": u64 = right::Wrong,
    lost "lost": u64 = right::Lost,
    staleness "staleness": Span = staleness::Staleness,
    let_in "letIn": u64 = let_in::LetIn,
    errors "errors": u64 = right::Errors,
    p50 "p50": Span = latency::P50,
    p99 "p99": Span = latency::P99,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(budget) = &record.manifest.budgets.api else { return };
    let rows = record.intervals.iter().filter_map(|row| row.calls.as_ref()).collect();
    budget.judge_each(record, &rows, findings);
}

/// A count of wrong answers or calls among `of` of them, with its limit. The finding names the first example text that
/// begins with one of `sorts`.
struct AtMost<'a> {
    rows: &'a [&'a CallsRow],
    observed: u64,
    limit: u64,
    /// The number of answers or calls among which the count is taken. If this number is zero, the budget is undecided.
    of: u64,
    /// Answers that could not be compared with the commits, and that might be wrong too.
    unjudged: u64,
    /// The name of what is counted, in the singular and in the plural: `answer was wrong`, `answers were wrong`.
    what: (&'static str, &'static str),
    among: &'static str,
    sorts: &'static [&'static str],
}

impl AtMost<'_> {
    fn judge(self, name: Name, findings: &mut Findings) {
        let Self { rows, observed, limit, of, unjudged, what, among, sorts } = self;
        let said = format!("{} {}", count(observed), if observed == 1 { what.0 } else { what.1 });
        let (verdict, text) = match () {
            () if observed > limit => {
                let example = rows
                    .iter()
                    .flat_map(|row| &row.examples)
                    .find(|text| sorts.iter().any(|sort| text.starts_with(sort)));
                let example = example.map_or_else(String::new, |text| format!("; for example: {text}"));
                (Verdict::Fail, format!("{said}, of {}{example}.", counted(of, among)))
            }
            () if of == 0 => (Verdict::Inconclusive, format!("there was no {among}, so there was nothing to judge.")),
            () if unjudged > 0 => {
                let text = format!(
                    "{said}, of {}; {} could not be compared with the commits.",
                    counted(of, among),
                    counted(unjudged, "answer")
                );
                (Verdict::Inconclusive, text)
            }
            () => (Verdict::Pass, format!("{said}, of {}.", counted(of, among))),
        };
        findings.push(name, verdict, count(observed), count(limit), text).used(observed as f64, limit as f64);
    }
}

fn sum(rows: &[&CallsRow], field: fn(&CallsRow) -> u64) -> u64 {
    rows.iter().map(|row| field(row)).sum()
}
