//! The judge of the run itself: may its numbers be believed?
//!
//! Owns `validity.*` and `subject.exited`. It must not look at what the subject did right or wrong: a subject that crashes
//! fails, a harness that could not do its work makes the run invalid.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::Name;
use super::{Findings, Verdict, Word, admission, api, events, harness, requests};
use crate::budgets::{Events, Memory, Requests};
use crate::record::{CrashRow, EndReason, FaultEvent, FaultRow, Phase, PlannedFault, Record, quantile_us, tag};
use crate::words::{count, counted, micros, millis, percent};

/// The judge that conditions of validity name.
pub(super) const JUDGE: &str = "validity";
/// Share of the planned requests that must have been sent.
const SENT_LEAST: f64 = 0.99;
/// The 99th percentile of the generator's own lateness, in microseconds, above which latency is the generator's.
const LATENESS_P99_US: u64 = 10_000;
/// Churn that fell behind its plan by more than this took that time from the subject, which is promised at least 5 s for an
/// observation.
const CHURN_LATE_MS: u64 = 2500;
/// The longest time without a sample of the subject.
const SAMPLE_GAP_MS: u64 = 30_000;
/// A harness that writes a row every 5 s and once needed longer than this stood still for as much as the least deadline of an
/// observation: what came meanwhile was heard late, and of the rest nobody can tell whether it would have come.
const INTERVAL_MS_MAX: u64 = 10_000;
/// A machine that slept for as much, or a wall clock that was set by as much, between two samples is told, in milliseconds. A clock
/// that is set right little by little takes the clock that times are measured with along, and is not seen.
const CLOCK_STEP_MS: u64 = 1000;
/// Of the drawn faults of one name so many must be hit, or each that was not spoils the run: where they strike is a lot, and one may strike
/// a subject that is not back yet from the one before.
const LOT_HIT_LEAST: f64 = 0.75;
/// Where there are more faults, those that were hit are told by name.
const FAULTS_EACH: usize = 100;
/// Pressure on the processor, in percent of time, that is worth a note.
const PSI_CPU_PCT: f64 = 50.0;

// The conditions, and what is said of a subject that breaks one; most say nothing of it.
pub(super) const COMPLETED: Name = condition("completed");
const WHOLE: Name = condition("record");
const INTERVALS: Name = condition("intervals");
const PACE: Name = condition("pace");
const LATENESS: Name = condition("lateness");
const WITNESS: Name = condition("witness");
const SAMPLES: Name = condition("samples");
const SUSPENDED: Name = condition("suspended");
const CLOCK: Name = condition("clock");
const ADMISSION_RATE: Name = condition("admissionRate");
const CALL_RATE: Name = condition("callRate");
const CALL_LATENESS: Name = condition("callLateness");
const CHURN_RATE: Name = condition("churnRate");
/// One for each fault, by its identifier.
pub(super) const FAULT: Name = Name {
    // The probe after a fault was lost.
    word: Some(Word::Missed),
    ..condition("fault")
};
const EXITED: Name = Name { judge: "subject", section: "subject", key: "exited", word: Some(Word::Crashed) };

/// What is judged of the subject without a budget.
#[cfg(test)]
pub(super) const WITHOUT_BUDGET: [Name; 2] = [FAULT, EXITED];

pub(super) const fn condition(key: &'static str) -> Name {
    Name { judge: JUDGE, section: JUDGE, key, word: None }
}

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let exited = judge_end(record, findings);
    judge_lost(record, findings);
    judge_intervals(record, findings);
    judge_rate(record, findings);
    judge_lateness(record, findings);
    judge_churn_lateness(record, findings);
    judge_faults(record, exited, findings);
    judge_witness(record, exited, findings);
    judge_samples(record, findings);
    judge_clocks(record, findings);
    harness::judge(record, findings);
    note_pressure(record, findings);
}

/// Whether the subject ended early, and everything about how the run ended.
fn judge_end(record: &Record, findings: &mut Findings) -> bool {
    let Some(end) = &record.end else {
        let text = format!("the harness was killed; the record reaches to {}.", millis(record.length_ms()));
        findings.push(COMPLETED, Verdict::Invalid, "killed", "completed", text);
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
        EndReason::SubjectNotReady { detail } => ("not ready", format!("the subject was never ready: {detail}")),
        EndReason::WitnessSilent { .. } if never_asked(findings) => {
            let text =
                format!("all phases ran, {at} in all. Nothing came through the witness of a subject that did not ask.");
            findings.push(COMPLETED, Verdict::Pass, "completed", "completed", text);
            return false;
        }
        EndReason::WitnessSilent { detail } => {
            ("witness silent", format!("nothing came through the witness: {detail}"))
        }
        EndReason::HarnessError { detail } => ("harness error", format!("the harness failed at {at}: {detail}")),
    };
    findings.push(COMPLETED, Verdict::Invalid, observed, "completed", text);
    false
}

