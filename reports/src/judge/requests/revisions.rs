//! `requests.staleResume`, `requests.unanchored`, `requests.initialEvents`: the revisions from which the subject
//! watches.
//!
//! Only data that the subject certainly read counts as the subject's state: data from a list before a watch, from a
//! watch that the server ended cleanly, and from the subject's own requests. Events of a broken stream may never have
//! reached the subject.

use super::scope::Scope;
use super::{SubjectRequests, at_most, watches};
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{EndedBy, Record, RequestRow, Verb};
use crate::words::{count, counted, millis};

/// Faults during which the clean end of a stream does not prove that the client read all events in order and with their
/// own revisions.
const MANGLES: [&str; 7] = ["net-", "freeze", "no-pong", "truncated-line", "out-of-order", "slow-drip", "event-edited"];

/// Why a watch must not start from its revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stale {
    /// The server answered a watch from this revision with 410, and the subject has not listed since.
    Gone {
        /// The revision that was answered with 410.
        refused: u64,
    },
    /// The subject's state was already newer than this revision.
    Behind {
        /// The revision of the subject's state.
        given: u64,
    },
}

/// The subject's state in one scope (resource, namespace and selectors), as far as its earlier requests prove it.
#[derive(Debug, Default)]
struct Marks {
    /// The newest revision that the server answered with 410 since the subject's last list.
    gone: Option<u64>,
    /// The newest revision that the subject certainly has.
    given: u64,
    /// When the subject last listed, or last received initial events.
    listed_ms: Option<u64>,
}

pub(super) struct StaleResume;

impl Rule for StaleResume {
    const EXAMPLE: Option<&'static str> = Some("0");
    const WORD: Option<Word> = Some(Word::WrongResourceVersion);

    fn judge(record: &Record, asked: &SubjectRequests, limit: &u64, findings: &mut Findings) {
        judge_stale(record, asked, *limit, findings);
    }
}

pub(super) struct Unanchored;

impl Rule for Unanchored {
    const EXAMPLE: Option<&'static str> = Some("0");
    const WORD: Option<Word> = Some(Word::UnanchoredWatch);

    fn judge(_: &Record, asked: &SubjectRequests, limit: &u64, findings: &mut Findings) {
        judge_unanchored(asked, *limit, findings);
    }
}

pub(super) struct InitialEvents;

impl Rule for InitialEvents {
    const EXAMPLE: Option<&'static str> = Some("0");
    const WORD: Option<Word> = Some(Word::Replayed);

    fn judge(_: &Record, asked: &SubjectRequests, limit: &u64, findings: &mut Findings) {
        judge_initial_events(asked, *limit, findings);
    }
}

fn judge_stale(record: &Record, asked: &SubjectRequests, limit: u64, findings: &mut Findings) {
    let faults = &record.manifest.faults;
    let in_order = !faults.iter().any(|fault| MANGLES.iter().any(|name| fault.name.starts_with(name)));
    let mut total = 0;
    let mut first: Option<(&RequestRow, String)> = None;
    for (scope, rows) in &asked.scopes {
        for (row, why) in stale(rows, in_order) {
            total += 1;
            if first.as_ref().is_none_or(|(other, _)| row.t_ms < other.t_ms) {
                first = Some((row, tell(row, why, scope)));
            }
        }
    }
    let text = match first {
        Some((_, text)) if total > limit => format!("{} from a wrong revision; first: {text}.", watches(total)),
        _ if total == 0 => {
            let given = if in_order {
                "the last revision of a list for it or of a plain watch that ended in order"
            } else {
                "the last revision of a list for it (with these faults the end of a watch proves nothing)"
            };
            format!(
                "no watch that was alone in its scope began from a revision that was refused since the last list or initial events, or \
                 that was older than {given}."
            )
        }
        _ => format!("{} from a wrong revision.", watches(total)),
    };
    at_most(findings, Name::of::<StaleResume>(), total, limit, text);
}

fn tell(row: &RequestRow, why: Stale, scope: &Scope) -> String {
    let from = row.revision.as_deref().unwrap_or("0");
    let why = match why {
        Stale::Gone { refused } if row.revision_number() == Some(refused) => {
            "which had been refused with 410 Gone".to_owned()
        }
        Stale::Gone { refused } => {
            format!("no newer than {refused}, which had been refused with 410 Gone, and without a list")
        }
        Stale::Behind { given } => format!("although it had already received {given}"),
    };
    format!("at {} it watched {scope} from {from}, {why}", millis(row.t_ms))
}

