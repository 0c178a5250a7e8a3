//! The anomalies of the HTML report by cause, each with the history of its object.
//!
//! Owns the number of anomalies that are shown, and the text of each line of an object's history. [`crate::causes`]
//! explains each anomaly.

use super::picture::Picture;
use super::timeline::clock;
use crate::causes::{Cause, Group, Summary, object};
use crate::record::{AnomalyRow, EndedBy, Step};
use crate::words::{count, counted};

/// Maximum number of anomalies shown for each cause; `anomalies.jsonl` lists more.
const SHOWN: usize = 12;
/// Maximum number of bytes of histories and stream lines that are shown for each cause. As HTML these texts are about
/// three times as large, and a report with ten causes stays below 2 MB.
const BYTES_SHOWN: usize = 40 << 10;
/// The estimated size of one line of a history, in bytes.
const STEP_BYTES: usize = 60;

#[derive(Debug)]
pub(super) struct FirstCause {
    pub cause: Cause,
    pub line: String,
}

#[derive(Debug)]
pub(super) struct AnomalyGroup<'a> {
    pub cause: Cause,
    pub id: usize,
    pub total: String,
    pub rows: Vec<Anomaly<'a>>,
    /// A text with the number of anomalies that are not shown.
    pub hidden: Option<String>,
}

/// One anomaly with the texts that the template shows.
#[derive(Debug)]
pub(super) struct Anomaly<'a> {
    pub row: &'a AnomalyRow,
    pub at: String,
    /// The time of the anomaly in milliseconds, for the script.
    pub at_ms: u64,
    /// The history of the object as a chart.
    pub picture: Option<Picture>,
    pub object: String,
    pub sentence: String,
    pub steps: Vec<Line>,
    pub left_out: Option<String>,
    /// Whether history and stream lines are left out, because earlier anomalies used all bytes of their cause.
    pub bare: bool,
}

/// One line of an object's history: a write, a sent event or request, or a report of the subject.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub at: String,
    pub written: String,
    pub between: String,
    pub reported: String,
    /// Whether the line is about the anomaly's own version.
    pub own: bool,
}

/// The commonest causes of anomalies, for the first screen of the report.
pub(super) fn first(summary: &Summary<'_>) -> Vec<FirstCause> {
    summary.first().iter().map(|group| FirstCause { cause: group.cause, line: group.line() }).collect()
}

/// All causes of anomalies, each with its first anomalies.
pub(super) fn groups<'a>(summary: &Summary<'a>) -> Vec<AnomalyGroup<'a>> {
    let group = |(id, group): (usize, &Group<'a>)| {
        let mut room = BYTES_SHOWN;
        let rows: Vec<_> =
            group.rows.iter().take(SHOWN).map(|(row, sentence)| Anomaly::new(row, sentence, &mut room)).collect();
        let hidden = group.rows.len() - rows.len();
        let hidden = (hidden > 0).then(|| count(hidden as u64));
        AnomalyGroup { cause: group.cause, id, total: count(group.rows.len() as u64), rows, hidden }
    };
    summary.groups.iter().enumerate().map(group).collect()
}

impl<'a> Anomaly<'a> {
    /// `room` is the number of bytes that histories and stream lines may still use.
    fn new(row: &'a AnomalyRow, sentence: &str, room: &mut usize) -> Self {
        let steps = row.evidence.as_ref().map_or(&[][..], |evidence| &evidence.steps);
        let needed = row.wire.iter().map(String::len).sum::<usize>() + steps.len() * STEP_BYTES;
        let bare = needed > *room;
        if !bare {
            *room -= needed;
        }
        let left_out = row.evidence.as_ref().map_or(0, |evidence| evidence.left_out);
        let at_ms = row.committed_ms.or(row.observed_ms).unwrap_or(row.t_ms);
        Self {
            row,
            at: clock(at_ms),
            at_ms,
            picture: (!bare).then(|| Picture::of(steps, &row.revision)).flatten(),
            object: object(row),
            sentence: sentence.to_owned(),
            steps: if bare { Vec::new() } else { steps.iter().map(|step| line(step, &row.revision)).collect() },
            left_out: (left_out > 0).then(|| counted(left_out, "step")),
            bare,
        }
    }
}

fn line(step: &Step, own: &str) -> Line {
    let at = format!("{}.{:03}", clock(step.t_ms() / 1000 * 1000), step.t_ms() % 1000);
    let line = Line { at, ..Line::default() };
    match step {
        Step::Committed { revision, change, .. } => {
            Line { written: format!("{change} {revision}"), own: revision == own, ..line }
        }
        Step::Reported { revision, change, .. } => {
            Line { reported: format!("{change} {revision}"), own: revision == own, ..line }
        }
        Step::Sent { revision, watch, .. } => {
            Line { between: format!("{revision} sent on watch {watch}"), own: revision == own, ..line }
        }
        Step::Withheld { revision, watch, fault, .. } => {
            let between = format!("{revision} withheld from watch {watch} by the fault {fault}");
            Line { between, own: revision == own, ..line }
        }
        Step::Listed { status, revision, objects, further, .. } => {
            let page = if *further { "a further page" } else { "list" };
            let revision = revision.map_or_else(String::new, |revision| format!(" at revision {revision}"));
            Line {
                between: format!("{page}: {}{revision}, {}", answer(*status, None), counted(*objects, "object")),
                ..line
            }
        }
        Step::Watched { watch, from, initial, status, error_code, .. } => {
            let number = watch.map_or_else(|| "watch".to_owned(), |watch| format!("watch {watch}"));
            let from = match from.as_deref() {
                None | Some("" | "0") => "anywhere",
                Some(from) => from,
            };
            let initial = if *initial { " with initial events" } else { "" };
            Line { between: format!("{number} from {from}{initial}: {}", answer(*status, *error_code)), ..line }
        }
        Step::Wrote { verb, resource, object, status, times, message, .. } => {
            let many = if *times > 1 { format!(" ({})", counted(*times, "time")) } else { String::new() };
            let why = message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
            let between = format!("{} {resource} {object}: {}{many}{why}", verb.word(), answer(*status, None));
            Line { between, ..line }
        }
        Step::WatchEnded { watch, by, through, .. } => {
            let by = match by {
                EndedBy::Server => "ended",
                EndedBy::Reset => "broken off",
                EndedBy::Client => "closed by the client",
            };
            let through = through.map_or_else(String::new, |through| format!(", its last revision was {through}"));
            Line { between: format!("watch {watch} {by}{through}"), ..line }
        }
    }
}

fn answer(status: u16, error_code: Option<u16>) -> String {
    match (status, error_code) {
        (0, _) => "no answer".to_owned(),
        (status, Some(code)) => format!("{status}, ERROR {code}"),
        (status, None) => status.to_string(),
    }
}
