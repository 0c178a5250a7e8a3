//! The budgets on counts of the ledger: one rule for each outcome, and the deadline after which an observation is late.

use units::Span;

use crate::judge::queue;
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::ledger::Outcome;
use crate::record::{EventCounts, Record, Sight};
use crate::statistics::proportion::share_when_none;
use crate::words::{count, counted, millis, percent};

/// The default limit for violations of the API's contract, if a scenario has the section `events`.
const NEVER: Option<u64> = Some(0);
/// The default limit for properties that only some subjects promise: without a limit, such properties are not judged.
const UNJUDGED: Option<u64> = None;

/// Builds a rule for each outcome with a budget: its name, key, default, example, needed facts and count.
macro_rules! counts {
    ($($name:ident = $key:literal, $default:ident, $example:literal, needs [$($needs:ident),*], $number:expr;)*) => {$(
        #[doc = concat!("`events.", $key, "`.")]
        pub(super) struct $name;

        impl Rule for $name {
            const EXAMPLE: Option<&'static str> = Some($example);
            const WORD: Option<Word> = Some(Word::$name);
            const DEFAULT: Option<u64> = $default;
            const NEEDS: &'static [Sight] = &[$(Sight::$needs),*];

            fn judge(record: &Record, counts: &EventCounts, limit: &u64, findings: &mut Findings) {
                let number: fn(&EventCounts) -> u64 = $number;
                let name = Name::of::<Self>();
                judge_count(record, counts, findings, name, Outcome::$name, number(counts), *limit);
            }
        }
    )*};
}

counts! {
    Missed = "missed", NEVER, "0", needs [Created, Updated], |counts| counts.missed;
    Ghost = "ghost", NEVER, "0", needs [Deleted], |counts| counts.ghost;
    Regressed = "regressed", NEVER, "0", needs [Updated, Each], |counts| counts.regressed;
    Phantom = "phantom", NEVER, "0", needs [Each], |counts| counts.phantom;
    Resurrected = "resurrected", NEVER, "0", needs [Deleted, Each], |counts| counts.resurrected;
    IdentitySwap = "identitySwap", NEVER, "0", needs [Deleted], |counts| counts.identity_swap;
    Late = "late", UNJUDGED, "0", needs [Created, Updated, Deleted], |counts| counts.late + counts.late_ghost;
    Duplicate = "duplicate", UNJUDGED, "20", needs [Each], |counts| counts.duplicate;
}

pub(super) struct Deadline;

impl Rule for Deadline {
    const EXAMPLE: Option<&'static str> = Some("10s");
    const WORD: Option<Word> = None;

    /// Adds no finding: the ledger used the deadline during the run, and the budget `events.late` judges the result.
    fn judge(_: &Record, _: &EventCounts, _: &Span, _: &mut Findings) {}
}

fn judge_count(
    record: &Record,
    counts: &EventCounts,
    findings: &mut Findings,
    name: Name,
    outcome: Outcome,
    observed: u64,
    limit: u64,
) {
    let open = record.intervals.last().map_or(0, |row| row.pending);
    if outcome == Outcome::Missed && record.finished() && open > 0 {
        findings.notes.push(format!(
            "{} that the subject itself wrote just before the end {} not judged: it was at work until it was stopped.",
            counted(open, "version"),
            if open == 1 { "was" } else { "were" }
        ));
    }
    let at_end = matches!(outcome, Outcome::Missed | Outcome::Ghost | Outcome::IdentitySwap);
    if outcome == Outcome::Missed && observed <= limit && counts.queued > queue::deleted_max(counts.commits) {
        findings.push(name, Verdict::Inconclusive, count(observed), count(limit), queue::deleted(record, counts));
        return;
    }
    let verdict = match () {
        () if observed > limit => Verdict::Fail,
        // Without the end of the run, waiting versions are neither observed nor missed.
        () if at_end && !record.finished() && open > 0 => Verdict::Inconclusive,
        () => Verdict::Pass,
    };
    let text = match verdict {
        Verdict::Fail => format!(
            "{}{}, at most {} allowed{}",
            what_happened(outcome, observed, counts),
            first_of(record, outcome),
            count(limit),
            gone_cause(record, outcome)
        ),
        Verdict::Inconclusive => format!(
            "the run did not finish and {} still waited for an observation, so the number of {outcome} versions is not known.",
            counted(open, "version")
        ),
        _ if observed == 0 => {
            let (n, of) = base(outcome, counts);
            format!(
                "{} among {}; with 95 % confidence the true share is below {}.",
                nothing_happened(outcome),
                counted(n, of),
                percent(share_when_none(n))
            )
        }
        _ => format!("{} {outcome}, at most {} allowed.", count(observed), count(limit)),
    };
    findings.push(name, verdict, count(observed), count(limit), text).used(observed as f64, limit as f64);
}

