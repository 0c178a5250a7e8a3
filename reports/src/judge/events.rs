//! The judge of watch events: counts of the ledger, lag, the time until a late version was observed, and the subject's
//! requests.
//!
//! Owns the budgets `events.*`. The ledger, not this judge, decides the outcome of a version.

use units::Span;

use super::rule::{Name, Rule as _, Section, section};
use super::{Findings, Verdict};
use crate::budgets::{AtLeast, Delivery, Events};
use crate::record::{EventCounts, Record, Sees, Sight};
use crate::words::{count, counted};

mod blind;
mod converged;
mod counts;
mod delivery;
mod heal;
mod hot_loop;
mod lag;
mod reported;
mod restored;
#[cfg(test)]
mod tests;
mod unseen;
mod watch_growth;

pub use restored::DRIFT;

section! {
    Events as "events", judge "events", facts<'a> EventCounts,
        always [blind::Blind "blind", hot_loop::HotLoop "hotLoop", watch_growth::WatchGrowth "watchGrowth"];
    missed "missed": u64 = counts::Missed,
    ghost "ghost": u64 = counts::Ghost,
    regressed "regressed": u64 = counts::Regressed,
    phantom "phantom": u64 = counts::Phantom,
    resurrected "resurrected": u64 = counts::Resurrected,
    identity_swap "identitySwap": u64 = counts::IdentitySwap,
    unseen "unseen": u64 = unseen::Unseen,
    late "late": u64 = counts::Late,
    duplicate "duplicate": u64 = counts::Duplicate,
    delivery "delivery": Delivery = delivery::EveryVersion,
    lag_p99 "lagP99": Span = lag::P99,
    heal "heal": Span = heal::Heal,
    reported "reported": AtLeast = reported::Reported,
    deadline "deadline": Span = counts::Deadline,
    converged "converged": bool = converged::Converged,
    restored "restored": bool = restored::Restored,
}

const UNTOLD: &str = "this control plane does not report the subject's requests; the mock does, and so do `local` and `node`, through \
                      their audit logs.";

/// Whether the control plane did not count the subject's requests.
fn untold(record: &Record) -> bool {
    record.manifest.control_plane != "mock" && record.intervals.iter().all(|row| row.api.subject_requests == 0)
}

/// The limits that a witness cannot decide, by key, each with the facts that the witness does not report.
pub fn unseen_by(sees: Sees, limits: &Events) -> Vec<(&'static str, Vec<Sight>)> {
    limits.unseen(sees).into_iter().map(|(name, lacks)| (name.key, lacks)).collect()
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(budget) = &record.manifest.budgets.events else { return };
    let counts = record.totals();
    if counts.commits == 0 {
        findings.push(
            Name::of::<counts::Missed>(),
            Verdict::Inconclusive,
            "no commits",
            budget.missed.unwrap_or(0).to_string(),
            "no version was committed, so there was nothing to judge.",
        );
        return;
    }
    budget.judge_each(record, &counts, findings);
    let tells = |sight| record.manifest.witness_sees.is_some_and(|sees| sees.can(sight));
    if budget.unseen.is_none() && tells(Sight::Created) && !tells(Sight::Updated) {
        unseen::Unseen::judge(record, &counts, &0, findings);
    }
    findings.tell_unjudged(record);
    if counts.unobservable > 0 {
        let versions = counted(counts.unobservable, "version");
        findings.note(match record.manifest.witness_sees {
            Some(sees) if sees != Sees::ALL => format!(
                "{versions} could not be judged: their objects were deleted before the witness `{}` could prove an observation{}, or \
                 existed only during one outage of its stream.",
                record.manifest.witness,
                if counts.queued > 0 {
                    format!(" ({} of them after more than the deadline in the subject's queue)", count(counts.queued))
                } else {
                    String::new()
                }
            ),
            _ => format!(
                "{versions} could not be observed by any client: their objects were created and deleted during one outage of the \
                 subject's stream."
            ),
        });
    }
}

fn micros_of(span: Span) -> u64 {
    u64::try_from(span.0.as_micros()).unwrap_or(u64::MAX)
}