/// A subject that stopped asking had nothing to prove: its silence is no riddle.
fn never_asked(findings: &Findings) -> bool {
    requests::gave_up(findings)
}

/// What a full disk took from the record may be what would have decided.
fn judge_lost(record: &Record, findings: &mut Findings) {
    let Some(lost) = record.end.as_ref().and_then(|end| end.lost) else { return };
    let until = lost.to_ms.map_or_else(|| "the end".to_owned(), millis);
    let rows = counted(lost.rows, "row");
    let text = format!(
        "the disk was full: of what happened from {} to {until} {rows} of the record were lost. Free the disk, or write \
         elsewhere with `--out`, and run it again.",
        millis(lost.from_ms)
    );
    findings.push(WHOLE, Verdict::Invalid, format!("{rows} lost"), "whole", text);
}

fn judge_intervals(record: &Record, findings: &mut Findings) {
    if record.intervals.is_empty() {
        let text = "not one interval was recorded, so there is nothing to judge.";
        findings.push(INTERVALS, Verdict::Invalid, "0", "at least 1", text);
        return;
    }
    // Rows are written one after the other; a hole means that the harness stood still or the file is damaged.
    let hole = record.intervals.windows(2).find(|pair| pair[1].start_ms > pair[0].end_ms + 1000);
    if let Some([before, after]) = hole {
        let text = format!("nothing was recorded from {} to {}.", millis(before.end_ms), millis(after.start_ms));
        let hole = millis(after.start_ms - before.end_ms);
        findings.push(INTERVALS, Verdict::Invalid, format!("hole of {hole}"), "no hole", text);
    }
    let longest = record.intervals.iter().max_by_key(|row| row.end_ms.saturating_sub(row.start_ms));
    // It can only make a subject look worse than it is: one that passed all the same has passed.
    if let Some(row) = longest.filter(|_| findings.broken_below::<Events>() || findings.broken_below::<Requests>()) {
        let length_ms = row.end_ms.saturating_sub(row.start_ms);
        if length_ms > INTERVAL_MS_MAX {
            let text = format!(
                "the harness did not keep up: one of its intervals, from {} to {}, should have taken 5 s. What it says about \
                 the subject's events proves nothing; run it again on a quieter machine or with fewer `--jobs`.",
                millis(row.start_ms),
                millis(row.end_ms)
            );
            let limit = format!("at most {}", millis(INTERVAL_MS_MAX));
            findings.push(PACE, Verdict::Invalid, millis(length_ms), limit, text);
        }
    }
}

fn judge_rate(record: &Record, findings: &mut Findings) {
    let admission = record.intervals.iter().filter_map(|row| row.admission.as_ref());
    let (planned, sent) = admission.fold((0, 0), |sum, row| (sum.0 + row.planned, sum.1 + row.sent));
    judge_share(findings, ADMISSION_RATE, "reviews", planned, sent);
    let calls = record.intervals.iter().filter_map(|row| row.calls.as_ref());
    let (planned, sent) = calls.fold((0, 0), |sum, row| (sum.0 + row.planned, sum.1 + row.sent));
    judge_share(findings, CALL_RATE, "calls", planned, sent);
    let churn = record.intervals.iter().filter_map(|row| row.churn.as_ref());
    let (planned, done) = churn
        .fold((0, 0), |sum, row| (sum.0 + row.planned, sum.1 + row.created + row.updated + row.deleted + row.failed));
    judge_share(findings, CHURN_RATE, "object changes", planned, done);
}

fn judge_share(findings: &mut Findings, name: Name, what: &str, planned: u64, done: u64) {
    if planned == 0 {
        return;
    }
    let share = done as f64 / planned as f64;
    let text = format!("{} of {} planned {what} were sent ({}).", count(done), count(planned), percent(share));
    let (verdict, text) = if share >= SENT_LEAST {
        (Verdict::Pass, text)
    } else {
        (Verdict::Invalid, format!("{text} The generator was off its rate, so the load is not the one planned."))
    };
    findings.push(name, verdict, percent(share), format!("at least {}", percent(SENT_LEAST)), text);
}