/// The total to which the count of an outcome is compared, with the name of the total.
fn base(outcome: Outcome, counts: &EventCounts) -> (u64, &'static str) {
    match outcome {
        Outcome::Regressed | Outcome::Phantom | Outcome::Resurrected | Outcome::Duplicate => {
            (counts.observations, "observation")
        }
        _ => (counts.commits, "committed version"),
    }
}

fn what_happened(outcome: Outcome, observed: u64, counts: &EventCounts) -> String {
    let n = |singular| counted(observed, singular);
    let were = if observed == 1 { "was" } else { "were" };
    match outcome {
        Outcome::Missed => {
            format!(
                "{} of {} {were} missed: neither the version nor a later one was observed",
                n("version"),
                count(counts.commits)
            )
        }
        Outcome::Ghost => {
            format!("{} never observed, so the subject still has objects that are deleted", n("deletion"))
        }
        Outcome::Regressed => format!("{} went back to an older version after a newer one", n("observation")),
        Outcome::Phantom => format!("{} of a version that was never committed", n("observation")),
        Outcome::Resurrected => format!("{} named an object after its observed deletion", n("observation")),
        Outcome::IdentitySwap => {
            format!("{} replaced under the same name without the subject noticing the deletion", n("object"))
        }
        Outcome::Late => format!("{} observed only after the deadline", n("version")),
        _ => format!("{} {outcome}", count(observed)),
    }
}

fn nothing_happened(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Missed => "nothing was missed",
        Outcome::Ghost => "no deletion was missed",
        Outcome::Regressed => "none went back to an older version",
        Outcome::Phantom => "none was of a version that was never committed",
        Outcome::Resurrected => "none named an object after its observed deletion",
        Outcome::IdentitySwap => "no object was replaced unnoticed",
        Outcome::Late => "nothing was late",
        _ => "no duplicates",
    }
}

/// A text about the first anomaly with this outcome, which the user should examine first.
fn first_of(record: &Record, outcome: Outcome) -> String {
    let same = |other: Outcome| other == outcome || (outcome == Outcome::Late && other == Outcome::LateGhost);
    let Some(row) = record.anomalies.iter().find(|row| same(row.outcome)) else { return String::new() };
    let name = match (row.namespace.as_str(), row.name.as_str()) {
        ("", "") => format!("uid {}", row.uid),
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    let at = row.committed_ms.or(row.observed_ms).unwrap_or(row.t_ms);
    format!(" (first: {name} at {}{})", millis(at), during(record, at))
}

fn during(record: &Record, t_ms: u64) -> String {
    let active = record.intervals.iter().find(|row| row.end_ms > t_ms && !row.faults_active.is_empty());
    match active {
        Some(row) if row.start_ms <= t_ms => {
            let fault_name = |id: &String| {
                let fault = record.manifest.faults.iter().find(|fault| fault.id == *id);
                fault.map_or_else(|| id.clone(), |fault| fault.name.clone())
            };
            format!(", during {}", row.faults_active.iter().map(fault_name).collect::<Vec<_>>().join(" and "))
        }
        _ => String::new(),
    }
}

fn gone_cause(record: &Record, outcome: Outcome) -> String {
    let repeated: u64 = record.intervals.iter().map(|row| row.api.repeated_gone).sum();
    if outcome != Outcome::Missed || repeated == 0 {
        return ".".to_owned();
    }
    format!(
        "; the subject kept resuming from a resourceVersion that had already been refused with 410 Gone ({}).",
        counted(repeated, "time")
    )
}
