//! The judge of watch events: counts of the ledger against their budgets, lag, healing, and what the subject asked.
//!
//! Owns `events.*`. It must not decide what became of a version; the ledger did.

use units::{Rate, Span};

use super::confidence::{Side, samples_when_none, share_when_none, side_of};
use super::{Findings, Verdict, requests};
use crate::budgets::{Delivery, Events};
use crate::ledger::Outcome;
use crate::record::{EventCounts, Record, quantile_us, tag};
use crate::words::{count, counted, micros, millis, percent};

/// A subject with no request open for so long has given up: the slowest retry ceiling of the clients we know is 60 s.
const BLIND_MS: u64 = 120_000;
/// At the end of a run with unsettled versions there is less patience: the drain phase was the time to catch up.
const BLIND_AT_END_MS: u64 = 30_000;
/// List and watch requests a second, without any observation, that are a hot loop.
const HOT_LOOP_PER_SECOND: f64 = 2.0;

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(budget) = &record.manifest.budgets.events else { return };
    let counts = record.totals();
    if counts.commits == 0 {
        findings.push(
            "events.missed",
            Verdict::Inconclusive,
            "no commits",
            zero_or(budget.missed).to_string(),
            "nothing was committed, so nothing could be missed.",
        );
        return;
    }
    judge_counts(record, budget, &counts, findings);
    judge_delivery(budget, &counts, findings);
    judge_lag(record, budget, findings);
    judge_heal(record, budget, findings);
    judge_blind(record, &counts, findings);
    judge_hot_loop(record, findings);
}

/// What breaks the API's contract has the budget zero when the section is present.
fn zero_or(budget: Option<u64>) -> u64 {
    budget.unwrap_or(0)
}

fn judge_counts(record: &Record, budget: &Events, counts: &EventCounts, findings: &mut Findings) {
    let always = [
        ("events.missed", Outcome::Missed, budget.missed),
        ("events.ghost", Outcome::Ghost, budget.ghost),
        ("events.regressed", Outcome::Regressed, budget.regressed),
        ("events.phantom", Outcome::Phantom, budget.phantom),
        ("events.resurrected", Outcome::Resurrected, budget.resurrected),
        ("events.identitySwap", Outcome::IdentitySwap, budget.identity_swap),
    ];
    for (name, outcome, limit) in always {
        judge_count(record, counts, findings, name, outcome, outcome.of(counts), zero_or(limit));
    }
    if let Some(limit) = budget.late {
        let late = counts.late + counts.late_ghost;
        judge_count(record, counts, findings, "events.late", Outcome::Late, late, limit);
    }
    if let Some(limit) = budget.duplicate {
        judge_count(record, counts, findings, "events.duplicate", Outcome::Duplicate, counts.duplicate, limit);
    }
    if counts.unobservable > 0 {
        findings.note(format!(
            "{} of objects created and deleted inside one outage of the subject's stream could not be observed by anybody.",
            counted(counts.unobservable, "version")
        ));
    }
}

fn judge_count(
    record: &Record,
    counts: &EventCounts,
    findings: &mut Findings,
    name: &str,
    outcome: Outcome,
    observed: u64,
    limit: u64,
) {
    let open = record.intervals.last().map_or(0, |row| row.pending);
    let at_end = matches!(outcome, Outcome::Missed | Outcome::Ghost | Outcome::IdentitySwap);
    let verdict = match () {
        () if observed > limit => Verdict::Fail,
        // Without the end of the run, versions that wait are neither observed nor missed.
        () if at_end && !record.finished() && open > 0 => Verdict::Inconclusive,
        () => Verdict::Pass,
    };
    let text = match verdict {
        Verdict::Fail => format!(
            "{}{}, at most {} allowed{}",
            what_happened(outcome, observed, counts),
            first_of(record, outcome),
            count(limit),
            gone_cause(record, outcome)
        ),
        Verdict::Inconclusive => format!(
            "the run was not finished and {} still waited for an observation, so it is not known how many are {outcome}.",
            counted(open, "version")
        ),
        _ if observed == 0 => {
            let (n, of) = base(outcome, counts);
            format!(
                "{} among {}; with 95 % confidence the true share is below {}.",
                nothing_happened(outcome),
                counted(n, of),
                percent(share_when_none(n))
            )
        }
        _ => format!("{} {outcome}, at most {} allowed.", count(observed), count(limit)),
    };
    findings.push(name, verdict, count(observed), count(limit), text);
}

/// Of what the outcome is a share.
fn base(outcome: Outcome, counts: &EventCounts) -> (u64, &'static str) {
    match outcome {
        Outcome::Regressed | Outcome::Phantom | Outcome::Resurrected | Outcome::Duplicate => {
            (counts.observations, "observation")
        }
        _ => (counts.commits, "committed version"),
    }
}