/// Lateness is part of the response time, so it can break a latency budget but never meet one: only where a budget is broken may the
/// generator be the guilty one.
fn judge_lateness(record: &Record, findings: &mut Findings) {
    let reviews = admission::slow(findings);
    judge_lateness_of(record, findings, LATENESS, tag::LATENESS, "reviews", reviews);
    let calls = api::slow(findings);
    judge_lateness_of(record, findings, CALL_LATENESS, tag::CALLS_LATENESS, "calls", calls);
}

fn judge_lateness_of(record: &Record, findings: &mut Findings, name: Name, tag: &str, what: &str, blamed: bool) {
    let Some(lateness) = record.latency.in_phase(tag, Phase::Steady) else { return };
    let Some(p99_us) = quantile_us(lateness, 990) else { return };
    let (verdict, text) = if p99_us <= LATENESS_P99_US {
        (Verdict::Pass, "the generator kept its time.".to_owned())
    } else if blamed {
        let text = format!(
            "the generator itself started 1 % of the {what} more than {} late, so latencies are not the subject's alone.",
            micros(p99_us)
        );
        (Verdict::Invalid, text)
    } else {
        let text = format!(
            "the generator itself started 1 % of the {what} more than {} late; no latency budget was broken all the same.",
            micros(p99_us)
        );
        (Verdict::Pass, text)
    };
    findings.push(name, verdict, micros(p99_us), micros(LATENESS_P99_US), text);
}

/// Changes that come late leave the subject less time before the end, and come closer together than planned.
fn judge_churn_lateness(record: &Record, findings: &mut Findings) {
    let lateness = record.intervals.iter().filter_map(|row| row.churn.as_ref()?.lateness.as_ref());
    let late_ms = lateness.map(|lateness| lateness.max_us / 1000).max().unwrap_or(0);
    // Like a slow interval: a subject that passed all the same has passed.
    if late_ms > CHURN_LATE_MS && (findings.broken_below::<Events>() || findings.broken_below::<Memory>()) {
        let text = format!(
            "object changes fell {} behind their plan, so the subject had less time for them than planned. What is said of its \
             events and memory proves nothing; run it again on a quieter machine or with fewer `--jobs`.",
            millis(late_ms)
        );
        findings.push(PACE, Verdict::Invalid, millis(late_ms), format!("at most {}", millis(CHURN_LATE_MS)), text);
    }
}

fn judge_faults(record: &Record, exited: bool, findings: &mut Findings) {
    let rows = record.fault_rows();
    let never_hit = never_hit(record).len();
    let many = record.manifest.faults.len() > FAULTS_EACH;
    let lots = lots(record);
    let mut survived: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for fault in &record.manifest.faults {
        let rows = rows.get(fault.id.as_str()).map_or(&[][..], Vec::as_slice);
        let ended = rows.iter().any(|row| row.event == FaultEvent::Ended);
        // The subject was gone before the fault had its chance.
        if exited && !ended {
            continue;
        }
        // The run was over before its time: who never began it is the reader, not the subject.
        let begun = rows.iter().any(|row| row.event != FaultEvent::Planned);
        if !begun && fault.at_ms > record.length_ms() {
            continue;
        }
        judge_fault(record, fault, (rows, lots.get(fault.name.as_str()).filter(|_| fault.drawn)), never_hit, findings);
        // What went well is told once for each name where there are many.
        if many && findings.judged.pop_if(|(_, finding)| finding.verdict == Verdict::Pass).is_some() {
            let (faults, hits) = survived.entry(&fault.name).or_default();
            *faults += 1;
            *hits += rows.iter().map(|row| row.hits).max().unwrap_or(0);
        }
    }
    for (name, (faults, hits)) in survived {
        let times = counted(faults, "time");
        let missed = lots.get(name).map_or(0, |lot| lot.struck - lot.hit);
        let hit = if missed == 0 { "each time".to_owned() } else { format!("{} times", count(faults - missed)) };
        let text =
            format!("the fault {name} struck {times} and was really hit {hit} ({} in all).", counted(hits, "hit"));
        findings.push(FAULT.below(name), Verdict::Pass, counted(hits, "hit"), "at least 1 each", text);
    }
}

/// How often the drawn faults of one name began, and how often they had something to hit.
#[derive(Debug, Default)]
struct Lot {
    struck: u64,
    hit: u64,
}

/// The drawn faults by their names.
fn lots(record: &Record) -> BTreeMap<&str, Lot> {
    let hit = hit(record);
    let began = record.faults.iter().filter(|row| row.event == FaultEvent::Started);
    let began: BTreeSet<&str> = began.map(|row| row.id.as_str()).collect();
    let mut lots: BTreeMap<&str, Lot> = BTreeMap::new();
    for fault in record.manifest.faults.iter().filter(|fault| fault.drawn && began.contains(fault.id.as_str())) {
        let lot = lots.entry(&fault.name).or_default();
        lot.struck += 1;
        lot.hit += u64::from(hit.contains(fault.id.as_str()));
    }
    lots
}

