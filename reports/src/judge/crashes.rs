//! The judge of crashes: how often a process of the subject ended by itself and was started again.
//!
//! Owns `crashes.*`. A subject that nobody starts again is `subject.exited`, in `validity.rs`. The rules are files with rows
//! (`judge/rule.rs`), and lines of the list below.

use super::Findings;
use super::rule::{Section, section};
use crate::budgets::Crashes;
use crate::record::Record;

mod count;
mod loops;

section! {
    Crashes as "crashes", judge "subject", facts<'a> ();
    max "max": u64 = count::Most,
    loops "loops": u64 = loops::Loops,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    // What is not started again ends the run, and is judged by that.
    if record.manifest.subject.restart.is_some() {
        record.manifest.budgets.crashes.clone().unwrap_or_default().judge_each(record, &(), findings);
    }
}
