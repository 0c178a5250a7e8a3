//! The judge of admission reviews: latency in the steady phase, wrong answers and errors in the whole run, and images
//! in stored objects.
//!
//! Owns the budgets `admission.*`.

use units::Span;

use super::Findings;
use super::rule::{Rule as _, Section, section};
use crate::budgets::Admission;
use crate::record::{AdmissionRow, Record};

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
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let rows: Vec<&AdmissionRow> = record.intervals.iter().filter_map(|row| row.admission.as_ref()).collect();
    if let Some(budget) = &record.manifest.budgets.admission {
        budget.judge_each(record, &rows, findings);
    } else if !record.manifest.webhooks.is_empty() && !rows.is_empty() {
        // If webhooks are registered, their errors and wrong answers are judged by default.
        Admission::default().judge_each(record, &rows, findings);
        findings.unasked(|findings| errors::Errors::judge(record, &rows, &0, findings));
    }
}
