//! Causes of missed and late versions: the point between control plane and report at which a version was lost.
//!
//! The search goes backwards from the report: was the version sent, did a list contain it, did a fault withhold it, was
//! a watch open, did the subject ask? The client is blamed only if the record shows that it read later events.

use facts::Change;

use super::conduct::Conduct;
use super::faults::Faults;
use super::history::{End, History, Listed, SLACK_MS, Sent, Watch};
use super::proven::ruled_out;
use super::{Cause, Explained, Facts};
use crate::ledger::Outcome;
use crate::record::{AnomalyRow, EndedBy};
use crate::words::{counted, millis};

/// A version sent within this time, in milliseconds, before its watch broke off may not have been read.
const BREAKS_WITHIN_MS: u64 = 1000;

pub(super) fn explain(row: &AnomalyRow, history: &History<'_>, facts: &Facts) -> Explained {
    let Facts { faults, conduct } = facts;
    let late = row.observed_ms.filter(|_| matches!(row.outcome, Outcome::Late | Outcome::LateGhost));
    let reported = match late {
        Some(t_ms) => format!("reported only at {}", millis(t_ms)),
        None => "never reported".to_owned(),
    };
    if !history.is_told() {
        if let Some(told) = by_delivery(row, &reported) {
            return told;
        }
        let written = format!("written at {}, {reported}", millis(history.committed_ms));
        let why = "what was sent to the client is not known";
        return of(Cause::NotTold, format!("{written}; {why}"));
    }
    let until_ms = late.unwrap_or(history.until_ms);
    if let Some(sent) = history.own_sent().first().copied() {
        let waited = sent.t_ms.saturating_sub(history.committed_ms);
        if let Some((kept, fault)) = history.withheld().filter(|(kept, _)| kept.watch == sent.watch) {
            // The fault delivered the version: the delay after that is the client's.
            if late.is_some_and(|late_ms| late_ms.saturating_sub(sent.t_ms) > BREAKS_WITHIN_MS) {
                let (from, to) = (millis(kept.t_ms), millis(sent.t_ms));
                let text = format!(
                    "withheld by the fault {fault} from {from} on, sent on watch {} at {to}, {reported}",
                    sent.watch
                );
                return of(Cause::SlowInClient, text);
            }
        }
        if late.is_some() && waited * 2 > until_ms.saturating_sub(history.committed_ms) {
            return sent_late(history, faults, sent);
        }
        return sent_in_time(history, facts, sent, late, &reported);
    }
    let listed = history.lists().find(|list| list_counts(history, *list, until_ms));
    match (listed, late) {
        (Some(list), None) => from_list(row, history, list, conduct),
        (Some(list), Some(late_ms)) => {
            let waited = list.t_ms.saturating_sub(history.committed_ms);
            if late_ms.saturating_sub(list.t_ms) > waited.max(BREAKS_WITHIN_MS) {
                let text = format!("the list of {} held it, {reported}", millis(list.t_ms));
                return of(Cause::SlowInClient, text);
            }
            if let Some(away) = away_until(history, list) {
                return away;
            }
            let why = not_sent(history, faults, list.t_ms);
            Explained { sentence: format!("{}; the list of {} brought it", why.sentence, millis(list.t_ms)), ..why }
        }
        (None, Some(late_ms)) => not_sent(history, faults, late_ms),
        (None, None) => not_sent(history, faults, history.until_ms),
    }
}

/// Explains a version of an object that was created and deleted inside a gap of the subject's watch.
pub(super) fn unobservable(row: &AnomalyRow) -> Explained {
    let detail = row.detail.clone().unwrap_or_else(|| "created and deleted while no watch was open".to_owned());
    of(Cause::LegallyUnseen, detail)
}

fn of(cause: Cause, sentence: String) -> Explained {
    Explained { cause, sentence }
}

/// Explains anomalies without evidence (of older records, or beyond the limit on kept evidence) by the field
/// `delivery`.
fn by_delivery(row: &AnomalyRow, reported: &str) -> Option<Explained> {
    let delivery = row.delivery.as_deref()?;
    let cause = match delivery {
        _ if delivery.starts_with("sent on ") && row.observed_ms.is_some() => Cause::SlowInClient,
        _ if delivery.starts_with("withheld by ") => Cause::Withheld,
        _ => return Some(of(Cause::Unknown, format!("{delivery}, {reported}"))),
    };
    Some(of(cause, format!("{delivery}, {reported}")))
}

/// Whether the list was answered in time and shows the state at the anomaly's version or a later one.
fn list_counts(history: &History<'_>, list: Listed, until_ms: u64) -> bool {
    history.revision.is_some_and(|revision| list.revision >= revision) && list.t_ms <= until_ms
}