/// The planned faults that had no effect, for whatever reason.
pub(super) fn never_hit(record: &Record) -> Vec<&PlannedFault> {
    let hit = hit(record);
    record.manifest.faults.iter().filter(|fault| !hit.contains(fault.id.as_str())).collect()
}

/// The faults that had an effect.
fn hit(record: &Record) -> BTreeSet<&str> {
    record.faults.iter().filter(|row| row.hits > 0).map(|row| row.id.as_str()).collect()
}

fn judge_fault(
    record: &Record,
    fault: &PlannedFault,
    (rows, lot): (&[&FaultRow], Option<&Lot>),
    never_hit: usize,
    findings: &mut Findings,
) {
    let name = FAULT.below(&fault.id);
    let hits = rows.iter().map(|row| row.hits).max().unwrap_or(0);
    let unhealthy = |event: FaultEvent| rows.iter().find(|row| row.event == event && row.ok == Some(false)).copied();
    let says = |row: &FaultRow| row.detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
    if hits == 0
        && let Some(lot) = lot.filter(|lot| lot.hit as f64 >= LOT_HIT_LEAST * lot.struck as f64)
    {
        let (hit, struck) = (count(lot.hit), count(lot.struck));
        let text = format!(
            "the drawn fault {} found nothing that it could act on; {hit} of the {struck} of its name that struck were hit.",
            fault.detail
        );
        findings.push(name, Verdict::Pass, "0 hits", format!("{} of its name", percent(LOT_HIT_LEAST)), text);
    } else if hits == 0 {
        let begun = rows.iter().any(|row| row.event == FaultEvent::Started);
        let why = if begun {
            "while it was active no request and no watch of the subject gave it anything to act on"
        } else {
            "what it waits for never happened"
        };
        let text =
            format!("the fault {} was never hit: {why}. The run does not show how the subject takes it.", fault.detail);
        // A subject that lost its watch for good, stopped asking, or broke a promise under an earlier fault, leaves later faults
        // nothing to hit. What it did is a fact all the same.
        let blind = events::gave_up(findings) || requests::gave_up(findings);
        let guilty = lost(record) || blind || (never_hit < record.manifest.faults.len() && findings.any_broken());
        let verdict = if guilty { Verdict::Inconclusive } else { Verdict::Invalid };
        findings.push(name, verdict, "0 hits", "at least 1", text);
    } else if let Some(row) = unhealthy(FaultEvent::CanaryBefore) {
        let text = format!("the probe before the fault {} was not healthy{}.", fault.name, says(row));
        findings.push(name, Verdict::Invalid, "not healthy before", "healthy", text);
    } else if let Some(row) = unhealthy(FaultEvent::CanaryAfter) {
        // Either the subject lost the probe, then it also lost events and the judge of events says so, or it saw it later.
        let verdict = if lost(record) { Verdict::Fail } else { Verdict::Pass };
        let text =
            format!("the fault {} was hit, and the probe after it was not seen in its time{}.", fault.name, says(row));
        findings.push(name, verdict, counted(hits, "hit"), "at least 1", text);
    } else {
        let text = format!("the fault {} was really hit ({}).", fault.name, counted(hits, "time"));
        findings.push(name, Verdict::Pass, counted(hits, "hit"), "at least 1", text);
    }
}

/// Whether the subject lost events for good.
fn lost(record: &Record) -> bool {
    let counts = record.totals();
    counts.missed + counts.ghost > 0
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
    let (verdict, text) = match () {
        // A subject that was gone before it proved anything has failed by itself.
        () if lines == 0 && counts.observations == 0 && counts.commits > 0 && !exited && !excused => {
            let text = format!(
                "the {} witness carried nothing: it cannot be told from a blind subject.",
                record.manifest.witness
            );
            (Verdict::Invalid, text)
        }
        () if record.manifest.witness_tolerates.is_some_and(|most| malformed > most) => {
            let most = record.manifest.witness_tolerates.unwrap_or_default();
            let text = format!(
                "{} of the witness could not be read, and {} {} tolerated{first}.",
                counted(malformed, "line"),
                count(most),
                if most == 1 { "is" } else { "are" }
            );
            (Verdict::Invalid, text)
        }
        () if record.manifest.witness_tolerates.is_none() && malformed > 0 && counts.missed + counts.ghost > 0 => {
            let text = format!(
                "{} of the witness could not be read, so what looks missed may have been observed{first}.",
                counted(malformed, "line")
            );
            (Verdict::Invalid, text)
        }
        () => (
            Verdict::Pass,
            format!("{} came through the witness, {} unreadable{first}.", counted(lines, "line"), count(malformed)),
        ),
    };
    findings.push(WITNESS, verdict, format!("{} unreadable", count(malformed)), "readable", text);
}