fn what_happened(outcome: Outcome, observed: u64, counts: &EventCounts) -> String {
    let n = |singular| counted(observed, singular);
    let were = if observed == 1 { "was" } else { "were" };
    match outcome {
        Outcome::Missed => {
            format!(
                "{} of {} {were} missed: neither it nor a later one was ever observed",
                n("version"),
                count(counts.commits)
            )
        }
        Outcome::Ghost => {
            format!("{} never observed, so the subject still believes in objects that are gone", n("deletion"))
        }
        Outcome::Regressed => format!("{} went back to an older version after a newer one", n("observation")),
        Outcome::Phantom => format!("{} of something that was never committed", n("observation")),
        Outcome::Resurrected => format!("{} brought back an object whose deletion had been observed", n("observation")),
        Outcome::IdentitySwap => {
            format!("{} replaced under the same name without the subject noticing the deletion", n("object"))
        }
        Outcome::Late => format!("{} observed only after the deadline, saved by a relist or resync", n("version")),
        _ => format!("{} {outcome}", count(observed)),
    }
}

fn nothing_happened(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Missed => "nothing was missed",
        Outcome::Ghost => "no deletion went unnoticed",
        Outcome::Regressed => "none went back to an older version",
        Outcome::Phantom => "none was of something never committed",
        Outcome::Resurrected => "none brought back a deleted object",
        Outcome::IdentitySwap => "no object was replaced unnoticed",
        Outcome::Late => "nothing was late",
        _ => "no duplicates",
    }
}

