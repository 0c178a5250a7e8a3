//! The single events of a run, read from the run record, in order of time. Does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use facts::Change;
use reports::ledger::Outcome;
use reports::record::{AnomalyRow, CommitEvent, EndedBy, Events, FaultEvent, FaultRow, Record, RequestRow, Verb};
use reports::words::millis;

/// An observation within this time after its commit is not listed as a separate event.
const PROMPT_MS: u64 = 1000;
/// On a real control plane, the clock of commits may be ahead of the clock of observations by at most this time.
const SKEW_MS: u64 = 250;
/// Writes of a scenario with at least this time between them become separate lines.
const APART_MS: u64 = 700;
const COMMITTED: &str = "committed";

#[derive(Debug)]
pub(super) struct Happening {
    pub(super) t_ms: u64,
    /// Consecutive events of the same sort become one line.
    pub(super) sort: String,
    /// The object of the event, in a few words.
    pub(super) what: String,
}

impl Happening {
    /// Whether the event belongs to the same line as the previous event. Writes that are far apart get separate lines;
    /// repeated requests share a line.
    pub(super) fn continues(&self, before: &Self) -> bool {
        let apart = self.sort.starts_with(COMMITTED) && self.t_ms.saturating_sub(before.t_ms) > APART_MS;
        self.sort == before.sort && !apart
    }
}

/// Whether and when the client observed a committed version.
enum Settled {
    Seen {
        late_ms: Option<u64>,
    },
    Superseded,
    /// The witness cannot observe the version.
    Untold,
    Never,
}

pub(super) fn happenings(record: &Record, events: &Events) -> Vec<Happening> {
    let mut all: Vec<(u64, u8, Happening)> = Vec::new();
    let mut add = |rank: u8, happening: Happening| all.push((happening.t_ms, rank, happening));
    // All events before the warm-up have the time 0. At time 0, commits come before the client's requests.
    let rank = |t_ms: u64, rank: u8| if t_ms == 0 { 0 } else { rank };
    for (commit, settled) in outcomes(events, &untold(record)) {
        add(rank(commit.t_ms, 4), committed(commit, &settled));
    }
    for row in &record.faults {
        if let Some(happening) = fault(row) {
            add(if row.event == FaultEvent::Hit { 3 } else { 1 }, happening);
        }
    }
    let end_ms = end_ms(record);
    for row in record.requests.rows.iter().filter(|row| is_told(record, row)) {
        add(2, request(row));
        // The end of the run ends every watch, so that is no event.
        if let (Some(ended_ms), Verb::Watch, true) = (row.ended_ms, row.verb, row.succeeded())
            && ended_ms < end_ms
        {
            add(5, ended(row, ended_ms));
        }
    }
    for row in &record.anomalies {
        if let Some(happening) = believed(row) {
            add(6, happening);
        }
    }
    all.sort_by_key(|(t_ms, rank, _)| (*t_ms, *rank));
    all.into_iter().map(|(_, _, happening)| happening).collect()
}

/// The end of the drain, or of the run if it ended earlier. After this time, the subject is stopped.
pub(super) fn end_ms(record: &Record) -> u64 {
    let phases = &record.manifest.phases;
    let planned_ms = phases.warm_up_ms + phases.steady_ms + phases.drain_ms;
    record.end.as_ref().map_or(planned_ms, |end| end.ended_ms.min(planned_ms))
}

/// Whether a request is shown: lists and watches of judged resources, and refused requests. Other requests of a
/// controller are left out.
fn is_told(record: &Record, row: &RequestRow) -> bool {
    let judged = record.manifest.judged.contains(&row.resource);
    row.verb != Verb::Other && ((judged && row.follows()) || !row.succeeded())
}

/// Versions that the witness cannot observe, by uid and revision.
fn untold(record: &Record) -> BTreeSet<(&str, &str)> {
    let rows = record.anomalies.iter().filter(|row| row.outcome == Outcome::Unobservable);
    rows.map(|row| (row.uid.as_str(), row.revision.as_str())).collect()
}