/// The first line that could not be read, where the record has it.
fn first_unreadable(record: &Record) -> String {
    let example = record.intervals.iter().find_map(|row| row.witness.example.as_deref());
    example.map(|example| format!("; first: {example}")).unwrap_or_default()
}

/// Whether a fault that was hit had begun before anything was committed: then a subject that proved nothing may be blind, and the
/// witness need not be broken.
fn struck_first(record: &Record) -> bool {
    let hit = hit(record);
    let started = record.faults.iter().filter(|row| row.event == FaultEvent::Started && hit.contains(row.id.as_str()));
    let committed = record.anomalies.iter().filter_map(|row| row.committed_ms);
    match (started.map(|row| row.t_ms).min(), committed.min()) {
        (Some(started_ms), Some(committed_ms)) => started_ms <= committed_ms,
        _ => false,
    }
}

fn judge_samples(record: &Record, findings: &mut Findings) {
    let budgets = &record.manifest.budgets;
    // What nobody can see is inconclusive by itself.
    if record.manifest.subject.unsampled.is_some() {
        return;
    }
    if budgets.memory.is_none() && budgets.descriptors.is_none() && budgets.threads.is_none() {
        return;
    }
    let times: Vec<u64> = record.samples.iter().filter(|row| row.subject.is_some()).map(|row| row.t_ms).collect();
    let end_ms = record.intervals.last().map_or(0, |row| row.end_ms);
    let bounds = times.iter().copied().chain([end_ms]);
    let gaps = std::iter::once(0).chain(times.iter().copied()).zip(bounds);
    let gap = gaps.map(|(from, to)| to.saturating_sub(from).saturating_sub(away_ms(record, from, to))).max();
    let gap_ms = gap.unwrap_or(end_ms);
    let (verdict, text) = match () {
        () if times.is_empty() => (Verdict::Invalid, "the subject's resources were never sampled.".to_owned()),
        () if gap_ms > SAMPLE_GAP_MS => {
            (Verdict::Invalid, format!("the subject's resources were not sampled for {}.", millis(gap_ms)))
        }
        () => (Verdict::Pass, format!("{} of the subject's resources.", counted(times.len() as u64, "sample"))),
    };
    findings.push(SAMPLES, verdict, format!("gap of {}", millis(gap_ms)), millis(SAMPLE_GAP_MS), text);
}

/// For how long of this time a process that had crashed waited to be started again: there was nothing to sample.
fn away_ms(record: &Record, from_ms: u64, to_ms: u64) -> u64 {
    let overlap = |row: &CrashRow| {
        let back_ms = row.t_ms.saturating_add(row.back_off_ms);
        back_ms.min(to_ms).saturating_sub(row.t_ms.max(from_ms))
    };
    record.crashes.iter().map(overlap).sum()
}

/// Times are measured with a clock that stands still while the machine is suspended: what came to the subject meanwhile, and what its
/// own timers made of it, is not in them. A wall clock that is set moves the deadlines of whoever reads that one: tokens,
/// certificates, leases.
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
    if let Some((t_ms, by_ms)) = slept {
        let (at, by) = (millis(t_ms), millis(by_ms));
        let text =
            format!("the machine was suspended for {by} at {at}, so times before and after do not belong together.");
        findings.push(SUSPENDED, Verdict::Invalid, by, "never suspended", text);
    }
    if let Some((t_ms, by_ms)) = set {
        let (at, by) = (millis(t_ms), millis(by_ms.unsigned_abs()));
        let way = if by_ms > 0 { "forward" } else { "back" };
        let text = format!("the clock of the machine was set {way} by {by} at {at}; what reads it saw time jump.");
        findings.push(CLOCK, Verdict::Invalid, format!("{by} {way}"), "never set", text);
    }
}

fn note_pressure(record: &Record, findings: &mut Findings) {
    let mut cpu: Vec<f64> = record.samples.iter().filter_map(|sample| sample.machine.psi_cpu_some_pct).collect();
    cpu.sort_by(f64::total_cmp);
    if let Some(median) = cpu.get(cpu.len() / 2)
        && *median > PSI_CPU_PCT
    {
        let text =
            format!("the machine was busy: tasks waited for a processor during {median:.0} % of the time (median).");
        findings.note(text);
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
