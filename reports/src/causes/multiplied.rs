//! Watches of the subject that multiplied with each reconnect: one cause for many duplicates and reports in a wrong
//! order.

use super::{Cause, Explained};
use crate::judge::Grown;
use crate::ledger::Outcome;
use crate::record::AnomalyRow;
use crate::words::{count, counted};

/// The cause of an anomaly, which is the watches of its resource if these multiplied before the report. If watches of
/// the resource did not multiply, the cause is `own`, which follows from the anomaly's history.
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