fn outcomes<'a>(events: &'a Events, untold: &BTreeSet<(&str, &str)>) -> Vec<(&'a CommitEvent, Settled)> {
    let mut seen: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    let mut gone: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for observation in &events.observations {
        seen.entry((observation.uid.as_str(), observation.revision.as_str())).or_default().push(observation.t_ms);
        if observation.change == Change::Deleted {
            gone.entry(observation.uid.as_str()).or_default().push(observation.t_ms);
        }
    }
    // From the end, so that it is known whether a later version of the object was seen.
    let mut later: BTreeSet<&str> = BTreeSet::new();
    let mut outcomes: Vec<(&CommitEvent, Settled)> = Vec::with_capacity(events.commits.len());
    for event in events.commits.iter().rev() {
        let CommitEvent { t_ms: committed_ms, commit } = event;
        let uid = commit.uid.as_str();
        // A revision that is used again or restored may have earlier observations, which do not count.
        let exact = seen.get(&(uid, commit.revision.as_str())).into_iter().flatten().copied();
        // Of two observations the first counts.
        let in_time = |t_ms: &u64| t_ms + SKEW_MS >= *committed_ms;
        let exact = exact.filter(in_time).min();
        let gone = gone.get(uid).into_iter().flatten().copied().filter(in_time).min();
        let at = if commit.change == Change::Deleted { gone.or(exact) } else { exact };
        let settled = match at {
            Some(t_ms) => {
                let lag_ms = t_ms.saturating_sub(*committed_ms);
                Settled::Seen { late_ms: (lag_ms >= PROMPT_MS).then_some(lag_ms) }
            }
            None if later.contains(uid) => Settled::Superseded,
            None if untold.contains(&(uid, commit.revision.as_str())) => Settled::Untold,
            None => Settled::Never,
        };
        if at.is_some() {
            later.insert(uid);
        }
        outcomes.push((event, settled));
    }
    outcomes.reverse();
    outcomes
}

fn committed(CommitEvent { t_ms, commit }: &CommitEvent, settled: &Settled) -> Happening {
    let change = match commit.change {
        Change::Added => "added",
        Change::Modified => "modified",
        Change::Deleted => "deleted",
    };
    let what = format!("{} {change} ({})", commit.name, commit.revision);
    let (sort, what) = match settled {
        Settled::Seen { late_ms: None } => ("committed and seen".to_owned(), what),
        Settled::Seen { late_ms: Some(ms) } => {
            ("committed and seen late".to_owned(), format!("{what}, only after {}", millis(*ms)))
        }
        Settled::Superseded => ("committed; the client saw a later version".to_owned(), what),
        Settled::Untold => ("committed; the witness does not show whether it was seen".to_owned(), what),
        Settled::Never => ("committed and NEVER SEEN".to_owned(), what),
    };
    Happening { t_ms: *t_ms, sort, what }
}

fn fault(row: &FaultRow) -> Option<Happening> {
    let (sort, what) = match row.event {
        FaultEvent::Started => ("fault begins".to_owned(), row.name.clone()),
        FaultEvent::Ended => ("fault ends".to_owned(), row.name.clone()),
        FaultEvent::Hit => (format!("fault {}", row.name), row.detail.clone().unwrap_or_default()),
        FaultEvent::Planned | FaultEvent::CanaryBefore | FaultEvent::CanaryAfter => return None,
    };
    Some(Happening { t_ms: row.t_ms, sort, what })
}

fn request(row: &RequestRow) -> Happening {
    let plural = row.resource.split('.').next().unwrap_or_default();
    let done = match row.verb {
        Verb::List => "lists",
        Verb::Watch => "watches",
        Verb::Get => "gets",
        Verb::Create => "creates",
        Verb::Update | Verb::Patch => "changes",
        Verb::Delete | Verb::DeleteCollection => "deletes",
        Verb::Other => "asks for",
    };
    let answer = match (row.status, row.error_code) {
        (0, _) => "never answered".to_owned(),
        (status, Some(code)) => format!("{status} with ERROR {code}"),
        (status, None) => status.to_string(),
    };
    let mut what = match (row.verb, row.revision.as_deref()) {
        (Verb::Watch, None | Some("")) => "from no revision".to_owned(),
        (Verb::Watch, Some(revision)) => format!("from {revision}"),
        (Verb::List, Some(revision)) if !revision.is_empty() => format!("at {revision}"),
        _ => row.name.clone(),
    };
    if row.verb == Verb::List && row.succeeded() {
        let revision = row.last_revision.map(|revision| format!(", revision {revision}")).unwrap_or_default();
        let page = if row.continues.is_some() { ", a further page" } else { "" };
        let space = if what.is_empty() { "" } else { " " };
        what = format!("{what}{space}{} objects{revision}{page}", row.objects);
    }
    if row.send_initial_events == Some(true) {
        what.push_str(" with initial events");
    }
    Happening { t_ms: row.t_ms, sort: format!("the client {done} {plural} [{answer}]"), what }
}

