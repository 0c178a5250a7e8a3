//! The judge of admission reviews: latency in the steady phase, wrong answers and errors in the whole run, and what was stored.
//!
//! Owns `admission.*`. The rules are files with rows (`judge/rule.rs`), and lines of the list below.

use units::Span;

use super::Findings;
use super::rule::{Section, section};
use crate::record::{AdmissionRow, Record};

mod errors;
mod latency;
mod unpinned;
mod wrong;

section! {
    /// Limits on admission reviews. `wrongVerdicts` is 0 whenever this section is present.
    Admission as "admission", judge "admission", facts<'a> Vec<&'a AdmissionRow>;
    always [];
    p50: Span = latency::P50,
    p99: Span = latency::P99,
    p999: Span = latency::P999,
    wrong_verdicts: u64 = wrong::WrongVerdicts,
    errors: u64 = errors::Errors,
    unpinned: u64 = unpinned::Unpinned,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(budget) = &record.manifest.budgets.admission else { return };
    let rows = record.intervals.iter().filter_map(|row| row.admission.as_ref()).collect();
    budget.judge_each(record, &rows, findings);
}

/// Whether the subject was found too slow.
pub(super) fn slow(findings: &Findings) -> bool {
    findings.broken::<latency::P50>() || findings.broken::<latency::P99>() || findings.broken::<latency::P999>()
}
