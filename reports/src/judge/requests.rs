//! The judge of what the subject asked: whether it went on asking, from where, how often, and over how many connections.
//!
//! Owns `requests.*`. Reads only the rows of the subject's requests and the server's count of its connections; it must not use
//! what the subject observed, so that a subject without a witness could be judged all the same. The rules are files with a
//! row each (`rule.rs`), and lines of the list below.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Rate, Span};

use super::{Findings, Verdict};
use crate::budgets::{AtLeast, Connections};
use crate::record::Record;
use crate::words::{count, counted, millis};

mod blind;
mod connections;
mod hot_loop;
mod open;
#[cfg(test)]
mod page;
mod rate;
mod revisions;
mod rule;
mod scope;
#[cfg(test)]
mod tests;

use rule::{Row, Rule};
use scope::Asked;

/// Makes of the list of rules what scenarios may write, and what judges it.
macro_rules! rules {
    ($($field:ident: $limit:ty = $rule:ty,)*) => {
        /// Limits on what the subject asks. An absent key is not judged.
        ///
        /// A *scope* is what one informer follows: a resource, a namespace or all of them, a label and a field selector.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct Requests {
            $(
                #[doc = concat!("The limit of the rule `", stringify!($rule), "`.")]
                #[schemars(description = <$rule as Rule>::DOC)]
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$limit>,
            )*
        }

        /// What the rules say of themselves.
        pub(super) const ROWS: &[Row] = &[$(Row::of::<$rule>()),*];

        fn judge_each(budget: &Requests, record: &Record, asked: &Asked, findings: &mut Findings) {
            $(if let Some(limit) = &budget.$field {
                <$rule>::judge(record, asked, limit, findings);
            })*
        }

        /// The budgets that are set, with their limits.
        fn limits(budget: &Requests) -> Vec<(String, String)> {
            let mut limits = Vec::new();
            $(limits.extend(budget.$field.iter().flat_map(<$rule>::limits));)*
            limits
        }
    };
}

rules! {
    blind: Span = blind::Blind,
    hot_loop: Rate = hot_loop::HotLoop,
    rate: Rate = rate::Most,
    stale_resume: u64 = revisions::StaleResume,
    unanchored: u64 = revisions::Unanchored,
    initial_events: u64 = revisions::InitialEvents,
    watches: AtLeast = open::Watches,
    open_watches: u64 = open::OpenWatches,
    connections: Connections = connections::Held,
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(budget) = &record.manifest.budgets.requests else { return };
    if !record.requests.told {
        undecided(budget, findings);
        return;
    }
    judge_each(budget, record, &Asked::of(record), findings);
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
    for (name, limit) in limits(budget) {
        let text = "this control plane does not tell what the subject asked; the mock does.";
        findings.push(name, Verdict::Inconclusive, "not told", limit, text);
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
