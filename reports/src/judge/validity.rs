//! The judge of the run itself: whether its measurements can be trusted.
//!
//! Owns `validity.*` and `subject.exited`: each condition names the budgets that depend on it (`doubt.rs`). The judge
//! does not decide whether the subject was correct, except that a subject that ends by itself fails. Budgets whose
//! measurements are missing are undecided. `validity/faults.rs` judges faults, `validity/stalls.rs` a stalled harness,
//! and `validity/holes.rs` gaps in its measurements.

use super::doubt::{self, Doubts, Unmet, condition};
use super::rule::Name;
use super::{Finding, Findings, Verdict, Word, harness, requests};
use crate::record::{CrashRow, EndReason, FaultEvent, Phase, Record, quantile_us, tag};
use crate::words::{count, counted, micros, millis, percent};

mod faults;
mod holes;
mod machine;
mod stalls;

#[cfg(test)]
pub(super) use faults::FAULT;
pub(super) use faults::never_hit;
pub(super) use machine::Busy;

/// The fraction of the planned requests that the harness must send.
const SENT_LEAST: f64 = 0.99;
/// The 99th percentile of the load generator's lateness, in microseconds, above which latency may be the generator's
/// fault.
const LATENESS_P99_US: u64 = 10_000;
/// The longest allowed time without a sample of the subject, in milliseconds.
const SAMPLE_GAP_MS: u64 = 30_000;
/// If less than this fraction of the planned load was sent, the run is not the planned one.
const SENT_WHOLE: f64 = 0.5;
/// Minimum suspension of the machine, or step of the wall clock, that is reported, in milliseconds between two samples.
/// A gradual correction of the wall clock also affects the clock that measures times, so it is not noticed.
const CLOCK_STEP_MS: u64 = 1000;
/// The percentage of the time in which tasks waited for a processor, from which a note reports the pressure.
const PSI_CPU_PCT: f64 = 50.0;

// The conditions, and the word for a subject that breaks one; most have none.
pub(super) const COMPLETED: Name = condition("completed");
const WHOLE: Name = condition("record");
const INTERVALS: Name = condition("intervals");
const LATENESS: Name = condition("lateness");
const WITNESS: Name = condition("witness");
const SAMPLES: Name = condition("samples");
const SUSPENDED: Name = condition("suspended");
const CLOCK: Name = condition("clock");
const ADMISSION_RATE: Name = condition("admissionRate");
const CALL_RATE: Name = condition("callRate");
const CALL_LATENESS: Name = condition("callLateness");
const CHURN_RATE: Name = condition("churnRate");
/// The conditions of validity that may fail because the machine is busy.
const OF_THE_MACHINE: [Name; 9] = [
    INTERVALS,
    LATENESS,
    SAMPLES,
    ADMISSION_RATE,
    CALL_RATE,
    CALL_LATENESS,
    CHURN_RATE,
    stalls::PACE,
    machine::MACHINE,
];
const EXITED: Name = Name { judge: "subject", section: "subject", key: "exited", word: Some(Word::Crashed) };

/// The conditions on the subject that are judged without a budget.
#[cfg(test)]
pub(super) const WITHOUT_BUDGET: [Name; 2] = [FAULT, EXITED];

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let exited = judge_end(record, findings);
    judge_lost(record, findings);
    judge_intervals(record, findings);
    stalls::judge(record, findings);
    holes::judge(record, findings);
    judge_rate(record, findings);
    judge_lateness(record, findings);
    faults::judge(record, exited, findings);
    judge_witness(record, exited, findings);
    judge_samples(record, findings);
    judge_clocks(record, findings);
    machine::judge(record, findings);
    harness::judge(record, findings);
    findings.settle_validity();
    machine::spare(record, &OF_THE_MACHINE, findings);
    note_pressure(record, findings);
}

