//! Watches that multiplied with each reconnect: they explain all duplicates and reports in a wrong order at once.

use super::{Cause, Explained};
use crate::judge::Grown;
use crate::ledger::Outcome;
use crate::record::AnomalyRow;
use crate::words::{count, counted};

/// The cause of an anomaly: the multiplied watches, if the watches of its resource multiplied before the report; else
/// the cause that its own history shows.
pub(super) fn explain(row: &AnomalyRow, own: Explained, grown: Option<&Grown>) -> Explained {
    let told = matches!(row.outcome, Outcome::Duplicate | Outcome::Regressed | Outcome::Resurrected);
    let at_ms = row.observed_ms.unwrap_or(row.t_ms);
    match grown.filter(|grown| told && grown.resource == row.resource && at_ms >= grown.from_ms) {
        Some(grown) => {
            let sentence = format!(
                "{}; {} watches of {} were open at once after {}, compared with {} before the first end",
                own.sentence,
                count(grown.most),
                grown.scope,
                counted(grown.ends, "end"),
                count(grown.first)
            );
            Explained { cause: Cause::Multiplied, sentence }
        }
        None => own,
    }
}
