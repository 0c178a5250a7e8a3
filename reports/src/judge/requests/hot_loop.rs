//! `requests.hotLoop`: requests that teach the subject nothing, one after the other.

use std::collections::BTreeMap;

use units::Rate;

use super::Asked;
use crate::judge::{Findings, Verdict};
use crate::record::{RequestRow, Verb};
use crate::words::{count, millis, three_digits};

/// The window in which fruitless requests are counted.
pub(super) const WINDOW_MS: u64 = 5000;

/// The busiest window.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Busiest {
    requests: u64,
    /// Among equals the earliest is shown.
    from: std::cmp::Reverse<u64>,
    what: String,
}

pub(super) fn judge(asked: &Asked, limit: Rate, findings: &mut Findings) {
    let follows = asked.scopes.iter().map(|(scope, rows)| (scope.to_string(), fruitless(rows)));
    let worst = follows.chain(refused(asked)).map(busiest).max();
    let seconds = WINDOW_MS as f64 / 1000.0;
    let requests = worst.as_ref().map_or(0, |worst| worst.requests);
    let rate = requests as f64 / seconds;
    let (verdict, text) = match worst {
        Some(worst) if rate > limit.as_per_second() => {
            let text = format!(
                "from {} on the subject sent {} requests in {} that brought nothing new ({}): a hot loop.",
                millis(worst.from.0),
                count(worst.requests),
                millis(WINDOW_MS),
                worst.what
            );
            (Verdict::Fail, text)
        }
        _ => (Verdict::Pass, "no requests in a hot loop.".to_owned()),
    };
    findings.push("requests.hotLoop", verdict, format!("{}/s", three_digits(rate)), limit.to_string(), text);
}

fn busiest((what, times_ms): (String, Vec<u64>)) -> Busiest {
    let (requests, from_ms) = most_in_window(&times_ms);
    Busiest { requests, from: std::cmp::Reverse(from_ms), what }
}

/// The most times within any [`WINDOW_MS`], and where that begins. The times rise.
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

/// When the scope's lists and watches were sent that brought nothing new.
pub(super) fn fruitless(rows: &[&RequestRow]) -> Vec<u64> {
    let mut known = None;
    // What watches have carried is known once they carried the last of it.
    let mut carried: Vec<(u64, Option<u64>)> = Vec::new();
    let mut times_ms = Vec::new();
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
            times_ms.push(row.t_ms);
        }
    }
    times_ms
}

/// When other requests were refused, by method and resource.
fn refused(asked: &Asked) -> impl Iterator<Item = (String, Vec<u64>)> {
    let mut times: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    for row in asked.rows.iter().filter(|row| !row.follows() && !row.succeeded()) {
        let about = if row.resource.is_empty() { &row.path } else { &row.resource };
        times.entry((&row.method, about)).or_default().push(row.t_ms);
    }
    times.into_iter().map(|((method, about), times_ms)| (format!("{method} {about}"), times_ms))
}