/// Judges how the run ended, and returns whether the subject ended too early.
fn judge_end(record: &Record, findings: &mut Findings) -> bool {
    let Some(end) = &record.end else {
        let text = format!("the harness was killed; the record reaches to {}.", millis(record.length_ms()));
        findings.invalid(COMPLETED, "killed", "completed", text);
        return false;
    };
    let at = millis(end.ended_ms);
    let (observed, text) = match &end.reason {
        EndReason::Completed => {
            let text = format!("all phases ran, {at} in all.");
            findings.push(COMPLETED, Verdict::Pass, "completed", "completed", text);
            return false;
        }
        EndReason::SubjectExited { status, detail } => {
            let detail = if detail.is_empty() { String::new() } else { format!(" Its last words: {detail}") };
            let text = format!("the subject ended by itself at {at} with {status}.{detail}");
            findings.push(EXITED, Verdict::Fail, status.clone(), "runs to the end", text);
            return true;
        }
        EndReason::Interrupted { signal } => ("interrupted", format!("the run was interrupted by {signal} at {at}.")),
        EndReason::SubjectNotReady { detail, .. } => ("not ready", format!("the subject was never ready: {detail}")),
        EndReason::NeverAsked { detail } => {
            let unmet = Unmet {
                name: COMPLETED,
                observed: "never asked".to_owned(),
                limit: "completed".to_owned(),
                text: format!("the run was ended at {at}: {detail}"),
                because: "the subject requested no churned object".to_owned(),
            };
            // Excess that was observed counts, whatever the subject did not request.
            let seen = |name: Name, finding: &Finding| finding.verdict == Verdict::Fail && is_excess(name);
            findings.says_nothing(unmet, |name, finding| doubt::is_observed(name) && !seen(name, finding));
            return false;
        }
        EndReason::WitnessSilent { .. } if never_asked(findings) => {
            let text = format!(
                "all phases ran, {at} in all. Nothing came through the witness, and the subject sent no request for the churned \
                         objects."
            );
            findings.push(COMPLETED, Verdict::Pass, "completed", "completed", text);
            return false;
        }
        EndReason::WitnessSilent { detail } => {
            let unmet = Unmet {
                name: COMPLETED,
                observed: "witness silent".to_owned(),
                limit: "completed".to_owned(),
                text: format!("nothing came through the witness: {detail}"),
                because: "nothing came through the witness".to_owned(),
            };
            findings.unmet(unmet, Doubts::Either, |name, _| doubt::is_witnessed(name));
            return false;
        }
        EndReason::LoadLost { detail } => {
            let text = format!("a part of the load was missing from {at} on: {detail}. Failures before that count.");
            findings.push(COMPLETED, Verdict::Inconclusive, "load lost", "completed", text);
            return false;
        }
        EndReason::HarnessError { detail } => ("harness error", format!("the harness failed at {at}: {detail}")),
    };
    findings.invalid(COMPLETED, observed, "completed", text);
    false
}

/// Whether a budget limits an excess, such as too many requests. A budget on an excess stays broken, even if the
/// subject did not request the churned resource.
fn is_excess(name: Name) -> bool {
    match name.section {
        "writes" | "objects" => true,
        "requests" => !matches!(name.key, "blind" | "watches"),
        "events" => name.key == "hotLoop",
        _ => false,
    }
}

/// Whether a finding says that the subject stopped sending requests. Such a subject had nothing to report, so the
/// silence of its witness is explained.
fn never_asked(findings: &Findings) -> bool {
    requests::gave_up(findings)
}

/// Judges rows that were lost to a full disk, because the lost rows may be those that would decide a budget.
fn judge_lost(record: &Record, findings: &mut Findings) {
    let Some(lost) = record.end.as_ref().and_then(|end| end.lost) else { return };
    let until = lost.to_ms.map_or_else(|| "the end".to_owned(), millis);
    let rows = counted(lost.rows, "row");
    let text = format!(
        "the disk was full: from {} to {until} {rows} of the record were lost. Free the disk, or write elsewhere with `--out`, and run it \
         again.",
        millis(lost.from_ms)
    );
    findings.invalid(WHOLE, format!("{rows} lost"), "whole", text);
}

