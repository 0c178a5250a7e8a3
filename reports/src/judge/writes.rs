//! The judge of the subject's writes: whether it comes to rest when nobody else writes.
//!
//! Owns `writes.*`. Each rule is a file with a row (`judge/rule.rs`) and a line in the list below. The facts are the
//! record's quiet time; a run without churn, or an older record, has none.

use super::rule::{Name, Rule as _, Section, section};
use super::{Findings, Verdict};
use crate::budgets::Writes;
use crate::record::{Quiet, Record};
use crate::words::millis;

mod steady;

/// The shortest quiet time that can be judged: in a shorter one a subject that writes each second would not be seen in
/// each third.
const QUIET_MIN_MS: u64 = 2000;

section! {
    Writes as "writes", judge "writes", facts<'a> &'a Quiet;
    steady "steady": units::Rate = steady::Steady,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let budget = record.manifest.budgets.writes.clone().unwrap_or_default();
    let quiet = record.objects.as_ref().and_then(|objects| objects.quiet.as_ref());
    let unseen = |limit: Option<units::Rate>, why: String, findings: &mut Findings| {
        let limit = limit.or(steady::Steady::DEFAULT).map_or_else(String::new, |limit| limit.to_string());
        findings.push(Name::of::<steady::Steady>(), Verdict::Inconclusive, "not seen", limit, format!("{why}."));
    };
    match quiet {
        Some(quiet) => match untold(quiet) {
            None => budget.judge_each(record, &quiet, findings),
            Some(Untold::Short(why)) if budget.steady.is_none() => {
                findings.note(format!("writes.steady was not judged: {why}."));
            }
            Some(Untold::Short(why) | Untold::Unseen(why)) => unseen(budget.steady, why, findings),
        },
        None if budget.steady.is_some() => {
            let why = "the run did not reach the end of its drain, or its scenario has no churn";
            unseen(budget.steady, why.to_owned(), findings);
        }
        None => {}
    }
}

/// Why the writes cannot be judged.
enum Untold {
    /// The scenario leaves no time for it: a note for a default limit, undecided for a limit that the scenario sets.
    Short(String),
    /// The harness has a gap in that time.
    Unseen(String),
}

fn untold(quiet: &Quiet) -> Option<Untold> {
    let length_ms = quiet.to_ms.saturating_sub(quiet.from_ms);
    if length_ms < QUIET_MIN_MS && (quiet.unread.is_none() || quiet.from_ms > 0) {
        return Some(Untold::Short(format!(
            "after the subject may have caught up, the drain leaves {} without writes, and {} are needed: make `phases.drain` longer",
            millis(length_ms),
            millis(QUIET_MIN_MS)
        )));
    }
    let why = quiet.unread.as_ref().filter(|_| quiet.lasting == 0)?;
    Some(Untold::Unseen(format!("the subject's writes could not be followed: {why}")))
}

#[cfg(test)]
mod tests;
