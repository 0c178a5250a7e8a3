//! `requests.hotLoop`: repeated requests that bring the subject no new data.

use std::collections::BTreeMap;

use units::Rate;

use super::SubjectRequests;
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{Record, RequestRow, Verb};
use crate::words::{count, millis, three_digits};

/// The length, in milliseconds, of the time windows in which fruitless requests are counted.
pub(super) const WINDOW_MS: u64 = 5000;

/// The time window with the largest number of fruitless requests for one scope (resource, namespace and selectors).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Busiest {
    requests: u64,
    /// The start of the time window. Of time windows with equal counts, the earliest is shown.
    from: std::cmp::Reverse<u64>,
    what: String,
}

pub(super) struct HotLoop;

impl Rule for HotLoop {
    const EXAMPLE: Option<&'static str> = Some("2/s");
    const WORD: Option<Word> = Some(Word::HotLoop);

    fn judge(record: &Record, asked: &SubjectRequests, limit: &Rate, findings: &mut Findings) {
        judge(asked, Name::of::<Self>(), of_its_clock(record, *limit), "", findings);
    }
}

/// The limit, converted to the subject's own clock, by which the subject also waits between requests.
fn of_its_clock(record: &Record, limit: Rate) -> Rate {
    Rate::per_second(limit.as_per_second() * f64::from(record.manifest.clock_rate.max(1)))
}

/// Whether requests without rows are too few for a hot loop, even if all of them were fruitless and for one scope.
pub(in crate::judge) fn excluded(record: &Record) -> bool {
    let Some(limit) = record.manifest.budgets.requests.as_ref().and_then(|limits| limits.hot_loop) else { return true };
    let limit = of_its_clock(record, limit).as_per_second() * WINDOW_MS as f64 / 1000.0;
    let summaries = &record.requests.summaries;
    summaries.iter().enumerate().all(|(at, first)| {
        let within = summaries[at..].iter().take_while(|next| next.start_ms < first.end_ms.saturating_add(WINDOW_MS));
        let counted: u64 = within.map(|one| one.lists + one.watches + one.refused + one.lost).sum();
        let before_ms = first.start_ms.saturating_sub(WINDOW_MS);
        let rows = record.requests.rows.iter().filter(|row| row.t_ms >= before_ms && row.t_ms < first.end_ms);
        let rows = rows.filter(|row| row.follows() || !row.succeeded()).count() as u64;
        (counted + rows) as f64 <= limit
    })
}

/// Adds the finding of the budget `name`; in its text, `cause` follows the time.
pub(super) fn judge(asked: &SubjectRequests, name: Name, limit: Rate, cause: &str, findings: &mut Findings) {
    let worst = follows(asked).chain(refused(asked)).map(busiest).max();
    tell(worst, name, limit, cause, findings);
}

/// Like [`judge`], but only for lists and watches.
pub(super) fn judge_follows(asked: &SubjectRequests, name: Name, limit: Rate, cause: &str, findings: &mut Findings) {
    tell(follows(asked).map(busiest).max(), name, limit, cause, findings);
}

fn follows(asked: &SubjectRequests) -> impl Iterator<Item = (String, Vec<u64>)> {
    asked.scopes.iter().map(|(scope, rows)| (scope.to_string(), fruitless(rows)))
}

fn tell(worst: Option<Busiest>, name: Name, limit: Rate, cause: &str, findings: &mut Findings) {
    let seconds = WINDOW_MS as f64 / 1000.0;
    let requests = worst.as_ref().map_or(0, |worst| worst.requests);
    let rate = requests as f64 / seconds;
    let (verdict, text) = match worst {
        Some(worst) if rate > limit.as_per_second() => {
            let text = format!(
                "from {} on the subject sent {} requests in {} that brought nothing new ({}){cause}: a hot loop.",
                millis(worst.from.0),
                count(worst.requests),
                millis(WINDOW_MS),
                worst.what
            );
            (Verdict::Fail, text)
        }
        _ => (Verdict::Pass, "no requests in a hot loop.".to_owned()),
    };
    findings.push(name, verdict, format!("{}/s", three_digits(rate)), limit.to_string(), text);
}

fn busiest((what, mut times_ms): (String, Vec<u64>)) -> Busiest {
    // Requests from before the run all have the time 0 and show no rate.
    times_ms.retain(|at_ms| *at_ms > 0);
    let (requests, from_ms) = most_in_window(&times_ms);
    Busiest { requests, from: std::cmp::Reverse(from_ms), what }
}

/// The largest number of times within any [`WINDOW_MS`], and the start of that time window. The given times must be in
/// ascending order.
pub(super) fn most_in_window(times_ms: &[u64]) -> (u64, u64) {
    let mut most = (0, 0);
    let mut first = 0;
    for (last, end_ms) in times_ms.iter().enumerate() {
        while times_ms[first] + WINDOW_MS <= *end_ms {
            first += 1;
        }
        let inside = (last - first + 1) as u64;
        if inside > most.0 {
            most = (inside, times_ms[first]);
        }
    }
    most
}

/// The times of the scope's lists and watches that gave the subject no new data.
pub(super) fn fruitless(rows: &[&RequestRow]) -> Vec<u64> {
    let mut known = None;
    // The contents of a watch count once its last event was sent.
    let mut carried: Vec<(u64, Option<u64>)> = Vec::new();
    let mut times_ms = Vec::new();
    // Indexes in `times_ms` of lists that no watch has followed yet.
    let mut unfollowed = Vec::new();
    for row in rows {
        carried.retain(|(t_ms, revision)| {
            let by_now = *t_ms <= row.t_ms;
            if by_now {
                known = known.max(*revision);
            }
            !by_now
        });
        let is_list = row.verb == Verb::List;
        let restored = is_list && row.succeeded() && row.is_consistent() && row.last_revision < known;
        let newer = row.last_revision > known;
        let page = is_list && row.continues.is_some() && row.succeeded();
        let waits = !is_list && row.succeeded() && row.ended_ms.is_none();
        match (is_list, row.last_object_ms) {
            (false, Some(last_ms)) => carried.push((last_ms, row.last_revision)),
            _ if newer || restored => known = row.last_revision,
            _ => {}
        }
        if !(newer || restored || page || waits) {
            if is_list && row.succeeded() {
                unfollowed.push(times_ms.len());
            }
            times_ms.push(Some(row.t_ms));
        } else if !is_list && let Some(list) = unfollowed.pop() {
            // The list was needed by this watch: several informers of one scope list one after the other.
            times_ms[list] = None;
        }
    }
    times_ms.into_iter().flatten().collect()
}

/// The times of refused requests other than lists and watches, by method and object. Conflicts on many objects are
/// normal if other clients write too.
fn refused(asked: &SubjectRequests) -> impl Iterator<Item = (String, Vec<u64>)> {
    let mut times: BTreeMap<(&str, &str, &str, &str), Vec<u64>> = BTreeMap::new();
    for row in asked.rows.iter().filter(|row| !row.follows() && !row.succeeded()) {
        let about = if row.resource.is_empty() { &row.path } else { &row.resource };
        // An object to be created may have another name with each try.
        let name = if row.verb == Verb::Create { "" } else { row.name.as_str() };
        times.entry((&row.method, about, &row.namespace, name)).or_default().push(row.t_ms);
    }
    times.into_iter().map(|((method, about, namespace, name), times_ms)| {
        let object = if name.is_empty() { String::new() } else { format!(" {namespace}/{name}") };
        (format!("{method} {about}{object}"), times_ms)
    })
}