/// The watches of a scope that start from a forbidden revision.
pub(super) fn stale<'a>(rows: &[&'a RequestRow], in_order: bool) -> Vec<(&'a RequestRow, Stale)> {
    let mut marks = Marks::default();
    // Earlier watches that were not over when this request came.
    let mut open: Vec<&RequestRow> = Vec::new();
    let mut found = Vec::new();
    for row in rows.iter().copied() {
        open.retain(|watch| {
            let over = watch.ended_ms.is_some_and(|ended_ms| ended_ms <= row.t_ms);
            if over {
                marks.ended(watch, in_order);
            }
            !over
        });
        let beside = open.iter().any(|watch| watch.succeeded());
        match row.verb {
            Verb::List => marks.listed(row, beside),
            _ if row.send_initial_events == Some(true) => {
                if row.succeeded() {
                    (marks.gone, marks.listed_ms) = (None, Some(row.t_ms));
                }
                open.push(row);
            }
            _ => {
                if !beside && let Some(why) = marks.refuses(row) {
                    found.push((row, why));
                }
                marks.watched(row);
                open.push(row);
            }
        }
    }
    found
}

impl Marks {
    fn listed(&mut self, row: &RequestRow, beside: bool) {
        let Some(revision) = row.last_revision.filter(|_| row.succeeded()) else { return };
        (self.gone, self.listed_ms) = (None, Some(row.t_ms));
        // A list beside a watch (a resync) need not move the watch.
        if !beside {
            self.given = self.given.max(revision);
        }
        if row.is_consistent() {
            self.given = self.given.min(revision);
        }
    }

    fn refuses(&self, row: &RequestRow) -> Option<Stale> {
        let from = row.revision_number().filter(|from| *from > 0)?;
        match self.gone {
            Some(refused) if from <= refused => Some(Stale::Gone { refused }),
            _ if from < self.given => Some(Stale::Behind { given: self.given }),
            _ => None,
        }
    }

    fn watched(&mut self, row: &RequestRow) {
        let from = row.revision_number().unwrap_or(0);
        // The subject knows the revision that it asks for.
        if row.succeeded() {
            self.given = self.given.max(from);
        }
        if row.gone() && row.objects == 0 {
            self.gone = self.gone.max(Some(from));
        }
    }

    fn ended(&mut self, watch: &RequestRow, in_order: bool) {
        let from = watch.revision_number().unwrap_or(0);
        let reached = watch.last_revision.unwrap_or(from).max(from);
        // The refusal may have come long before the end of a stream that was held open: a list since then has corrected
        // it.
        let told_ms = watch.last_object_ms.unwrap_or(watch.t_ms);
        if watch.gone() && self.listed_ms.is_none_or(|listed_ms| listed_ms <= told_ms) {
            self.gone = self.gone.max(watch.last_bookmark.max(Some(reached)));
        }
        // Initial events count only once they are complete, and only the subject knows when.
        let ordinary = watch.send_initial_events != Some(true);
        if in_order && ordinary && watch.succeeded() && watch.ended_by == Some(EndedBy::Server) {
            self.given = self.given.max(reached);
        }
    }
}

fn judge_unanchored(asked: &SubjectRequests, limit: u64, findings: &mut Findings) {
    let mut total = 0;
    let mut first: Option<(u64, String)> = None;
    for (scope, rows) in &asked.scopes {
        for row in unanchored(rows) {
            total += 1;
            if first.as_ref().is_none_or(|(t_ms, _)| row.t_ms < *t_ms) {
                first = Some((row.t_ms, scope.to_string()));
            }
        }
    }
    let text = match first {
        Some((t_ms, scope)) => format!(
            "{} began without the revision of the list before; first: {scope} at {}.",
            watches(total),
            millis(t_ms)
        ),
        None if asked.scopes.values().any(|rows| rows.iter().any(|row| is_listed(row))) => {
            "no watch of a listed scope began without a revision or from 0 (except for initial events).".to_owned()
        }
        None => "the subject sent no list, so no watch had a list to start from.".to_owned(),
    };
    at_most(findings, Name::of::<Unanchored>(), total, limit, text);
}

fn is_listed(row: &RequestRow) -> bool {
    row.verb == Verb::List && row.succeeded()
}

/// Watches without a revision in a scope that was listed before.
pub(super) fn unanchored<'a>(rows: &[&'a RequestRow]) -> Vec<&'a RequestRow> {
    let mut listed = false;
    let mut found = Vec::new();
    for row in rows.iter().copied() {
        listed |= is_listed(row);
        let from_anywhere = matches!(row.revision.as_deref(), None | Some("" | "0"));
        if listed && row.verb == Verb::Watch && from_anywhere && row.send_initial_events != Some(true) {
            found.push(row);
        }
    }
    found
}

fn judge_initial_events(asked: &SubjectRequests, limit: u64, findings: &mut Findings) {
    let asks = |rows: &[&RequestRow]| rows.iter().filter(|row| row.send_initial_events == Some(true)).count() as u64;
    let most = asked.scopes.iter().map(|(scope, rows)| (asks(rows), scope)).max_by_key(|(times, _)| *times);
    let (times, text) = match most {
        Some((times, scope)) if times > 0 => {
            (times, format!("the subject asked {} for the initial events of {scope}.", counted(times, "time")))
        }
        _ => (0, "the subject never asked for initial events.".to_owned()),
    };
    let text = if times > limit { format!("{text} At most {} is allowed.", count(limit)) } else { text };
    at_most(findings, Name::of::<InitialEvents>(), times, limit, text);
}