fn judge_intervals(record: &Record, findings: &mut Findings) {
    if record.intervals.is_empty() {
        findings.invalid(INTERVALS, "0", "at least 1", "no interval was recorded, so there is nothing to judge.");
        return;
    }
    // Rows are written one after the other; a gap means that the harness stood still or the file is damaged.
    let hole = record.intervals.windows(2).find(|pair| pair[1].start_ms > pair[0].end_ms + 1000);
    if let Some([before, after]) = hole {
        let when = format!("nothing was recorded from {} to {}", millis(before.end_ms), millis(after.start_ms));
        let unmet = Unmet {
            name: INTERVALS,
            observed: format!("gap of {}", millis(after.start_ms - before.end_ms)),
            limit: "no gap".to_owned(),
            text: format!("{when}."),
            because: when,
        };
        // Events in the gap are not counted: the counts can be too low, never too high.
        findings.unmet(unmet, Doubts::Met, |name, _| !doubt::is_sampled(name) && !doubt::is_about_ends(name));
    }
}

fn judge_rate(record: &Record, findings: &mut Findings) {
    let admission = || record.intervals.iter().filter_map(|row| row.admission.as_ref());
    let sum = |of: fn(&record::AdmissionRow) -> u64| admission().map(of).sum::<u64>();
    let waiting = sum(|row| row.overflow);
    judge_share(
        findings,
        (ADMISSION_RATE, "reviews"),
        (sum(|row| row.planned), sum(|row| row.sent), waiting),
        |name| is_latency(name, "admission") || grows_with_load(name) || name.key == "growthPerRequest",
    );
    let calls = || record.intervals.iter().filter_map(|row| row.calls.as_ref());
    let sum = |of: fn(&record::CallsRow) -> u64| calls().map(of).sum::<u64>();
    let waiting = sum(|row| row.overflow);
    judge_share(findings, (CALL_RATE, "calls"), (sum(|row| row.planned), sum(|row| row.sent), waiting), |name| {
        is_latency(name, "api") || name.key == "staleness"
    });
    let churn = record.intervals.iter().filter_map(|row| row.churn.as_ref());
    let (planned, done) = churn.fold((0, 0), |sum, row| {
        (sum.0 + row.planned, sum.1 + row.created + row.updated + row.deleted + row.refused + row.failed)
    });
    judge_share(findings, (CHURN_RATE, "object changes"), (planned, done, 0), |name| {
        name.key == "lagP99" || grows_with_load(name) || name.key == "growthPerObject"
    });
}

/// Whether a budget limits response time.
fn is_latency(name: Name, section: &str) -> bool {
    name.section == section && matches!(name.key, "p50" | "p99" | "p999")
}

/// Whether a budget limits growth with time, which is smaller under a smaller load.
fn grows_with_load(name: Name) -> bool {
    doubt::is_sampled(name) && name.key == "growth"
}

/// Judges a load that was smaller than planned, which makes no measured value worse. Under a smaller load, broken
/// budgets stay broken, met budgets that depend on the rate are undecided, and counts of commits and answers stay
/// valid.
fn judge_share(
    findings: &mut Findings,
    (name, what): (Name, &str),
    (planned, done, waiting): (u64, u64, u64),
    depends: impl Fn(Name) -> bool,
) {
    if planned == 0 {
        return;
    }
    let share = done as f64 / planned as f64;
    let text = format!("{} of {} planned {what} were sent ({}).", count(done), count(planned), percent(share));
    let (observed, limit) = (percent(share), format!("at least {}", percent(SENT_LEAST)));
    if share >= SENT_LEAST {
        findings.push(name, Verdict::Pass, observed, limit, text);
        return;
    }
    let missing = planned - done.min(planned);
    // Too many requests in flight are the subject's slowness, not the generator's.
    let why = if waiting * 2 > missing {
        format!("{} could not be sent, because the generator had its maximum of open calls", count(waiting))
    } else {
        "the generator did not keep its rate, so the load differs from the plan".to_owned()
    };
    let text = format!("{text} That is, {why}.");
    if share < SENT_WHOLE {
        findings.invalid(name, observed, limit, text);
        return;
    }
    let because = format!("only {} of the planned {what} were sent", percent(share));
    let unmet = Unmet { name, observed, limit, text, because };
    findings.unmet(unmet, Doubts::Met, |name, _| depends(name));
}

