//! Decides whether objects that wait at the end are a queue: work that the subject was still doing when it was stopped.
//!
//! The waiting objects are a queue if the subject served objects steadily until then, and no waiting object was
//! overtaken. Findings about the objects in a queue are undecided. The report says how much more time the subject
//! needs, and which rate of churn it can follow. If the subject was idle, or overtook an object, it has lost the
//! objects that wait.

use std::collections::BTreeSet;

use units::Rate;

use super::rule::Name;
use super::{Finding, Findings, Verdict};
use crate::record::{Backlog, EventCounts, Record};
use crate::words::{count, counted, millis, three_digits};

/// If at least this many objects were served in the drain, their times alone show whether the subject served steadily.
const SERVED_MIN: u64 = 8;
/// Minimum number of objects served in the drain that can show steady work. If fewer than [`SERVED_MIN`] objects were
/// served, the subject's own writes must show that it continued to work.
const SERVED_FEW: u64 = 3;
/// Each quarter of the drain must have at least the mean number of served objects of all quarters, divided by this.
const SHARE_MIN: u64 = 4;
/// If the subject wrote at least this many objects in the drain, the writes show whether it worked steadily.
const WRITTEN_MIN: usize = 8;
/// The number of seconds that show a steady rate of requests, and the fraction by which each may differ from the mean.
/// A token bucket admits one request more or less.
const STEADY_S: usize = 5;
const STRAY: f64 = 0.15;
/// Maximum number of seconds of a drain whose requests are counted one by one.
const SECONDS_MAX: u64 = 3600;
/// The recommended rate of churn, as a fraction of the rate at which the subject serves objects. A fraction below 1
/// leaves room for uneven load.
const ROOM: f64 = 0.5;

/// Objects left at the end of a run that are a queue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Queue {
    pub waiting: u64,
    /// The time that the subject needs to serve these objects, in milliseconds.
    pub needs_ms: u64,
    pub served: Rate,
    /// The subject's requests per second; none if the control plane does not record them.
    pub requests: Option<Rate>,
    /// Whether the rate of requests was the same in each second, which shows that the subject limits itself.
    pub is_constant: bool,
    /// When the drain began.
    pub from_ms: u64,
}

impl Queue {
    /// The queue at the end of a run; none if no object waited, or if the waiting objects were not a queue.
    pub fn of(record: &Record) -> Option<Self> {
        let backlogs = &record.objects.as_ref()?.queues;
        let first = backlogs.first()?;
        let in_order = backlogs.iter().all(|backlog| backlog.passed == 0);
        if !record.finished() || !in_order || is_deaf(backlogs) || !(goes_on(backlogs) || writes_on(record, first)) {
            return None;
        }
        let drain_ms = first.to_ms.saturating_sub(first.from_ms).max(1);
        let waiting: u64 = backlogs.iter().map(|backlog| backlog.waiting).sum();
        let in_drain: u64 = backlogs.iter().map(|backlog| backlog.served.iter().sum::<u64>()).sum();
        let in_all: u64 = backlogs.iter().map(|backlog| backlog.served_total).sum();
        // Below this number the drain shows less of the rate than the whole run.
        let (served, over_ms) = if in_drain >= SERVED_FEW { (in_drain, drain_ms) } else { (in_all, first.to_ms) };
        let per_second = served.max(1) as f64 * 1000.0 / over_ms.max(1) as f64;
        let seconds = seconds(record, first);
        let requests: u64 = seconds.iter().sum();
        Some(Self {
            waiting,
            needs_ms: crate::words::whole(waiting as f64 / per_second * 1000.0),
            served: Rate::per_second(per_second),
            requests: (requests > 0).then(|| Rate::per_second(requests as f64 / seconds.len() as f64)),
            is_constant: is_constant(&seconds),
            from_ms: first.from_ms,
        })
    }

    /// A text such as: needs 41 s more at its 7.4 requests a second; `rate: 1/s` fits.
    pub fn needs(&self) -> String {
        let pace = match self.requests {
            Some(requests) => format!("{} requests", three_digits(requests.as_per_second())),
            None => format!("{} objects", three_digits(self.served.as_per_second())),
        };
        let needs = self.needs_ms.div_ceil(1000) * 1000;
        format!("needs {} more at its {pace} a second; `rate: {}` fits", millis(needs), spelled(fitting(self.served)))
    }
}

/// A rate as text: per second if that number has few digits, else per minute or hour.
fn spelled(rate: Rate) -> String {
    let second = rate.as_per_second();
    if second >= 0.1 { format!("{}/s", three_digits(second)) } else { rate.to_string() }
}

/// A rate of churn that is low enough for the subject. The returned rate has one digit, so that it is easy to write
/// into the scenario.
fn fitting(served: Rate) -> Rate {
    // In units per hour, the slowest that a scenario can name.
    let wanted = (served.as_per_second() * ROOM).max(1.0 / 3600.0);
    let power = 10f64.powf(wanted.log10().floor());
    // A value just below a whole digit by rounding is that digit.
    let digit = (wanted / power + 1e-9).floor().max(1.0);
    match digit * power {
        second if second >= 0.1 => Rate::per_second((second * 10.0).round() / 10.0),
        second => Rate::per_second((second * 3600.0).round().max(1.0) / 3600.0),
    }
}

