//! Causes of anomalies, each in one sentence, with the next step for the user.
//!
//! Owns the list of causes with their remedies, and the rules that find the cause of an anomaly from its recorded
//! facts. These rules are pure functions of the record. The named causes claim no more than the recorded facts show. If
//! the control plane does not record what it sent, neither subject nor control plane is blamed. A cause is named only
//! if recorded requests or events that the control plane sent prove it.
//!
//! `history` reads an anomaly's evidence, `conduct` the subject's behaviour in the whole run. `proven` finds causes in
//! the subject's own work, which take precedence over all others. `unreported` explains missed and late versions,
//! `misreported` observations that should not exist. `multiplied` finds watches that the subject opened again and again
//! without closing the old ones, which explain many anomalies at once.

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

/// Facts of the whole run that explain anomalies, beyond the histories of single objects.
#[derive(Debug, Default)]
pub struct Facts {
    faults: Faults,
    conduct: Conduct,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    pub cause: Cause,
    /// The explanation of the anomaly, without a full stop: `sent on watch 3 at 4.01 s, never reported`.
    pub sentence: String,
}

#[derive(Debug)]
pub struct Group<'a> {
    pub cause: Cause,
    /// The anomalies of the group, each with its explanation, in the order of the record.
    pub rows: Vec<(&'a AnomalyRow, String)>,
}

/// The groups of anomalies, in the order in which a report shows them.
#[derive(Debug, Default)]
pub struct Summary<'a> {
    /// The groups, sorted: first those with a broken promise of the API, then by number of anomalies.
    pub groups: Vec<Group<'a>>,
    /// Number of anomalies that were counted but have no row in the record.
    pub unnamed: u64,
}

/// Number of groups of anomalies that a report shows first.
const FIRST: usize = 3;

impl Facts {
    pub fn of(record: &Record) -> Self {
        Self { faults: Faults::of(record), conduct: Conduct::of(record) }
    }
}

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

/// Groups all anomalies of a record by their cause.
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
    pub fn first(&self) -> &[Group<'_>] {
        &self.groups[..self.groups.len().min(FIRST)]
    }
}

impl Group<'_> {
    /// Whether no anomaly of the group breaks a promise of the API: the group has only duplicates, or versions that may
    /// stay unseen.
    pub fn is_harmless(&self) -> bool {
        self.rows.iter().all(|(row, _)| matches!(row.outcome, Outcome::Duplicate | Outcome::Unobservable))
    }

    /// One line with number, cause and first anomaly: `2 anomalies lost in the client, first default/a: sent on …`.
    pub fn line(&self) -> String {
        let many = match self.rows.len() {
            1 => "1 anomaly".to_owned(),
            many => format!("{} anomalies", count(many as u64)),
        };
        let Some((row, sentence)) = self.rows.first() else { return format!("{many} {}", self.cause.label()) };
        format!("{many} {}, first {} ({}): {sentence}", self.cause.label(), object(row), row.outcome)
    }
}

/// The name of an anomaly's object for people: `default/web-1`.
pub fn object(row: &AnomalyRow) -> String {
    match (row.namespace.as_str(), row.name.as_str()) {
        ("", "") => format!("uid {}", row.uid),
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}