/// Judges how late the load generator started requests. Lateness of the generator is part of the response time, so it
/// can break a latency budget but never meet one. The generator can be at fault only if a budget is broken that would
/// be met if response times were counted from the real start.
fn judge_lateness(record: &Record, findings: &mut Findings) {
    judge_lateness_of(record, findings, (LATENESS, tag::LATENESS), ("reviews", "admission"));
    judge_lateness_of(record, findings, (CALL_LATENESS, tag::CALLS_LATENESS), ("calls", "api"));
}

fn judge_lateness_of(
    record: &Record,
    findings: &mut Findings,
    (name, tag): (Name, &str),
    (what, section): (&str, &str),
) {
    let Some(lateness) = record.latency.in_phase(tag, Phase::Steady) else { return };
    let Some(p99_us) = quantile_us(lateness, 990) else { return };
    let (observed, limit) = (micros(p99_us), micros(LATENESS_P99_US));
    if p99_us <= LATENESS_P99_US {
        findings.push(name, Verdict::Pass, observed, limit, "the generator kept its time.");
        return;
    }
    let because = format!("the generator started 1 % of the {what} more than {} late", micros(p99_us));
    let text = format!("{because}, so latencies are not the subject's alone.");
    let unmet = Unmet { name, observed, limit, text, because };
    findings.unmet(unmet, Doubts::Broken, |name, _| is_latency(name, section) && !slow_by_itself(record, name));
}

/// Whether response times from the real start alone exceed the limit of a latency budget, so that the generator's
/// lateness is not the reason.
fn slow_by_itself(record: &Record, name: Name) -> bool {
    let Some(limits) = record.manifest.budgets.admission.as_ref().filter(|_| name.section == "admission") else {
        return false;
    };
    let (limit, parts) = match name.key {
        "p50" => (limits.p50, 500),
        "p99" => (limits.p99, 990),
        _ => (limits.p999, 999),
    };
    let service = record.latency.in_phase(tag::SERVICE, Phase::Steady);
    let service_us = service.and_then(|service| quantile_us(service, parts));
    limit.zip(service_us).is_some_and(|(limit, us)| u128::from(us) > limit.0.as_micros())
}

fn judge_witness(record: &Record, exited: bool, findings: &mut Findings) {
    if record.manifest.budgets.events.is_none() || record.manifest.witness == "none" {
        return;
    }
    let (lines, malformed) =
        record.intervals.iter().fold((0, 0), |sum, row| (sum.0 + row.witness.lines, sum.1 + row.witness.malformed));
    let first = first_unreadable(record);
    let counts = record.totals();
    let excused = struck_first(record) || never_asked(findings);
    let unmet = |text: String, because: String| Unmet {
        name: WITNESS,
        observed: format!("{} unreadable", count(malformed)),
        limit: "readable".to_owned(),
        text,
        because,
    };
    let unreadable = format!("{} of the witness could not be read", counted(malformed, "line"));
    // A subject that ended before its first observation has failed by itself.
    if lines == 0 && counts.observations == 0 && counts.commits > 0 && !exited && !excused {
        let because = format!("the {} witness carried nothing", record.manifest.witness);
        let text = format!("{because}: this looks the same as a subject that sees nothing.");
        findings.unmet(unmet(text, because), Doubts::Either, |name, _| doubt::is_witnessed(name));
    } else if let Some(most) = record.manifest.witness_tolerates.filter(|most| malformed > *most) {
        let are = if most == 1 { "is" } else { "are" };
        let text = format!("{unreadable}, and {} {are} tolerated{first}.", count(most));
        findings.unmet(unmet(text, unreadable), Doubts::Either, |name, _| doubt::is_witnessed(name));
    } else if record.manifest.witness_tolerates.is_none()
        && malformed > 0
        && counts.missed + counts.ghost > 0
        && stalls::objects_lost(record) <= malformed
    {
        // Each unreadable line may have been one of the versions that look lost; any further ones are lost.
        let text = format!("{unreadable}, so versions that look missed may have been observed{first}.");
        findings.unmet(unmet(text, unreadable), Doubts::Broken, |name, _| doubt::is_witnessed(name));
    } else {
        let text =
            format!("{} came through the witness, {} unreadable{first}.", counted(lines, "line"), count(malformed));
        findings.push(WITNESS, Verdict::Pass, format!("{} unreadable", count(malformed)), "readable", text);
    }
}