/// Makes findings about unfinished work undecided if the subject worked until the end of the run.
pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let is_undone = |name: Name, finding: &Finding| finding.verdict == Verdict::Fail && rests(name);
    if !findings.judged.iter().any(|(name, finding)| is_undone(*name, finding)) {
        return;
    }
    let Some(queue) = Queue::of(record) else { return };
    for (_, finding) in findings.judged.iter_mut().filter(|(name, finding)| is_undone(*name, finding)) {
        finding.verdict = Verdict::Inconclusive;
        finding.used_pct = None;
        finding.text = format!(
            "not decided: {} still waited in the subject's queue, which {}. At the end of the run: {}",
            counted(queue.waiting, "object"),
            queue.needs(),
            finding.text
        );
    }
}

/// The number of versions that may be deleted while they wait in the subject's queue: a twentieth of all. With more of
/// them, the missing observations say nothing about the subject.
pub(super) fn deleted_max(commits: u64) -> u64 {
    commits / 20
}

/// The reason why missed versions are undecided if more than [`deleted_max`] versions were deleted in the subject's queue.
pub(super) fn deleted(record: &Record, counts: &EventCounts) -> String {
    let seconds = record.end.as_ref().map_or(0, |end| end.ended_ms).max(1000) as f64 / 1000.0;
    let served = Rate::per_second((counts.observed + counts.late).max(1) as f64 / seconds);
    format!(
        "not decided: {} of {} were deleted while they waited in the subject's queue; `rate: {}` fits its {} objects a second here.",
        counted(counts.queued, "version"),
        count(counts.commits),
        spelled(fitting(served)),
        three_digits(served.as_per_second()),
    )
}

/// Whether a finding is about work that may be unfinished, such as a missing version. A finding about wrong work is not
/// about unfinished work.
fn rests(name: Name) -> bool {
    match name.section {
        "events" => matches!(name.key, "missed" | "ghost" | "unseen" | "converged" | "restored"),
        "finalizers" => name.key == "stuck",
        _ => false,
    }
}

/// Whether the subject served objects until the end, as evenly as their number can show.
fn goes_on(backlogs: &[Backlog]) -> bool {
    backlogs.iter().all(|backlog| {
        let [first, second, third, last] = backlog.served;
        let all = first + second + third + last;
        match all {
            SERVED_MIN.. => backlog.served.iter().all(|quarter| *quarter * 4 * SHARE_MIN >= all),
            SERVED_FEW.. => first + second > 0 && third + last > 0,
            _ => false,
        }
    })
}

/// Whether objects of one resource were served, but no object of another resource. In that case, work on the first
/// resource does not prove that waiting objects of the second are a queue.
fn is_deaf(backlogs: &[Backlog]) -> bool {
    let served = |backlog: &Backlog| backlog.served.iter().sum::<u64>();
    backlogs.iter().any(|backlog| served(backlog) == 0) && backlogs.iter().any(|backlog| served(backlog) >= SERVED_MIN)
}

/// Whether the subject, until the end, wrote objects that it had not written before in the drain. Writes of ever new
/// objects are not a loop.
fn writes_on(record: &Record, backlog: &Backlog) -> bool {
    let Backlog { from_ms, to_ms, .. } = *backlog;
    if !is_told(record, to_ms) {
        return false;
    }
    let long_ms = to_ms.saturating_sub(from_ms).max(1);
    let mut known = BTreeSet::new();
    let mut quarters = [0usize; 4];
    let writes = record.requests.rows.iter().filter(|row| row.writes() && row.succeeded() && !row.is_aside());
    for row in writes.filter(|row| (from_ms..=to_ms).contains(&row.t_ms)) {
        let is_new = row.name.is_empty() || known.insert((&row.resource, &row.namespace, &row.name));
        let quarter = usize::try_from((row.t_ms - from_ms) * 4 / long_ms).unwrap_or(3).min(3);
        quarters[quarter] += usize::from(is_new);
    }
    quarters.iter().sum::<usize>() >= WRITTEN_MIN && quarters.iter().all(|new| *new > 0)
}

/// Whether the record has a row for each request until `to_ms`.
fn is_told(record: &Record, to_ms: u64) -> bool {
    record.requests.told && record.requests.complete_until_ms().is_none_or(|until_ms| until_ms >= to_ms)
}

/// Number of requests in each whole second of the drain (of a long drain, in its last seconds). Lists, watches and
/// requests about the subject itself do not count. Empty if the record has no requests.
fn seconds(record: &Record, backlog: &Backlog) -> Vec<u64> {
    let Backlog { from_ms, to_ms, .. } = *backlog;
    if !is_told(record, to_ms) {
        return Vec::new();
    }
    let length = (to_ms.saturating_sub(from_ms) / 1000).min(SECONDS_MAX);
    let from_ms = to_ms - length * 1000;
    let mut seconds = vec![0; usize::try_from(length).unwrap_or_default()];
    let rows = record.requests.rows.iter().filter(|row| !row.follows() && !row.is_aside() && row.t_ms >= from_ms);
    for row in rows {
        let second = usize::try_from((row.t_ms - from_ms) / 1000).unwrap_or(usize::MAX);
        if let Some(requests) = seconds.get_mut(second) {
            *requests += 1;
        }
    }
    seconds
}

/// Whether all these seconds have about the same number of requests.
fn is_constant(seconds: &[u64]) -> bool {
    if seconds.len() < STEADY_S {
        return false;
    }
    let mean = seconds.iter().sum::<u64>() as f64 / seconds.len() as f64;
    let stray = (mean * STRAY).max(1.0);
    mean >= 2.0 && seconds.iter().all(|requests| (*requests as f64 - mean).abs() <= stray)
}

#[cfg(test)]
mod tests;