fn sent_in_time(history: &History<'_>, facts: &Facts, sent: Sent, late: Option<u64>, reported: &str) -> Explained {
    let place = format!("sent on watch {} at {}", sent.watch, millis(sent.t_ms));
    if let Some(fault) = facts.faults.unsure_between(sent.t_ms, sent.t_ms) {
        return of(Cause::OnTheWay, format!("{place} while the fault {fault} was active, {reported}"));
    }
    let end = history.watch(sent.watch).and_then(|watch| watch.end);
    if let Some(end) = end.filter(|end| end.by != EndedBy::Server && end.t_ms < sent.t_ms + BREAKS_WITHIN_MS) {
        let after = millis(end.t_ms.saturating_sub(sent.t_ms));
        return of(Cause::OnTheWay, format!("{place}, {after} before that watch {}, {reported}", ended_how(end)));
    }
    if late.is_some() {
        return of(Cause::SlowInClient, format!("{place}, {reported}"));
    }
    lost(history, &facts.conduct, &format!("{place}, {reported}"))
}

/// Explains a version that the client got and did not report. The client lost it if it read later events, and if its
/// witness would have reported this object.
fn lost(history: &History<'_>, conduct: &Conduct, what: &str) -> Explained {
    let Some(read_on) = history.read_on() else {
        let ruled_out = ruled_out(conduct);
        return of(Cause::Unknown, format!("{what}, and nothing later was reported either; {ruled_out}"));
    };
    if !conduct.tells_each && !history.knew_the_object() {
        let text = format!(
            "{what}; the subject never wrote anything for this object, perhaps by design; {}",
            ruled_out(conduct)
        );
        return of(Cause::Unknown, text);
    }
    let later = counted(read_on.times, "later version");
    let was = if read_on.times == 1 { "was" } else { "were" };
    of(Cause::LostInClient, format!("{what}, while {later} {was} reported, the first at {}", millis(read_on.t_ms)))
}

fn sent_late(history: &History<'_>, faults: &Faults, sent: Sent) -> Explained {
    let tail = format!("sent only at {}", millis(sent.t_ms));
    if let Some((_, fault)) = history.withheld() {
        return of(Cause::Withheld, format!("withheld by the fault {fault}, {tail}"));
    }
    let committed_ms = history.committed_ms;
    if let Some(watch) = history.open_at(committed_ms).filter(|watch| watch.number == sent.watch) {
        return match faults.between(committed_ms, sent.t_ms) {
            Some(fault) => {
                of(Cause::Withheld, format!("withheld by the fault {fault} on watch {}, {tail}", watch.number))
            }
            None => {
                of(Cause::NotSent, format!("not sent at once on watch {}, although it was open, {tail}", watch.number))
            }
        };
    }
    // The evidence has no events from before the object: a watch may have ended then.
    let ended = history.ended_before(committed_ms).map(|(_, end)| end.t_ms);
    let from = ended.unwrap_or(0);
    let opened = history.watch(sent.watch).map_or(sent.t_ms, |watch| watch.t_ms);
    let refused = refused_from(history, from);
    let away = match ended {
        Some(ended) => format!("from {} to {}", millis(ended), millis(opened)),
        None => format!("when it was written, nor before {}", millis(opened)),
    };
    of(Cause::NoWatchOpen, format!("no watch was open {away}{refused}, {tail}"))
}

/// Explains a version that was written while no watch was open, if the client came back with a list. What the client
/// requests after that list is not the cause.
fn away_until(history: &History<'_>, list: Listed) -> Option<Explained> {
    if history.withheld().is_some() || history.open_at(history.committed_ms).is_some() {
        return None;
    }
    let (last, end) = history.ended_before(history.committed_ms)?;
    let mut others = history.watches().into_iter().filter(|watch| watch.number != last.number);
    if others.any(|watch| watch.t_ms + SLACK_MS >= end.t_ms && watch.t_ms < list.t_ms) {
        return None;
    }
    let (from, refused) = (millis(end.t_ms), refused_from(history, end.t_ms));
    let text = format!("no watch was open from {from}{refused}; the list of {} brought it", millis(list.t_ms));
    Some(of(Cause::NoWatchOpen, text))
}

/// The number of requests that were refused from `t_ms` on, as a text in parentheses.
fn refused_from(history: &History<'_>, t_ms: u64) -> String {
    history.refused_from(t_ms).map_or_else(String::new, |(times, status)| {
        format!(" ({} refused, the last with {status})", counted(times, "request"))
    })
}

fn from_list(row: &AnomalyRow, history: &History<'_>, list: Listed, conduct: &Conduct) -> Explained {
    let gone = history.deletion().is_some_and(|deletion| deletion <= list.revision);
    let (at, revision) = (millis(list.t_ms), list.revision);
    let text = match (gone, row.change) {
        (true, Change::Deleted) => {
            format!(
                "the list of {at} (revision {revision}) no longer had the object, and its deletion was never reported"
            )
        }
        (true, _) => {
            format!("the list of {at} (revision {revision}) no longer had the object, and nothing was reported")
        }
        (false, _) => format!("the list of {at} (revision {revision}) had this version, and it was never reported"),
    };
    // A client that watches from the list, or reports a later version, has processed the list.
    let goes_on = |watch: &Watch<'_>| watch.t_ms + SLACK_MS >= list.t_ms && watch.start_number() == Some(list.revision);
    let took = history.read_on().is_some() || history.watches().iter().any(goes_on);
    let tells = conduct.tells_each || history.knew_the_object();
    if took && tells {
        return of(Cause::LostFromList, text);
    }
    of(Cause::Unknown, format!("{text}; no record shows that the client read the list; {}", ruled_out(conduct)))
}