/// A text about the witness's first line that could not be read, if the record has this line.
fn first_unreadable(record: &Record) -> String {
    let example = record.intervals.iter().find_map(|row| row.witness.example.as_deref());
    example.map(|example| format!("; first: {example}")).unwrap_or_default()
}

/// Whether a fault had an effect before the first commit. After such a fault the subject may see nothing, and a silent
/// witness need not be faulty.
fn struck_first(record: &Record) -> bool {
    let hit = faults::hit(record);
    let started = record.faults.iter().filter(|row| row.event == FaultEvent::Started && hit.contains(row.id.as_str()));
    let committed = record.anomalies.iter().filter_map(|row| row.committed_ms);
    match (started.map(|row| row.t_ms).min(), committed.min()) {
        (Some(started_ms), Some(committed_ms)) => started_ms <= committed_ms,
        _ => false,
    }
}

fn judge_samples(record: &Record, findings: &mut Findings) {
    let budgets = &record.manifest.budgets;
    // A subject without samples is inconclusive by itself.
    if record.manifest.subject.unsampled.is_some() {
        return;
    }
    if budgets.memory.is_none() && budgets.descriptors.is_none() && budgets.threads.is_none() {
        return;
    }
    let times: Vec<u64> = record.samples.iter().filter(|row| row.subject.is_some()).map(|row| row.t_ms).collect();
    // No samples are taken while the harness decides the open versions in the last row of a run that ended by itself.
    let end_ms = record.intervals.last().map_or(0, |row| if row.last { row.start_ms } else { row.end_ms });
    let bounds = times.iter().copied().chain([end_ms]);
    let gaps = std::iter::once(0).chain(times.iter().copied()).zip(bounds);
    let gap = gaps.map(|(from, to)| to.saturating_sub(from).saturating_sub(away_ms(record, from, to))).max();
    let gap_ms = gap.unwrap_or(end_ms);
    let (observed, limit) = (format!("gap of {}", millis(gap_ms)), millis(SAMPLE_GAP_MS));
    let because = match () {
        () if times.is_empty() => "the subject's resources were never sampled".to_owned(),
        () if gap_ms > SAMPLE_GAP_MS => format!("the subject's resources were not sampled for {}", millis(gap_ms)),
        () => {
            let text = format!("{} of the subject's resources.", counted(times.len() as u64, "sample"));
            findings.push(SAMPLES, Verdict::Pass, observed, limit, text);
            return;
        }
    };
    // A value that was measured too large was that large.
    let unmet = Unmet { name: SAMPLES, observed, limit, text: format!("{because}."), because };
    findings.unmet(unmet, Doubts::Met, |name, _| doubt::is_sampled(name) && name.section != "metrics");
}

/// Milliseconds from `from_ms` to `to_ms` in which no process of the subject ran because of a crash, so that there was
/// nothing to sample.
fn away_ms(record: &Record, from_ms: u64, to_ms: u64) -> u64 {
    let overlap = |row: &CrashRow| {
        let back_ms = row.t_ms.saturating_add(row.back_off_ms);
        back_ms.min(to_ms).saturating_sub(row.t_ms.max(from_ms))
    };
    record.crashes.iter().map(overlap).sum()
}

