//! Why an anomaly came about, in one sentence, and what to do next.
//!
//! Owns the list of causes with their remedies, and which of them the facts of an anomaly show. It is pure and reads nothing but the
//! record. It says no more than the facts: where the control plane does not tell what it sent, nobody is blamed, and a cause is said only
//! where lines on the wire prove it.
//! `history` reads an anomaly's evidence, `conduct` what the subject did in the whole run. `proven` says what comes before all else, `unreported`
//! explains what was not reported or late, `misreported` what should not have been reported; `multiplied` says where that is one and the
//! same thing for all of them.

use std::collections::BTreeMap;

use crate::judge::grown;
use crate::ledger::Outcome;
use crate::record::{AnomalyRow, Record};
use crate::words::count;
use conduct::Conduct;
use faults::Faults;
use history::History;

mod conduct;
mod faults;
mod history;
mod misreported;
mod multiplied;
mod proven;
mod table;
#[cfg(test)]
mod tests;
mod unreported;

pub use table::Cause;

/// What explains anomalies besides their own histories.
#[derive(Debug, Default)]
pub struct Facts {
    faults: Faults,
    conduct: Conduct,
}

/// The cause of one anomaly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// Which one.
    pub cause: Cause,
    /// What happened, without a full stop: `sent on watch 3 at 4.01 s, never reported`.
    pub sentence: String,
}

/// The anomalies that have one cause.
#[derive(Debug)]
pub struct Group<'a> {
    /// The cause.
    pub cause: Cause,
    /// The anomalies, in the order of the record, with their sentences.
    pub rows: Vec<(&'a AnomalyRow, String)>,
}

/// What was found, as one reads it first.
#[derive(Debug, Default)]
pub struct Summary<'a> {
    /// What breaks a promise first, then by how often.
    pub groups: Vec<Group<'a>>,
    /// Anomalies that were counted and have no row.
    pub unnamed: u64,
}

/// Causes that stand where one looks first.
const FIRST: usize = 3;

impl Facts {
    /// Those of a run.
    pub fn of(record: &Record) -> Self {
        Self { faults: Faults::of(record), conduct: Conduct::of(record) }
    }
}

/// Why an anomaly came about.
pub fn explain(row: &AnomalyRow, facts: &Facts) -> Explained {
    let history = History::of(row);
    match row.outcome {
        Outcome::Missed | Outcome::Ghost | Outcome::Late | Outcome::LateGhost => {
            let proven = proven::explain(row, &history, &facts.conduct);
            proven.unwrap_or_else(|| unreported::explain(row, &history, facts))
        }
        Outcome::IdentitySwap => {
            let sentence = "another object took its name, and the client reported it as an update of the old object";
            Explained { cause: Cause::TakenForUpdate, sentence: sentence.to_owned() }
        }
        Outcome::Unobservable => unreported::unobservable(row),
        Outcome::Duplicate => misreported::duplicate(row, &history),
        Outcome::Regressed | Outcome::Resurrected => misreported::older(row, &history),
        Outcome::Phantom => misreported::phantom(row, &history, &facts.faults),
        Outcome::Observed | Outcome::Coalesced => {
            Explained { cause: Cause::Unknown, sentence: "nothing is wrong with it".to_owned() }
        }
    }
}

/// All anomalies of a record by their cause.
pub fn summary(record: &Record) -> Summary<'_> {
    let facts = Facts::of(record);
    let grown = grown(record);
    let mut groups: BTreeMap<Cause, Vec<(&AnomalyRow, String)>> = BTreeMap::new();
    for row in &record.anomalies {
        let own = explain(row, &facts);
        let Explained { cause, sentence } = multiplied::explain(row, own, grown.as_ref());
        groups.entry(cause).or_default().push((row, sentence));
    }
    let mut groups: Vec<_> = groups.into_iter().map(|(cause, rows)| Group { cause, rows }).collect();
    groups.sort_by_key(|group| (group.is_harmless(), std::cmp::Reverse(group.rows.len())));
    let totals = record.totals();
    let counted: u64 =
        Outcome::ALL.into_iter().filter(|outcome| outcome.is_anomaly()).map(|outcome| outcome.of(&totals)).sum();
    Summary { groups, unnamed: counted.saturating_sub(record.anomalies.len() as u64) }
}

impl Summary<'_> {
    /// The three commonest.
    pub fn first(&self) -> &[Group<'_>] {
        &self.groups[..self.groups.len().min(FIRST)]
    }
}

impl Group<'_> {
    /// Whether no anomaly of it breaks what the API promises: told again, or legally unseen.
    pub fn is_harmless(&self) -> bool {
        self.rows.iter().all(|(row, _)| matches!(row.outcome, Outcome::Duplicate | Outcome::Unobservable))
    }

    /// How many, which cause, and the first of them: `2 anomalies lost in the client, first default/a: sent on …`.
    pub fn line(&self) -> String {
        let many = match self.rows.len() {
            1 => "1 anomaly".to_owned(),
            many => format!("{} anomalies", count(many as u64)),
        };
        let Some((row, sentence)) = self.rows.first() else { return format!("{many} {}", self.cause.label()) };
        format!("{many} {}, first {} ({}): {sentence}", self.cause.label(), object(row), row.outcome)
    }
}

/// The object of an anomaly as people write it: `default/web-1`.
pub fn object(row: &AnomalyRow) -> String {
    match (row.namespace.as_str(), row.name.as_str()) {
        ("", "") => format!("uid {}", row.uid),
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}