/// The first anomaly of this kind, so that the reader knows where to look.
fn first_of(record: &Record, outcome: Outcome) -> String {
    let same = |other: Outcome| other == outcome || (outcome == Outcome::Late && other == Outcome::LateGhost);
    let Some(row) = record.anomalies.iter().find(|row| same(row.outcome)) else { return String::new() };
    let name = match (row.namespace.as_str(), row.name.as_str()) {
        ("", "") => format!("uid {}", row.uid),
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    let at = row.committed_ms.or(row.observed_ms).unwrap_or(row.t_ms);
    format!(" (first: {name} at {}{})", millis(at), during(record, at))
}

fn during(record: &Record, t_ms: u64) -> String {
    let active = record.intervals.iter().find(|row| row.end_ms > t_ms && !row.faults_active.is_empty());
    match active {
        Some(row) if row.start_ms <= t_ms => {
            let fault_name = |id: &String| {
                let fault = record.manifest.faults.iter().find(|fault| fault.id == *id);
                fault.map_or_else(|| id.clone(), |fault| fault.name.clone())
            };
            format!(", during {}", row.faults_active.iter().map(fault_name).collect::<Vec<_>>().join(" and "))
        }
        _ => String::new(),
    }
}

fn gone_cause(record: &Record, outcome: Outcome) -> String {
    let repeated: u64 = record.intervals.iter().map(|row| row.api.repeated_gone).sum();
    if outcome != Outcome::Missed || repeated == 0 {
        return ".".to_owned();
    }
    format!(
        "; the subject kept resuming from a resourceVersion that had already been refused to it with 410 Gone ({}).",
        counted(repeated, "time")
    )
}

fn judge_delivery(budget: &Events, counts: &EventCounts, findings: &mut Findings) {
    if budget.delivery != Some(Delivery::EveryVersion) {
        return;
    }
    let (verdict, text) = if counts.coalesced == 0 {
        (Verdict::Pass, "every version was observed itself.".to_owned())
    } else {
        let versions = counted(counts.coalesced, "version");
        (
            Verdict::Fail,
            format!("{versions} superseded before being observed, but the scenario asks for every version."),
        )
    };
    findings.push("events.delivery", verdict, format!("{} coalesced", count(counts.coalesced)), "every version", text);
}

fn judge_lag(record: &Record, budget: &Events, findings: &mut Findings) {
    let Some(limit) = budget.lag_p99 else { return };
    let limit_us = micros_of(limit);
    let lag = record.latency.whole(tag::LAG);
    let n = lag.as_ref().map_or(0, hdrhistogram::Histogram::len);
    // Whole buckets: a value in the bucket of the limit counts as within it.
    let within = lag.as_ref().map_or(0, |lag| lag.count_between(0, limit_us));
    let beyond = n - within.min(n);
    let max_us = lag.as_ref().filter(|lag| !lag.is_empty()).map_or(0, hdrhistogram::Histogram::max);
    let observed = match lag.as_ref().and_then(|lag| quantile_us(lag, 990)) {
        Some(p99_us) => micros(p99_us),
        None => format!("at most {}", micros(max_us)),
    };
    let share = format!("{} of {} observations took longer than {limit}", count(beyond), count(n));
    let (verdict, observed, text) = match side_of(beyond, n, 0.01) {
        Side::Below => {
            (Verdict::Pass, observed, format!("{share}; the 99th percentile of the lag is within the limit."))
        }
        Side::Above => {
            (Verdict::Fail, observed, format!("{share}, so the 99th percentile of the lag is over the limit."))
        }
        Side::Undecided => {
            let needed = samples_when_none(0.01);
            let observed = format!("{} samples", count(n));
            let more = if n < needed { format!("at least {} more", count(needed - n)) } else { "more".to_owned() };
            (
                Verdict::Inconclusive,
                observed,
                format!("{share}; {more} outside faults would decide the 99th percentile."),
            )
        }
    };
    findings.push("events.lagP99", verdict, observed, limit.to_string(), text);
}

fn judge_heal(record: &Record, budget: &Events, findings: &mut Findings) {
    let Some(limit) = budget.heal else { return };
    let heal = record.latency.whole(tag::HEAL).filter(|heal| !heal.is_empty());
    let Some(max_us) = heal.map(|heal| heal.max()) else {
        findings.push(
            "events.heal",
            Verdict::Pass,
            "nothing late",
            limit.to_string(),
            "nothing was late, so nothing had to heal.",
        );
        return;
    };
    let broken = max_us > micros_of(limit);
    let text =
        format!("the longest that the subject was wrong about an object, until it caught up, is {}.", micros(max_us));
    findings.push(
        "events.heal",
        if broken { Verdict::Fail } else { Verdict::Pass },
        micros(max_us),
        limit.to_string(),
        text,
    );
}

fn judge_blind(record: &Record, counts: &EventCounts, findings: &mut Findings) {
    let longest = record.intervals.iter().filter_map(|row| Some((row.api.subject_idle_ms?, row.end_ms))).max();
    let last = record.intervals.last();
    let at_end = last.and_then(|row| row.api.subject_idle_ms).unwrap_or(0);
    let unsettled = counts.missed + counts.ghost + counts.identity_swap + last.map_or(0, |row| row.pending);
    let limit = millis(BLIND_MS);
    match longest {
        Some((idle_ms, end_ms)) if idle_ms > BLIND_MS => {
            let text = format!(
                "the subject had no request open and sent none for {} (until {} of the run): it has given up silently.",
                millis(idle_ms),
                millis(end_ms)
            );
            findings.push("events.blind", Verdict::Fail, millis(idle_ms), limit, text);
        }
        _ if at_end > BLIND_AT_END_MS && unsettled > 0 => {
            let text = format!(
                "when the run ended the subject had no request open and had sent none for {}, although {} unobserved: \
                 it has given up silently.",
                millis(at_end),
                counted(unsettled, "version")
            );
            findings.push("events.blind", Verdict::Fail, millis(at_end), millis(BLIND_AT_END_MS), text);
        }
        _ => {
            let idle = longest.map_or(0, |(idle_ms, _)| idle_ms);
            findings.push("events.blind", Verdict::Pass, millis(idle), limit, "the subject kept asking.");
        }
    }
}

fn judge_hot_loop(record: &Record, findings: &mut Findings) {
    let name = "events.hotLoop";
    let gone: u64 = record.intervals.iter().map(|row| row.api.repeated_gone).sum();
    let cause = if gone > 0 { ", resuming from a version already refused with 410 Gone" } else { "" };
    // Where each request is known it is known too which of them brought something; the pages of a long list do.
    if record.requests.told && record.requests.complete_until_ms().is_none() {
        return requests::judge_hot_loop(record, name, Rate::per_second(HOT_LOOP_PER_SECOND), cause, findings);
    }
    let mut worst = (0.0, 0);
    for row in &record.intervals {
        let seconds = row.end_ms.saturating_sub(row.start_ms) as f64 / 1000.0;
        // What a controller lists for its work, also while the watch under test is silent, is no way of following.
        let asked = row.api.subject_follows.unwrap_or(row.api.subject_watches + row.api.subject_lists) as f64;
        // A stub of an interval says nothing about a rate.
        if row.events.observations == 0 && seconds >= 1.0 && asked / seconds > worst.0 {
            worst = (asked / seconds, row.start_ms);
        }
    }
    let (rate, start_ms) = worst;
    let limit = format!("{HOT_LOOP_PER_SECOND}/s");
    let observed = format!("{}/s", crate::words::three_digits(rate));
    let (verdict, text) = if rate > HOT_LOOP_PER_SECOND {
        let text = format!(
            "at {} the subject sent {observed} list and watch requests without observing anything{cause}: a hot loop.",
            millis(start_ms)
        );
        (Verdict::Fail, text)
    } else {
        (Verdict::Pass, "no list or watch requests in a hot loop.".to_owned())
    };
    findings.push(name, verdict, observed, limit, text);
}

fn micros_of(span: Span) -> u64 {
    u64::try_from(span.0.as_micros()).unwrap_or(u64::MAX)
}
