//! The judge of the subject's writes: whether the subject stops writing when no other client writes.
//!
//! Owns the budgets `writes.*`. The judge reads the field `quiet` of `objects.json`, which a run without churn, or an
//! older record, does not have.

use super::rule::{Name, Rule as _, Section, section};
use super::{Findings, Verdict};
use crate::budgets::Writes;
use crate::record::{Quiet, Record};
use crate::words::millis;

mod steady;

/// The shortest time without other writes that can be judged, in milliseconds. In a shorter time, a subject that writes
/// each second would not write in each third of the time.
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
    /// The scenario leaves no quiet time. In this case a default limit leads to a note, and a limit that the scenario
    /// sets is undecided.
    Short(String),
    /// The harness has a gap in its measurements of the quiet time.
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
