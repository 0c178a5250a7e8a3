//! `requests.blind`: the longest time without a list or watch of a resource.

use units::Span;

use super::SubjectRequests;
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{Record, Verb};
use crate::words::millis;

/// A time range in which the subject had no list or watch of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    pub from_ms: u64,
    pub to_ms: u64,
}

impl Gap {
    fn length_ms(self) -> u64 {
        self.to_ms - self.from_ms
    }
}

pub(super) struct Blind;

impl Rule for Blind {
    const EXAMPLE: Option<&'static str> = Some("5s");
    const WORD: Option<Word> = Some(Word::Blind);

    fn judge(record: &Record, asked: &SubjectRequests, limit: &Span, findings: &mut Findings) {
        judge(record, asked, *limit, findings);
    }
}

/// The longest time without a list or watch of a judged resource, in milliseconds.
pub(crate) fn longest_ms(record: &Record) -> u64 {
    longest(record, &SubjectRequests::of(record)).map_or(0, |(gap, _)| gap.length_ms())
}

/// The longest time without a list or watch, and its resource.
fn longest<'a>(record: &'a Record, asked: &SubjectRequests<'a>) -> Option<(Gap, &'a str)> {
    let mut worst: Option<(Gap, &str)> = None;
    for resource in resources(record, asked) {
        let follows = asked.rows.iter().filter(|row| row.follows() && row.resource == resource);
        let spans: Vec<(u64, u64)> = follows.clone().map(|row| (row.t_ms, asked.end_ms(row))).collect();
        let watched_ms = follows.filter(|row| row.verb == Verb::Watch).map(|row| row.t_ms).next();
        for gap in gaps(&spans, asked.until_ms) {
            let counts = watched_ms.is_some_and(|t_ms| t_ms <= gap.from_ms) || committed(record, gap);
            if counts && worst.is_none_or(|(other, _)| gap.length_ms() > other.length_ms()) {
                worst = Some((gap, resource));
            }
        }
    }
    worst
}

fn judge(record: &Record, asked: &SubjectRequests, limit: Span, findings: &mut Findings) {
    let worst = longest(record, asked);
    let longest_ms = worst.map_or(0, |(gap, _)| gap.length_ms());
    let (verdict, text) = match worst {
        Some((gap, resource)) if longest_ms > limit.as_millis() => {
            let end = if gap.to_ms == asked.until_ms { "the end of the run".to_owned() } else { millis(gap.to_ms) };
            let text = format!(
                "the subject stopped watching at {}: until {end} it had no open list or watch of {resource} and sent none.",
                millis(gap.from_ms)
            );
            (Verdict::Fail, text)
        }
        _ => (Verdict::Pass, "the subject kept sending requests.".to_owned()),
    };
    findings.push(Name::of::<Blind>(), verdict, millis(longest_ms), limit.to_string(), text);
}

/// The resources that the scenario gives the subject to watch; if it gives none, the resources that the subject listed
/// or watched.
fn resources<'a>(record: &'a Record, asked: &SubjectRequests<'a>) -> Vec<&'a str> {
    if !record.manifest.judged.is_empty() {
        return record.manifest.judged.iter().map(String::as_str).collect();
    }
    let watched = asked.scopes.iter().filter(|(_, rows)| rows.iter().any(|row| row.verb == Verb::Watch));
    let mut resources: Vec<&str> = watched.map(|(scope, _)| scope.resource).collect();
    resources.dedup();
    resources
}

/// The times between the time spans of requests, including the time before the first span and after the last.
pub(super) fn gaps(spans: &[(u64, u64)], until_ms: u64) -> Vec<Gap> {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    sorted.push((until_ms, until_ms));
    let mut gaps = Vec::new();
    let mut from_ms = 0;
    for (start_ms, end_ms) in sorted {
        if start_ms > from_ms {
            gaps.push(Gap { from_ms, to_ms: start_ms });
        }
        from_ms = from_ms.max(end_ms);
    }
    gaps
}

/// Whether a version was committed in the gap, according to the counts of the record's intervals.
fn committed(record: &Record, gap: Gap) -> bool {
    let inside = |start_ms: u64, end_ms: u64| start_ms >= gap.from_ms && end_ms <= gap.to_ms;
    record.intervals.iter().any(|row| inside(row.start_ms, row.end_ms) && row.events.commits > 0)
}
