//! The history of a run, one line per event: commits, effects of the fault, the client's next requests, and the
//! versions that it saw or missed. Computed from the run record; does no I/O.

use std::collections::BTreeMap;

use reports::record::{Events, Record, Verb};
use reports::words::{counted, millis};

use super::happening::{Happening, end_ms, happenings};

const EXAMPLES_MAX: usize = 3;
/// Number of first lines that are shown. A longer history is cut in the middle, so that it fits on two screens.
const FIRST_LINES: usize = 40;
const LAST_LINES: usize = 15;

/// The lines of the history, not yet numbered.
pub(crate) fn story(record: &Record, events: &Events) -> Vec<String> {
    let mut lines = Vec::new();
    let mut group: Vec<Happening> = Vec::new();
    for happening in happenings(record, events) {
        if group.last().is_some_and(|last| !happening.continues(last)) {
            lines.push(line(&std::mem::take(&mut group)));
        }
        group.push(happening);
    }
    if !group.is_empty() {
        lines.push(line(&group));
    }
    if lines.len() > FIRST_LINES + LAST_LINES {
        let left_out = lines.len() - FIRST_LINES - LAST_LINES;
        let rest = lines.split_off(lines.len() - LAST_LINES);
        lines.truncate(FIRST_LINES);
        lines.push(format!("           … {} left out", counted(left_out as u64, "line")));
        lines.extend(rest);
    }
    lines.extend(ending(record));
    lines
}

/// One line for events of the same sort.
fn line(group: &[Happening]) -> String {
    let Some((first, last)) = group.first().zip(group.last()) else { return String::new() };
    let mut what: Vec<&str> = group.iter().take(EXAMPLES_MAX).map(|one| one.what.as_str()).collect();
    what.dedup();
    let what = what.join("; ");
    let more = group.len().saturating_sub(EXAMPLES_MAX);
    let times = match group.len() {
        1 => String::new(),
        times if last.t_ms > first.t_ms => {
            format!(" – {} in {}", counted(times as u64, "time"), millis(last.t_ms - first.t_ms))
        }
        _ if more > 0 => format!(" and {more} more"),
        _ => String::new(),
    };
    let colon = if what.is_empty() { "" } else { ": " };
    format!("{:>8}  {}{colon}{what}{times}", at(first.t_ms), first.sort)
}

/// A line about the state of the client at the end of the run.
fn ending(record: &Record) -> Option<String> {
    let end_ms = end_ms(record);
    if !record.requests.told {
        return None;
    }
    let judged = |resource: &String| record.manifest.judged.contains(resource);
    let follows: Vec<_> = record.requests.rows.iter().filter(|row| row.follows() && judged(&row.resource)).collect();
    let open = follows.iter().filter(|row| row.ended_ms.is_none_or(|ended_ms| ended_ms >= end_ms)).count();
    let last_ms = follows.iter().map(|row| row.ended_ms.unwrap_or(end_ms)).max();
    let text = match (open, last_ms) {
        (0, None) => format!("the end: the client has never listed or watched {}{}", wanted(record), instead(record)),
        (0, Some(last_ms)) => {
            format!("the end: the client has sent no request for {}", millis(end_ms.saturating_sub(last_ms)))
        }
        (open, _) => {
            let silent_ms = follows
                .iter()
                .filter(|row| row.ended_ms.is_none_or(|ended_ms| ended_ms >= end_ms))
                .map(|row| end_ms.saturating_sub(row.last_object_ms.unwrap_or(row.t_ms)))
                .min()
                .unwrap_or(0);
            let open = if open == 1 { "1 watch is open".to_owned() } else { format!("{open} watches are open") };
            format!("the end: {open}, the last event on it came {} ago", millis(silent_ms))
        }
    };
    Some(format!("{:>8}  {text}", at(end_ms)))
}

/// The resources that the client should have watched.
fn wanted(record: &Record) -> String {
    let judged: Vec<&str> = record.manifest.judged.iter().map(String::as_str).collect();
    if judged.is_empty() { "anything".to_owned() } else { judged.join(" or ") }
}

/// The resources that the client requested instead of the judged resources; watches come before lists.
fn instead(record: &Record) -> String {
    let mut asked: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for row in record.requests.rows.iter().filter(|row| row.follows() && !row.resource.is_empty()) {
        let (watches, lists) = asked.entry(&row.resource).or_default();
        *(if row.verb == Verb::Watch { watches } else { lists }) += 1;
    }
    let watched: Vec<&str> = asked.iter().filter(|(_, (watches, _))| *watches > 0).map(|(name, _)| *name).collect();
    let listed: Vec<&str> = asked.iter().filter(|(_, (watches, _))| *watches == 0).map(|(name, _)| *name).collect();
    let named = |names: &[&str]| {
        let more = names.len().saturating_sub(EXAMPLES_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", names[..names.len().min(EXAMPLES_MAX)].join(", "))
    };
    match (watched.is_empty(), listed.is_empty()) {
        (true, true) => ", nor anything else".to_owned(),
        (true, false) => format!("; it has listed {}", named(&listed)),
        (false, _) => format!("; it watches {}: `--resource` writes objects of another kind", named(&watched)),
    }
}

fn at(t_ms: u64) -> String {
    format!("{}.{:02} s", t_ms / 1000, t_ms % 1000 / 10)
}
