//! The tables of the subject's requests: one row for each scope that it follows, and the requests around the first
//! fault.
//!
//! Owns the choice of requests and scopes that are shown. All numbers of these tables are counted from request rows, so
//! they cover the same time.

use std::collections::BTreeMap;

use super::timeline::clock;
use crate::record::{EndedBy, FaultEvent, Record, RequestRow, Verb};
use crate::words::{count, millis};

const FOLLOWED_SHOWN: usize = 20;
/// Maximum number of requests that the report shows; `requests.jsonl` has the others.
const REQUESTS_SHOWN: usize = 100;
/// How long before the first hit of a fault the shown requests begin, in milliseconds. If the fault hit a watch that is
/// older than that, the shown requests begin earlier.
const BEFORE_MS: u64 = 1000;

/// The request tables of the report.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub followed: Vec<Followed>,
    pub rows: Vec<Row>,
    /// A text with the number of requests that are not shown.
    pub hidden: Option<String>,
}

/// One scope that the subject follows with lists and watches.
#[derive(Debug)]
pub(super) struct Followed {
    pub what: String,
    pub lists: String,
    pub watches: String,
    pub refused: String,
    pub gone: String,
    pub objects: String,
}

#[derive(Debug)]
pub(super) struct Row {
    pub at: String,
    pub verb: &'static str,
    pub what: String,
    pub from: String,
    pub answer: String,
    pub refused: bool,
    pub end: String,
    pub objects: String,
    pub connection: String,
}

pub(super) fn requests(record: &Record) -> Requests {
    let follows: Vec<&RequestRow> = record.requests.rows.iter().filter(|row| row.follows()).collect();
    let mut scopes: BTreeMap<String, Vec<&RequestRow>> = BTreeMap::new();
    for row in &follows {
        scopes.entry(what(row)).or_default().push(row);
    }
    // Judged resources come first, then the most followed ones: a controller of many kinds would hide them.
    let judged = |rows: &[&RequestRow]| rows.iter().any(|row| record.manifest.judged.contains(&row.resource));
    let mut scopes: Vec<_> = scopes.into_iter().collect();
    scopes.sort_by_key(|(_, rows)| (!judged(rows), std::cmp::Reverse(rows.len())));
    let followed = scopes.into_iter().take(FOLLOWED_SHOWN).map(|(what, rows)| Followed::new(what, &rows)).collect();
    let hits = record.faults.iter().filter(|row| row.event == FaultEvent::Hit);
    let from_ms = hits.map(|row| row.t_ms).min().unwrap_or(0).saturating_sub(BEFORE_MS);
    // Requests that were open when the fault came are shown too.
    let concerned = |row: &&&RequestRow| row.t_ms >= from_ms || row.ended_ms.is_none_or(|ended_ms| ended_ms >= from_ms);
    let mut rows: Vec<&&RequestRow> = follows.iter().filter(concerned).collect();
    rows.sort_by_key(|row| !record.manifest.judged.contains(&row.resource));
    rows.truncate(REQUESTS_SHOWN);
    rows.sort_by_key(|row| (row.t_ms, row.id));
    let rows: Vec<Row> = rows.into_iter().map(|row| Row::new(row)).collect();
    let hidden = follows.len() - rows.len();
    Requests { followed, rows, hidden: (hidden > 0).then(|| count(hidden as u64)) }
}

impl Followed {
    fn new(what: String, rows: &[&RequestRow]) -> Self {
        let number = |is: fn(&RequestRow) -> bool| count(rows.iter().filter(|row| is(row)).count() as u64);
        Self {
            what,
            lists: number(|row| row.verb == Verb::List),
            watches: number(|row| row.verb == Verb::Watch),
            refused: number(|row| !row.succeeded()),
            gone: number(RequestRow::gone),
            objects: count(rows.iter().map(|row| row.objects).sum()),
        }
    }
}

impl Row {
    fn new(row: &RequestRow) -> Self {
        let from = match (&row.continues, row.send_initial_events, row.revision.as_deref()) {
            (Some(_), ..) => "next page".to_owned(),
            (_, Some(true), _) => "initial events".to_owned(),
            (.., Some(revision)) => revision.to_owned(),
            _ if row.verb == Verb::List => "now".to_owned(),
            _ => "anywhere".to_owned(),
        };
        let answer = match (row.status, row.error_code) {
            (0, _) => "none".to_owned(),
            (status, Some(code)) => format!("{status}, ERROR {code}"),
            (status, None) => status.to_string(),
        };
        Self {
            at: clock(row.t_ms),
            verb: if row.verb == Verb::List { "list" } else { "watch" },
            what: what(row),
            from,
            answer,
            refused: !row.succeeded(),
            end: end(row),
            objects: count(row.objects),
            connection: row.connection.to_string(),
        }
    }
}

fn end(row: &RequestRow) -> String {
    let Some(ended_ms) = row.ended_ms else { return "open".to_owned() };
    let by = match row.ended_by {
        Some(EndedBy::Client) => "client left",
        Some(EndedBy::Reset) => "reset",
        _ => "ended",
    };
    format!("{by} after {}", millis(ended_ms.saturating_sub(row.t_ms)))
}

fn what(row: &RequestRow) -> String {
    let mut text = row.resource.clone();
    if !row.namespace.is_empty() {
        text = format!("{text} in {}", row.namespace);
    }
    for selector in [&row.labels, &row.fields].into_iter().flatten() {
        text = format!("{text} with {selector}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{Example, list, watch};

    /// Scopes of judged resources come first, so that a controller of many resources does not hide them.
    #[test]
    fn what_is_judged_comes_first() {
        let mut example = Example::clean();
        let mut rows = Vec::new();
        for kind in 0..24_u64 {
            let resource = format!("kind-{kind:02}.example.dev");
            for number in 0..10 {
                let asked = list(kind * 100 + number, 70_000 + number, 1000);
                rows.push(RequestRow { resource: resource.clone(), ..asked });
            }
        }
        rows.push(watch(9000, 59_000, 90_000, 1000, 1200));
        example.requests = Some(rows);
        let dir = tempfile::tempdir().unwrap();
        let requests = requests(&example.open(dir.path()));
        let judged = "packages.longhaul.dev";
        assert_eq!(requests.followed.len(), FOLLOWED_SHOWN);
        assert_eq!((requests.followed[0].what.as_str(), requests.followed[0].watches.as_str()), (judged, "1"));
        assert_eq!(requests.rows.len(), REQUESTS_SHOWN);
        assert!(requests.rows.iter().any(|row| row.what == judged), "it is among the requests too");
    }
}