/// Explains a version that until `until_ms` was sent on no watch and was in no list.
fn not_sent(history: &History<'_>, faults: &Faults, until_ms: u64) -> Explained {
    let committed_ms = history.committed_ms;
    if let Some((at, fault)) = history.withheld() {
        let silent = if history.asked_from(at.t_ms) { "" } else { ", and the client sent no request afterwards" };
        return of(
            Cause::Withheld,
            format!("dropped by the fault {fault} on watch {} at {}{silent}", at.watch, millis(at.t_ms)),
        );
    }
    if let Some(watch) = history.open_at(committed_ms) {
        let (number, from) = (watch.number, watch.start_number());
        if let Some(from) = from.filter(|from| history.revision.is_some_and(|revision| *from >= revision)) {
            return of(
                Cause::SkippedByClient,
                format!(
                    "not sent: the client watched from revision {from}, which is not before this \
                                                       version"
                ),
            );
        }
        // The watch begins with the state at the time of its answer: an object of which no version was sent was deleted
        // by then.
        if from.is_none() && !watch.initial && history.is_deletion() && !history.sent_on(number) {
            let text = format!("not sent: watch {number} was opened without a revision, after the object was gone");
            return of(Cause::SkippedByClient, text);
        }
        return match faults.between(committed_ms, until_ms) {
            Some(fault) => of(
                Cause::Withheld,
                format!("not sent on watch {number} while the fault {fault} was active, although the watch was open"),
            ),
            None => of(Cause::NotSent, format!("not sent on watch {number}, although it was open")),
        };
    }
    match history.ended_before(committed_ms) {
        Some((watch, end)) => after_end(history, watch.number, end),
        None => never_watched(history),
    }
}

/// Explains a version that was written after a watch had ended, by the client's next request.
fn after_end(history: &History<'_>, number: u64, end: End) -> Explained {
    let ended = match end.through {
        Some(through) => format!("watch {number} {} at revision {through}", ended_how(end)),
        None => format!("watch {number} {} at {} with nothing sent on it", ended_how(end), millis(end.t_ms)),
    };
    // The next watch that was accepted; watches refused before it have been asked again.
    let next = history.watches().into_iter().find(|watch| watch.t_ms + SLACK_MS >= end.t_ms && watch.number != number);
    let Some(next) = next else {
        return match history.refused_from(end.t_ms) {
            Some((times, status)) => {
                let were = if times == 1 { "was" } else { "were" };
                let times = counted(times, "request");
                of(
                    Cause::RefusedInVain,
                    format!("not sent: {ended}, and {times} after it {were} refused, the last with {status}"),
                )
            }
            None if history.asked_from(end.t_ms) => {
                of(Cause::NeverAskedAgain, format!("not sent: {ended}, and the client opened no other watch"))
            }
            None => {
                let ended = format!("watch {number} {} at {}", ended_how(end), millis(end.t_ms));
                of(Cause::NeverAskedAgain, format!("not sent: {ended}, and the client sent no further request"))
            }
        };
    };
    match (next.start_number(), history.revision) {
        (Some(from), Some(revision)) if from >= revision => {
            of(Cause::SkippedByClient, format!("not sent: {ended}, and the client resumed from {from}"))
        }
        (None, _) if !next.initial => of(
            Cause::SkippedByClient,
            format!("not sent: {ended}, and the client watched again without a revision, so it got no deletion"),
        ),
        _ => of(Cause::NotSent, format!("not sent on watch {}, although it was opened after the write", next.number)),
    }
}

fn never_watched(history: &History<'_>) -> Explained {
    let first = history.watches().into_iter().next();
    if let Some(watch) = first {
        let from = match watch.start_number() {
            Some(from) => format!("from {from}"),
            None => "without a revision".to_owned(),
        };
        let text = format!("not sent: the client's first watch was at {}, {from}", millis(watch.t_ms));
        return of(Cause::SkippedByClient, text);
    }
    match history.refused_from(0) {
        Some((times, status)) => {
            let times = counted(times, "request");
            of(
                Cause::RefusedInVain,
                format!("not sent: {times} for this resource were refused, the last with {status}"),
            )
        }
        None if history.asked_from(0) => {
            of(Cause::NeverAsked, "not sent: the client listed this resource, but never watched it".to_owned())
        }
        None => of(Cause::NeverAsked, "not sent: the client never asked for this resource".to_owned()),
    }
}

fn ended_how(end: End) -> String {
    match (end.code, end.by) {
        (Some(code), _) => format!("ended with ERROR {code}"),
        (None, EndedBy::Server) => "ended".to_owned(),
        (None, EndedBy::Reset) => "was broken off".to_owned(),
        (None, EndedBy::Client) => "was closed by the client".to_owned(),
    }
}