/// Judges suspensions of the machine and steps of the wall clock. Times are measured with a clock that stops while the
/// machine is suspended, so events and timers of that time are not measured. A step of the wall clock moves the
/// deadlines of programs that read it: tokens, certificates, leases.
fn judge_clocks(record: &Record, findings: &mut Findings) {
    let (mut slept, mut set) = (None, None);
    let (mut slept_ms, mut set_ms) = (0, 0);
    for sample in &record.samples {
        let (now_slept_ms, now_set_ms) = (sample.machine.suspended_ms, sample.machine.clock_set_ms);
        if let Some(now_ms) = now_slept_ms {
            let by_ms = now_ms.saturating_sub(slept_ms);
            slept = slept.or((by_ms >= CLOCK_STEP_MS).then_some((sample.t_ms, by_ms)));
            slept_ms = now_ms;
        }
        if let Some(now_ms) = now_set_ms {
            let by_ms = now_ms.saturating_sub(set_ms);
            set = set.or((by_ms.unsigned_abs() >= CLOCK_STEP_MS).then_some((sample.t_ms, by_ms)));
            set_ms = now_ms;
        }
    }
    // Budgets in seconds, or with waits in seconds. Contract violations are wrong at any time.
    let timed = |name: Name| {
        let never = matches!(
            name.key,
            "wrongVerdicts"
                | "unpinned"
                | "wrong"
                | "lost"
                | "letIn"
                | "regressed"
                | "phantom"
                | "resurrected"
                | "deletedByOthers"
        );
        !doubt::is_about_ends(name) && !doubt::is_sampled(name) && name.section != "registry" && !never
    };
    if let Some((t_ms, by_ms)) = slept {
        let (at, by) = (millis(t_ms), millis(by_ms));
        let because = format!("the machine was suspended for {by} at {at}");
        let text = format!("{because}, so times before and after do not belong together.");
        let unmet = Unmet { name: SUSPENDED, observed: by, limit: "never suspended".to_owned(), text, because };
        findings.unmet(unmet, Doubts::Either, |name, finding| {
            let open = timed(name) || (doubt::is_sampled(name) && name.key != "ceiling");
            open && !(finding.verdict == Verdict::Fail && stalls::is_whole_before(record, name, t_ms))
        });
    }
    if let Some((t_ms, by_ms)) = set {
        let (at, by) = (millis(t_ms), millis(by_ms.unsigned_abs()));
        let way = if by_ms > 0 { "forward" } else { "back" };
        let because = format!("the clock of the machine was set {way} by {by} at {at}");
        let text = format!("{because}; programs that read it saw time jump.");
        let observed = format!("{by} {way}");
        // A subject that reads that clock may have failed because of it; if it passed, it passed.
        let unmet = Unmet { name: CLOCK, observed, limit: "never set".to_owned(), text, because };
        findings.unmet(unmet, Doubts::Broken, |name, _| timed(name) && !stalls::is_whole_before(record, name, t_ms));
    }
}

fn note_pressure(record: &Record, findings: &mut Findings) {
    let mut cpu: Vec<f64> = record.samples.iter().filter_map(|sample| sample.machine.psi_cpu_some_pct).collect();
    cpu.sort_by(f64::total_cmp);
    if let Some(median) = cpu.get(cpu.len() / 2)
        && *median > PSI_CPU_PCT
    {
        let others = Busy::of(record).map(|busy| format!(", and {}", busy.clause())).unwrap_or_default();
        let text =
            format!("the machine was busy: tasks waited for a processor {median:.0} % of the time (median){others}.");
        findings.note(text);
    } else if let Some(busy) = Busy::of(record) {
        findings.note(busy.sentence());
    }
    let starts = record.samples.iter().filter_map(|sample| sample.subject).map(|process| process.starts).max();
    if let Some(starts @ 2..) = starts.filter(|_| record.crashes.is_empty()) {
        findings.note(format!("the subject was started {starts} times."));
    }
    let malformed: u64 = record.intervals.iter().map(|row| row.witness.malformed).sum();
    if malformed > 0 {
        let first = first_unreadable(record);
        findings.note(format!("{} of the witness could not be read{first}.", counted(malformed, "line")));
    }
}
