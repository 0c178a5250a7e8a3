//! The judge of what the subject writes: whether it comes to rest when nobody else writes.
//!
//! Owns `writes.*`. The rules are files with rows (`judge/rule.rs`), and lines of the list below. It reads the quiet of the record; a run
//! without churn, or a record from before the quiet was looked at, has none.

use super::rule::{Name, Section, section};
use super::{Findings, Verdict};
use crate::budgets::Writes;
use crate::record::{Quiet, Record};
use crate::words::millis;

mod steady;

/// In a shorter quiet even a subject that writes each second would not be seen in each third of it.
const QUIET_MIN_MS: u64 = 2000;

section! {
    Writes as "writes", judge "writes", facts<'a> &'a Quiet;
    steady "steady": units::Rate = steady::Steady,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let budget = record.manifest.budgets.writes.clone().unwrap_or_default();
    let quiet = record.objects.as_ref().and_then(|objects| objects.quiet.as_ref());
    match (quiet, untold(quiet)) {
        (Some(quiet), None) => budget.judge_each(record, &quiet, findings),
        (_, Some(why)) if budget.steady.is_some() => {
            let limit = budget.steady.map_or_else(String::new, |limit| limit.to_string());
            findings.push(Name::of::<steady::Steady>(), Verdict::Inconclusive, "not seen", limit, format!("{why}."));
        }
        // Who asked for nothing is told, and not held up.
        (Some(_), Some(why)) => findings.note(format!("writes.steady was not judged: {why}.")),
        (None, _) => {}
    }
}

/// Why nothing can be said.
fn untold(quiet: Option<&Quiet>) -> Option<String> {
    let Some(quiet) = quiet else {
        return Some("the run did not come to the end of its drain, or nothing is churned in it".to_owned());
    };
    if let Some(why) = quiet.unread.as_ref().filter(|_| quiet.lasting == 0) {
        return Some(format!("what the subject wrote could not be followed: {why}"));
    }
    let length_ms = quiet.to_ms.saturating_sub(quiet.from_ms);
    (length_ms < QUIET_MIN_MS).then(|| {
        format!(
            "the drain leaves the subject {} alone once it may have caught up, and it takes {}: make `phases.drain` longer",
            millis(length_ms),
            millis(QUIET_MIN_MS)
        )
    })
}

#[cfg(test)]
mod tests;
