//! The judge of the subject's requests: whether it kept sending lists and watches, from which revisions, how often, and
//! over how many connections.
//!
//! Owns the budgets `requests.*`. This judge reads only the rows of the subject's requests and the control plane's
//! count of connections. The judge uses no observations, so that a subject without a witness can be judged too.

use units::{Rate, Span};

use super::rule::{Budget, Name, Section, section};
use super::{Findings, Verdict};
use crate::budgets::{AtLeast, Connections, Requests};
use crate::record::Record;
use crate::words::{count, counted, millis};

mod blind;
mod connections;
pub(super) mod grown;
mod hot_loop;
mod open;
mod rate;
mod revisions;
mod scope;
#[cfg(test)]
mod tests;

pub(crate) use blind::longest_ms as longest_blind_ms;
pub(super) use hot_loop::excluded as excludes_hot_loop;
use scope::SubjectRequests;

/// Lists the rules of the section `requests`, and builds a function that returns all limits, for a record in which
/// nothing can be judged.
macro_rules! rules {
    ($($field:ident $key:literal: $limit:ty = $rule:ty,)*) => {
        section! {
            Requests as "requests", judge "requests", facts<'a> SubjectRequests<'a>;
            $($field $key: $limit = $rule,)*
        }

        /// The limits that the scenario sets, with their texts.
        fn limits(budget: &Requests) -> Vec<(Budget, String)> {
            let mut limits = Vec::new();
            $(limits.extend(budget.$field.iter().flat_map(|limit| limit.of(Name::of::<$rule>())));)*
            limits
        }
    };
}

rules! {
    blind "blind": Span = blind::Blind,
    hot_loop "hotLoop": Rate = hot_loop::HotLoop,
    rate "rate": Rate = rate::Most,
    stale_resume "staleResume": u64 = revisions::StaleResume,
    unanchored "unanchored": u64 = revisions::Unanchored,
    initial_events "initialEvents": u64 = revisions::InitialEvents,
    watches "watches": AtLeast = open::Watches,
    open_watches "openWatches": u64 = open::OpenWatches,
    connections "connections": Connections = connections::OpenConnections,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(budget) = &record.manifest.budgets.requests else { return };
    if !record.requests.told {
        undecided(budget, findings);
        return;
    }
    budget.judge_each(record, &SubjectRequests::of(record), findings);
    if let Some(complete_ms) = record.requests.complete_until_ms() {
        let more: u64 = record.requests.summaries.iter().map(|summary| summary.requests + summary.lost).sum();
        let others = if record.requests.follows_until_ms().is_none() { " that are neither list nor watch" } else { "" };
        findings.note(format!(
            "requests{others} have rows until {}; the {} after that are counted, but not judged.",
            millis(complete_ms),
            count(more)
        ));
    }
}

/// Whether a finding says that the subject stopped sending requests.
pub(super) fn gave_up(findings: &Findings) -> bool {
    findings.broken::<blind::Blind>()
}

/// Judges a hot loop of lists and watches by request rows, for a budget of another section.
pub(super) fn judge_hot_loop(record: &Record, name: Name, limit: Rate, cause: &str, findings: &mut Findings) {
    hot_loop::judge_follows(&SubjectRequests::of(record), name, limit, cause, findings);
}

/// The text of a limit, for an undecided finding.
trait Limit {
    /// The budgets of a rule's findings, with the texts of their limits.
    fn of(&self, name: Name) -> Vec<(Budget, String)>;
}

impl Limit for u64 {
    fn of(&self, name: Name) -> Vec<(Budget, String)> {
        vec![(name.into(), count(*self))]
    }
}

impl Limit for Rate {
    fn of(&self, name: Name) -> Vec<(Budget, String)> {
        vec![(name.into(), self.to_string())]
    }
}

impl Limit for Span {
    fn of(&self, name: Name) -> Vec<(Budget, String)> {
        vec![(name.into(), self.to_string())]
    }
}

/// Makes all budgets of the section undecided if the control plane does not report the author of each request.
fn undecided(budget: &Requests, findings: &mut Findings) {
    for (name, limit) in limits(budget) {
        let text = "this control plane does not report the subject's requests; the mock does.";
        findings.push(name, Verdict::Inconclusive, "not told", limit, text);
    }
}

/// Adds a finding about a count that may not exceed a limit.
fn at_most(findings: &mut Findings, name: impl Into<Budget>, observed: u64, limit: u64, text: String) {
    let verdict = if observed > limit { Verdict::Fail } else { Verdict::Pass };
    findings.push(name, verdict, count(observed), count(limit), text).used(observed as f64, limit as f64);
}

fn at_least(number: u64) -> String {
    format!("at least {}", count(number))
}

pub(super) fn watches(number: u64) -> String {
    if number == 1 { counted(1, "watch") } else { format!("{} watches", count(number)) }
}