fn ended(row: &RequestRow, ended_ms: u64) -> Happening {
    let by = match row.ended_by {
        Some(EndedBy::Client) => "the client",
        Some(EndedBy::Reset) => "a reset",
        Some(EndedBy::Server) | None => "the server",
    };
    let length = millis(ended_ms.saturating_sub(row.t_ms));
    let what = format!("after {length} with {} events", row.objects);
    Happening { t_ms: ended_ms, sort: format!("the watch is ended by {by}"), what }
}

/// An observation that a healthy client would rarely or never report.
fn believed(row: &AnomalyRow) -> Option<Happening> {
    let wrong = [Outcome::Regressed, Outcome::Phantom, Outcome::Resurrected, Outcome::Duplicate, Outcome::IdentitySwap];
    if !wrong.contains(&row.outcome) {
        return None;
    }
    let change = match row.change {
        Change::Added => "added",
        Change::Modified => "modified",
        Change::Deleted => "deleted",
    };
    let name = if row.name.is_empty() { &row.uid } else { &row.name };
    Some(Happening {
        t_ms: row.observed_ms.unwrap_or(row.t_ms),
        // Repeated reports are legal, and after a restore they are the only safe reaction.
        sort: match row.outcome {
            Outcome::Duplicate => "the client reports a version again".to_owned(),
            outcome => format!("the client is WRONG ({})", outcome.words()),
        },
        what: format!("{name} {change} ({})", row.revision),
    })
}

#[cfg(test)]
mod tests {
    use facts::{Commit, Observation, Order, Revision};

    use super::*;

    fn deleted_at_4_s(told_ms: &[u64], untold: &[(&str, &str)]) -> Vec<String> {
        let commit = Commit {
            order: Order::of_numbered(17),
            resource: "packages".into(),
            namespace: "default".into(),
            name: "a".into(),
            uid: "u".into(),
            revision: Revision::of_number(17),
            change: Change::Deleted,
        };
        let told = |t_ms: &u64| Observation {
            t_ms: *t_ms,
            uid: "u".into(),
            revision: Revision::of_number(16),
            change: Change::Deleted,
        };
        let commits = vec![CommitEvent { t_ms: 4000, commit }];
        let events = Events { commits, observations: told_ms.iter().map(told).collect() };
        let untold = untold.iter().copied().collect();
        outcomes(&events, &untold).iter().map(|(commit, settled)| committed(commit, settled).sort).collect()
    }

    /// If a deletion is observed twice, the first observation counts. An observation before the deletion does not
    /// count.
    #[test]
    fn a_deletion_that_is_told_twice_was_seen_the_first_time() {
        assert_eq!(deleted_at_4_s(&[4010, 9000], &[]), ["committed and seen"]);
        assert_eq!(deleted_at_4_s(&[9000], &[]), ["committed and seen late"]);
        assert_eq!(deleted_at_4_s(&[1000], &[]), ["committed and NEVER SEEN"]);
    }

    /// If a witness such as `status` cannot show deletions, no deletion counts as missed.
    #[test]
    fn what_the_witness_cannot_tell_was_not_missed() {
        let untold = "committed; the witness does not show whether it was seen";
        assert_eq!(deleted_at_4_s(&[], &[("u", "17")]), [untold]);
        assert_eq!(deleted_at_4_s(&[], &[("u", "16")]), ["committed and NEVER SEEN"]);
    }
}
