//! The judge of admission reviews: latency in the steady phase, wrong answers and errors in the whole run, and images
//! in stored objects.
//!
//! Owns the budgets `admission.*`.

use units::Span;

use super::Findings;
use super::rule::{Rule as _, Section, section};
use crate::budgets::{Admission, Consistent};
use crate::record::{AdmissionRow, Record};

mod consistent;
mod errors;
mod latency;
mod unlocked;
mod unpinned;
mod wrong;

section! {
    Admission as "admission", judge "admission", facts<'a> Vec<&'a AdmissionRow>;
    p50 "p50": Span = latency::P50,
    p99 "p99": Span = latency::P99,
    p999 "p999": Span = latency::P999,
    wrong_verdicts "wrongVerdicts": u64 = wrong::WrongVerdicts,
    errors "errors": u64 = errors::Errors,
    unpinned "unpinned": u64 = unpinned::Unpinned,
    unlocked "unlocked": u64 = unlocked::Unlocked,
    consistent "consistent": Consistent = consistent::AllConsistent,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let rows: Vec<&AdmissionRow> = record.intervals.iter().filter_map(|row| row.admission.as_ref()).collect();
    let budget = record.manifest.budgets.admission.as_ref();
    let is_alone = rows.is_empty() && budget.is_some_and(Admission::is_only_consistent);
    if let Some(limit) = budget.and_then(|budget| budget.consistent.as_ref()).filter(|_| is_alone) {
        consistent::AllConsistent::judge(record, &rows, limit, findings);
    } else if let Some(budget) = budget {
        budget.judge_each(record, &rows, findings);
    } else if !record.manifest.webhooks.is_empty() && !rows.is_empty() {
        // If webhooks are registered, their errors and wrong answers are judged by default.
        Admission::default().judge_each(record, &rows, findings);
        findings.unasked(|findings| errors::Errors::judge(record, &rows, &0, findings));
    }
}
