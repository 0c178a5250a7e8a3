//! Causes of observations that should not exist: duplicates, reports in a wrong order, and versions that were never
//! written.

use facts::Change;

use super::faults::Faults;
use super::history::{History, Listed, Sent};
use super::{Cause, Explained};
use crate::record::AnomalyRow;
use crate::words::millis;

fn of(cause: Cause, sentence: String) -> Explained {
    Explained { cause, sentence }
}

/// Explains the report of a version that was reported before.
pub(super) fn duplicate(row: &AnomalyRow, history: &History<'_>) -> Explained {
    let again_ms = row.observed_ms.unwrap_or(row.t_ms);
    let first_ms = history.reported().into_iter().find(|t_ms| *t_ms < again_ms);
    let when = match first_ms {
        Some(first_ms) => format!("reported at {} and again at {}", millis(first_ms), millis(again_ms)),
        None => format!("reported again at {}", millis(again_ms)),
    };
    if !history.is_told() {
        return of(Cause::NotTold, format!("{when}; whether it was sent again is not known"));
    }
    let sent: Vec<Sent> = history.own_sent().into_iter().filter(|sent| sent.t_ms <= again_ms).collect();
    // The client may report only now a version that was sent before the first report, but a version sent after it was
    // certainly sent again.
    if let [first, .., last] = sent[..] {
        let from = history.watch(last.watch).filter(|watch| watch.number != first.watch);
        let from = match from.map(|watch| (watch.initial, watch.start_number())) {
            Some((true, _)) => ", which began with a list of all objects".to_owned(),
            Some((_, Some(from))) => format!(", which the client opened from revision {from}"),
            Some((_, None)) => ", which the client opened without a revision".to_owned(),
            None => String::new(),
        };
        let text = format!(
            "sent on watch {} at {} and again on watch {} at {}{from}",
            first.watch,
            millis(first.t_ms),
            last.watch,
            millis(last.t_ms)
        );
        return of(Cause::SentAgain, text);
    }
    let list = history.lists().filter(|list| list.t_ms <= again_ms && first_ms.is_some_and(|t_ms| list.t_ms >= t_ms));
    let holds = |list: &Listed| history.revision.is_some_and(|revision| list.revision >= revision);
    if let Some(list) = list.filter(holds).last() {
        return of(Cause::ToldTwice, format!("{when}, after the list of {} held it unchanged", millis(list.t_ms)));
    }
    match sent.first() {
        Some(sent) => {
            of(Cause::ToldTwice, format!("sent once, on watch {} at {}, {when}", sent.watch, millis(sent.t_ms)))
        }
        None => of(Cause::Unknown, format!("{when}; no record shows how it reached the client")),
    }
}

/// Explains the report of a version after a newer one, or after the object's deletion.
pub(super) fn older(row: &AnomalyRow, history: &History<'_>) -> Explained {
    let at_ms = row.observed_ms.unwrap_or(row.t_ms);
    let newest = history.newest_reported(at_ms);
    let after = newest.map_or_else(|| "a newer version".to_owned(), |newest| format!("revision {newest}"));
    let when = format!("reported at {} after {after}", millis(at_ms));
    if !history.is_told() {
        return of(Cause::NotTold, format!("{when}; the order in which they were sent is not known"));
    }
    let sent = history.own_sent().into_iter().rfind(|sent| sent.t_ms <= at_ms);
    let newer_sent = newest.and_then(|newest| history.sent(&newest.to_string()).first().copied());
    let older_list = |list: &Listed| list.t_ms <= at_ms && newest.is_some_and(|newest| list.revision < newest);
    let list = history.lists().filter(older_list).last();
    match (sent, newer_sent) {
        (Some(sent), Some(newer)) if sent.t_ms > newer.t_ms => {
            let text = format!("sent on watch {} at {}, after {after}, and accepted", sent.watch, millis(sent.t_ms));
            of(Cause::OlderStateBelieved, text)
        }
        // A list that was answered after the newer version had been sent.
        (_, newer) if list.is_some_and(|list| newer.is_none_or(|newer| list.t_ms >= newer.t_ms)) => {
            let list = list.unwrap_or(Listed { t_ms: 0, revision: 0 });
            let text = format!(
                "the list of {} had revision {}, older than {after}, which had been reported",
                millis(list.t_ms),
                list.revision
            );
            of(Cause::OlderStateBelieved, text)
        }
        (Some(sent), Some(newer)) => {
            let text = format!(
                "sent before {after} (at {} and {}), but reported after it",
                millis(sent.t_ms),
                millis(newer.t_ms)
            );
            of(Cause::Overtaken, text)
        }
        _ => of(Cause::Unknown, format!("{when}; the order in which they reached the client is not known")),
    }
}

/// Explains the report of a version that was never written, or that was written with another uid or change.
pub(super) fn phantom(row: &AnomalyRow, history: &History<'_>, faults: &Faults) -> Explained {
    let at_ms = row.observed_ms.unwrap_or(row.t_ms);
    let edited =
        faults.unsure_between(at_ms.saturating_sub(1000), at_ms).filter(|fault| fault.starts_with("event-edited"));
    if let Some(fault) = edited {
        return of(
            Cause::OnTheWay,
            format!("reported at {}, while the fault {fault} changed the bytes that were sent", millis(at_ms)),
        );
    }
    if row.change == Change::Deleted && !row.name.is_empty() {
        let list = history.lists().filter(|list| list.t_ms <= at_ms).last();
        let older = list.filter(|list| history.creation().is_some_and(|created| list.revision < created));
        let text = format!("reported as deleted at {} although it existed", millis(at_ms));
        return match older {
            Some(list) => {
                let from = format!("the list of {} is from before it was created", millis(list.t_ms));
                of(Cause::OlderStateBelieved, format!("{text}: {from}"))
            }
            None => of(Cause::MadeUp, text),
        };
    }
    let what = if row.revision.is_empty() {
        "an object without a revision".to_owned()
    } else {
        format!("revision {}", row.revision)
    };
    of(Cause::MadeUp, format!("{what} was reported at {}, but never written", millis(at_ms)))
}
