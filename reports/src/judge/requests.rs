//! The judge of what the subject asked: whether it went on asking, from where, how often, and over how many connections.
//!
//! Owns `requests.*`. Reads only the rows of the subject's requests and the server's count of its connections; it must not use
//! what the subject observed, so that a subject without a witness could be judged all the same. What each key means is said at
//! [`crate::budgets::Requests`]; the rules are below, one file a rule.

use units::Rate;

use super::{Findings, Verdict};
use crate::budgets::Requests;
use crate::record::Record;
use crate::words::{count, counted, millis};

mod blind;
mod connections;
mod hot_loop;
mod open;
mod revisions;
mod scope;
#[cfg(test)]
mod tests;

use scope::Asked;

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(budget) = &record.manifest.budgets.requests else { return };
    if !record.requests.told {
        undecided(budget, findings);
        return;
    }
    let asked = Asked::of(record);
    if let Some(limit) = budget.blind {
        blind::judge(record, &asked, limit, findings);
    }
    if let Some(limit) = budget.hot_loop {
        hot_loop::judge(&asked, "requests.hotLoop", limit, "", findings);
    }
    if let Some(limit) = budget.stale_resume {
        revisions::judge_stale(record, &asked, limit, findings);
    }
    if let Some(limit) = budget.unanchored {
        revisions::judge_unanchored(&asked, limit, findings);
    }
    if let Some(limit) = budget.initial_events {
        revisions::judge_initial_events(&asked, limit, findings);
    }
    if let Some(least) = budget.watches {
        open::judge_least(&asked, least.min, findings);
    }
    if let Some(limit) = budget.open_watches {
        open::judge_most(&asked, limit, findings);
    }
    if let Some(limits) = &budget.connections {
        connections::judge(record, &asked, limits, findings);
    }
    if let Some(complete_ms) = record.requests.complete_until_ms() {
        let more: u64 = record.requests.summaries.iter().map(|summary| summary.requests + summary.lost).sum();
        findings.note(format!(
            "requests have rows until {}; the {} afterwards are only counted and not judged.",
            millis(complete_ms),
            count(more)
        ));
    }
}

/// The hot loop of a record that tells the requests, judged under another budget's name.
pub(super) fn judge_hot_loop(record: &Record, name: &str, limit: Rate, cause: &str, findings: &mut Findings) {
    hot_loop::judge(&Asked::of(record), name, limit, cause, findings);
}

/// Nothing is decided where the control plane does not tell who asks.
fn undecided(budget: &Requests, findings: &mut Findings) {
    let connections = budget.connections.unwrap_or_default();
    let keys = [
        ("requests.blind", budget.blind.map(|limit| limit.to_string())),
        ("requests.hotLoop", budget.hot_loop.map(|limit| limit.to_string())),
        ("requests.staleResume", budget.stale_resume.map(count)),
        ("requests.unanchored", budget.unanchored.map(count)),
        ("requests.initialEvents", budget.initial_events.map(count)),
        ("requests.watches", budget.watches.map(|least| at_least(least.min))),
        ("requests.openWatches", budget.open_watches.map(count)),
        ("requests.connections.open", connections.open.map(count)),
        ("requests.connections.perReconnect", connections.per_reconnect.map(|limit| limit.to_string())),
    ];
    for (name, limit) in keys {
        if let Some(limit) = limit {
            let text = "this control plane does not tell what the subject asked; the mock does.";
            findings.push(name, Verdict::Inconclusive, "not told", limit, text);
        }
    }
}

/// A count that must not be exceeded.
fn at_most(findings: &mut Findings, name: &str, observed: u64, limit: u64, text: String) {
    let verdict = if observed > limit { Verdict::Fail } else { Verdict::Pass };
    findings.push(name, verdict, count(observed), count(limit), text);
}

fn at_least(number: u64) -> String {
    format!("at least {}", count(number))
}

/// `1 list`, `2 watches`.
fn watches(number: u64) -> String {
    if number == 1 { counted(1, "watch") } else { format!("{} watches", count(number)) }
}
