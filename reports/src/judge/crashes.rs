//! The judge of crashes: how often a process of the subject ended by itself and was started again.
//!
//! Owns the budgets `crashes.*`. The end of a subject that is not started again is judged by `subject.exited` in
//! `validity.rs`.

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
    // Without a restart, an end of the subject finishes the run and is judged there.
    if record.manifest.subject.restart.is_some() {
        record.manifest.budgets.crashes.clone().unwrap_or_default().judge_each(record, &(), findings);
    }
}
