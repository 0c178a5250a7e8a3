//! Judges whether other programs kept the machine busy, and which delays they can explain.
//!
//! Owns the condition `validity.machine`, and the sentence about the machine in the reason of an undecided run. If a
//! time is above its limit by less than a certain factor, other programs that use the processors may be the reason. A
//! time above that factor is the subject's fault. A busy machine raises no count, so budgets that counts have broken
//! stay broken. A record without the processors' time shows nothing about other programs.

use super::condition;
use super::stalls::{self, Stall};
use crate::judge::Finding;
use crate::judge::doubt::{Doubts, Unmet};
use crate::judge::rule::{Findings, Name, Verdict};
use crate::ledger::Outcome;
use crate::record::{AdmissionRow, EndReason, Process, Record, Sample, quantile_us, tag};
use crate::words::{millis, percent};

pub(super) const MACHINE: Name = condition("machine");
/// The fraction of the processors used by other programs from which a machine counts as busy. If other programs use
/// this fraction, everything takes twice as long.
const OTHERS_LEAST: f64 = 0.5;
/// The time window, in milliseconds, in which the load of other programs is measured. One second would be only a few
/// time slices of the scheduler.
const WINDOW_MS: u64 = 5000;
/// Minimum number of samples for a statement about the machine's load.
const SAMPLES_LEAST: usize = 6;
/// The largest slowdown, as a factor, that is attributed to other programs.
const SLOWER_MOST: f64 = 10.0;
/// The largest delay above a limit that other programs may have caused, in medians of the latency. A longer delay means
/// that the subject sleeps, or does not read a watch.
const SLACK_MEDIANS: u64 = 50;
const SLACK_LEAST_MS: u64 = 1000;
/// The upper bound of the delay above a limit, in milliseconds, however high the median is: the shortest deadline of an
/// observation.
const SLACK_MOST_MS: u64 = 5000;
/// The fraction of busy time in a run that is enough to affect a percentile, because all samples beyond the percentile
/// may lie in the busy time. Each percentile has a constant.
const P50_LEAST: f64 = 0.25;
const P99_LEAST: f64 = 0.005;

/// The times in which other programs kept the machine busy, and how busy it was.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::judge) struct Busy {
    /// The busy times of the machine, in order of time.
    stalls: Vec<Stall>,
    /// The largest fraction of the processors' time that other programs used in one time window.
    worst: f64,
    /// The fraction of the processors' time that other programs used in the whole run.
    whole: f64,
    /// The fraction of the run in which the machine was busy.
    time: f64,
}

impl Busy {
    /// Computes the busy times of the machine; none if it was not busy, or if its load is unknown.
    pub(in crate::judge) fn of(record: &Record) -> Option<Self> {
        let samples = &record.samples;
        let (first, last) = (samples.first()?, samples.last()?);
        if samples.len() < SAMPLES_LEAST {
            return None;
        }
        let whole = others(first, last)?;
        let (mut stalls, mut worst): (Vec<Stall>, f64) = (Vec::new(), whole);
        let mut from = first;
        for sample in samples {
            if sample.t_ms.saturating_sub(from.t_ms) < WINDOW_MS {
                continue;
            }
            let share = others(from, sample).unwrap_or(0.0);
            if share >= OTHERS_LEAST {
                worst = worst.max(share);
                match stalls.last_mut().filter(|stall| stall.to_ms == from.t_ms) {
                    Some(stall) => stall.to_ms = sample.t_ms,
                    None => stalls.push(Stall { from_ms: from.t_ms, to_ms: sample.t_ms }),
                }
            }
            from = sample;
        }
        let length_ms = last.t_ms.saturating_sub(first.t_ms).max(1);
        let busy_ms: u64 = stalls.iter().map(|stall| stall.to_ms - stall.from_ms).sum();
        let time = busy_ms as f64 / length_ms as f64;
        (whole >= OTHERS_LEAST || !stalls.is_empty()).then_some(Self { stalls, worst, whole, time })
    }

    /// Whether the machine was busy throughout the run.
    fn is_whole(&self) -> bool {
        self.whole >= OTHERS_LEAST
    }

    /// The largest factor by which other programs can have slowed the machine.
    fn slower(&self) -> f64 {
        (1.0 / (1.0 - self.worst.min(0.99))).min(SLOWER_MOST)
    }

    /// A clause of a sentence with the percentage of the processors that other programs used, and the busy times.
    pub(super) fn clause(&self) -> String {
        match self.stalls.iter().max_by_key(|stall| stall.to_ms - stall.from_ms) {
            Some(stall) if !self.is_whole() => format!(
                "other programs had up to {} of the processors' time from {} to {}",
                percent(self.worst),
                millis(stall.from_ms),
                millis(stall.to_ms)
            ),
            _ => format!("other programs had {} of the processors' time", percent(self.whole)),
        }
    }

    pub(in crate::judge) fn sentence(&self) -> String {
        format!("The machine was busy: {}.", self.clause())
    }
}

/// The fraction of the processors' time between two samples that neither subject nor harness used; none if unknown.
fn others(from: &Sample, to: &Sample) -> Option<f64> {
    let passed = |read: fn(&Sample) -> Option<u64>| Some(read(to)?.saturating_sub(read(from)?));
    let busy_ms = passed(|sample| sample.machine.busy_ms)?;
    let idle_ms = passed(|sample| sample.machine.idle_ms)?;
    let stolen_ms = passed(|sample| sample.machine.steal_ms).unwrap_or(0);
    let all_ms = (busy_ms + idle_ms + stolen_ms) as f64;
    let own_ms = used_ms(from.subject, to.subject) + used_ms(from.harness, to.harness);
    (all_ms > 0.0).then(|| (busy_ms.saturating_sub(own_ms) + stolen_ms) as f64 / all_ms)
}

/// The processor time that a process used between two samples. If the process was started again, all its time counts.
/// If one of the samples lacks the process, the result is 0.
fn used_ms(from: Option<Process>, to: Option<Process>) -> u64 {
    let (Some(before), Some(after)) = (from.map(|process| process.cpu_ms), to.map(|process| process.cpu_ms)) else {
        return 0;
    };
    after.checked_sub(before).unwrap_or(after)
}

/// Makes each broken budget undecided whose excess other programs can explain.
pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let Some(busy) = Busy::of(record) else { return };
    let clause = busy.clause();
    let unmet = Unmet {
        name: MACHINE,
        observed: percent(busy.worst),
        limit: format!("less than {} for other programs", percent(OTHERS_LEAST)),
        text: format!("{clause}, so slow calls may have waited for them; run it again on a quieter machine."),
        because: clause,
    };
    // If no time is over its limit, the note on the machine is enough.
    if findings.any_broken_by(|name, finding| busy.excuses(record, name, finding)) {
        findings.unmet(unmet, Doubts::Broken, |name, finding| busy.excuses(record, name, finding));
    }
}

impl Busy {
    /// Whether other programs may be the reason that this budget was broken.
    fn excuses(&self, record: &Record, name: Name, finding: &Finding) -> bool {
        let within = || finding.used_pct.is_none_or(|pct| f64::from(pct) <= 100.0 * self.slower());
        match (name.section, name.key) {
            ("admission" | "api", "p50") => self.time >= P50_LEAST && within(),
            ("admission" | "api", "p99") | ("events", "lagP99") => self.time >= P99_LEAST && within(),
            ("admission" | "api", "p999") => within(),
            ("api", "staleness") => stale_within(record, finding),
            ("events", "heal") => heals_within(record),
            ("events", "late") => self.late_else(record) <= late_limit(record),
            ("admission", "errors") => failed_else(record) <= error_limit(record) && waited_no_longer(record),
            _ => false,
        }
    }

    /// Number of observations that were late for another reason: the machine was not busy, or they were later than
    /// other programs explain.
    fn late_else(&self, record: &Record) -> u64 {
        let slack_ms = slack_ms(record);
        let late = record.anomalies.iter().filter(|row| matches!(row.outcome, Outcome::Late | Outcome::LateGhost));
        let own = late.filter(|row| {
            let from_ms = row.committed_ms.unwrap_or(row.t_ms);
            let deadline_ms = stalls::deadline_ms(record, from_ms);
            let took_ms = row.observed_ms.unwrap_or(row.t_ms).saturating_sub(from_ms);
            let apart = self.stalls.iter().all(|stall| from_ms + deadline_ms < stall.from_ms || from_ms > stall.to_ms);
            apart || took_ms > deadline_ms + slack_ms
        });
        own.count() as u64
    }
}

/// The delay of an observation, in milliseconds, that other programs can have caused.
fn slack_ms(record: &Record) -> u64 {
    slack_of_ms(record, tag::LAG)
}

/// The delay of a latency, given by its tag, that other programs can have caused, in milliseconds.
fn slack_of_ms(record: &Record, of: &str) -> u64 {
    let latency = record.latency.whole(of);
    let median_us = latency.as_ref().and_then(|latency| quantile_us(latency, 500)).unwrap_or(0);
    (SLACK_MEDIANS * median_us / 1000).clamp(SLACK_LEAST_MS, SLACK_MOST_MS)
}

/// Whether other programs can explain how far the limit on the time of outdated versions (`events.heal`) was exceeded.
fn heals_within(record: &Record) -> bool {
    let limit = record.manifest.budgets.events.as_ref().and_then(|events| events.heal);
    let longest_us = record.latency.whole(tag::HEAL).filter(|heal| !heal.is_empty()).map_or(0, |heal| heal.max());
    limit.is_some_and(|limit| longest_us / 1000 <= limit.as_millis() + slack_ms(record))
}

/// Whether other programs can explain how far the limit on the age of an answer was exceeded.
fn stale_within(record: &Record, finding: &Finding) -> bool {
    let limit = record.manifest.budgets.api.as_ref().and_then(|api| api.staleness);
    limit.zip(finding.used_pct).is_some_and(|(limit, pct)| {
        let beyond_ms = limit.as_millis() * u64::from(pct.saturating_sub(100)) / 100;
        beyond_ms <= slack_ms(record)
    })
}

fn late_limit(record: &Record) -> u64 {
    record.manifest.budgets.events.as_ref().and_then(|events| events.late).unwrap_or(0)
}

/// Number of reviews that failed for another reason than a timeout.
fn failed_else(record: &Record) -> u64 {
    let failed = |row: &AdmissionRow| row.http_error + row.connect + row.tls + row.invalid_response;
    record.intervals.iter().filter_map(|row| row.admission.as_ref()).map(failed).sum()
}

/// Whether other programs can be the reason that reviews failed. Other programs are no reason if even the shortest wait
/// for an answer was longer than they and a late generator can have caused. A review that hangs until its timeout fails
/// on any machine.
fn waited_no_longer(record: &Record) -> bool {
    let failed = record.latency.whole(tag::RESPONSE_ERROR).filter(|failed| !failed.is_empty());
    let most_ms = slack_of_ms(record, tag::RESPONSE_ALLOWED) + SLACK_LEAST_MS;
    failed.is_none_or(|failed| failed.min() / 1000 <= most_ms)
}

fn error_limit(record: &Record) -> u64 {
    record.manifest.budgets.admission.as_ref().and_then(|admission| admission.errors).unwrap_or(0)
}

/// If a constantly busy machine may explain failed conditions of validity, makes the run undecided instead of invalid:
/// another machine can decide it.
pub(super) fn spare(record: &Record, may_be: &[Name], findings: &mut Findings) {
    if !Busy::of(record).is_some_and(|busy| busy.is_whole()) {
        return;
    }
    let waited = matches!(
        record.end.as_ref().map(|end| &end.reason),
        Some(EndReason::SubjectNotReady { waited_ms: Some(_), .. } | EndReason::NeverAsked { .. })
    );
    for (name, finding) in &mut findings.judged {
        let may = may_be.contains(name) || (*name == super::COMPLETED && waited);
        if may && finding.verdict == Verdict::Invalid {
            finding.verdict = Verdict::Inconclusive;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::example::{Example, Judged as _};
    use crate::judge::{Judgement, Verdict};
    use crate::record::{End, EndReason, tag};

    /// In the example, other programs use the fraction `share` of a machine with two processors, in these seconds.
    fn busy(example: &mut Example, share: f64, seconds: std::ops::Range<u64>) {
        let (mut busy_ms, mut idle_ms) = (0, 0);
        for sample in &mut example.samples {
            let second = sample.t_ms / 1000;
            // The subject of the example uses 80 ms of each second.
            let others_ms = if seconds.contains(&second) { crate::words::whole(2000.0 * share) } else { 20 };
            busy_ms += 80 + others_ms;
            idle_ms += 2000 - (80 + others_ms).min(2000);
            (sample.machine.busy_ms, sample.machine.idle_ms) = (Some(busy_ms), Some(idle_ms));
        }
    }

    fn verdict(judgement: &Judgement, budget: &str) -> Verdict {
        judgement.findings.iter().find(|finding| finding.budget == budget).unwrap().verdict
    }

    /// If the lag on a busy machine exceeds its limit by no more than other programs can cause, the result is
    /// undecided, and the text names the machine. A larger lag breaks the budget, and on a quiet machine any lag above
    /// the limit does.
    #[test]
    fn what_is_slow_on_a_busy_machine_is_undecided_and_names_it() {
        let slow = |lag_us: u64, share: f64| {
            let mut example = Example::clean();
            example.record(tag::LAG, 20_000, lag_us, 30_000);
            busy(&mut example, share, 0..200);
            example.judged()
        };
        let quiet = slow(3_000_000, 0.1);
        assert_eq!(verdict(&quiet, "events.lagP99"), Verdict::Fail, "{:?}", quiet.crossed());
        let pressed = slow(3_000_000, 0.8);
        assert_eq!(verdict(&pressed, "events.lagP99"), Verdict::Inconclusive, "{:?}", pressed.crossed());
        assert_eq!(pressed.verdict, Verdict::Inconclusive);
        assert!(
            pressed.reason.contains("because other programs had 80 % of the processors' time"),
            "{}",
            pressed.reason
        );
        let far = slow(60_000_000, 0.8);
        assert_eq!(far.verdict, Verdict::Fail, "{:?}", far.crossed());
    }

    /// A watch that received nothing for half a minute did not wait for a processor.
    #[test]
    fn what_slept_is_not_excused_by_a_busy_machine() {
        let healed = |us: u64| {
            let mut example = Example::clean();
            example.record(tag::HEAL, 60_000, us, 1);
            busy(&mut example, 0.9, 0..200);
            verdict(&example.judged(), "events.heal")
        };
        assert_eq!(healed(90_000_000), Verdict::Fail);
        assert_eq!([healed(60_400_000), healed(50_000_000)], [Verdict::Inconclusive, Verdict::Pass]);
    }

    /// If other reviews were answered within milliseconds, a review that hung until its timeout did not wait for a
    /// processor.
    #[test]
    fn a_review_that_hung_fails_on_a_busy_machine_too() {
        let timed_out = |us: u64| {
            let mut example = Example::clean();
            example.intervals[10].admission.as_mut().unwrap().timeout = 3;
            example.record(tag::RESPONSE_ERROR, 50_000, us, 3);
            busy(&mut example, 0.9, 0..200);
            verdict(&example.judged(), "admission.errors")
        };
        assert_eq!([timed_out(10_000_000), timed_out(1_100_000)], [Verdict::Fail, Verdict::Inconclusive]);
    }

    /// A slow machine changes no count: a lost event counts as lost, and a clean run passes.
    #[test]
    fn what_is_counted_fails_and_passes_on_a_busy_machine_as_on_another() {
        let judged = |spoil: fn(&mut Example)| {
            let mut example = Example::clean();
            spoil(&mut example);
            busy(&mut example, 0.9, 0..200);
            example.judged()
        };
        let lost = judged(|e| e.miss(2, 61_000));
        assert_eq!(lost.verdict, Verdict::Fail, "{:?}", lost.crossed());
        let clean = judged(|_| {});
        assert_eq!(clean.verdict, Verdict::Pass, "{:?}", clean.crossed());
        assert!(clean.notes.iter().any(|note| note.contains("other programs had 90 %")), "{:?}", clean.notes);
    }

    /// If a run is undecided for another reason, the text names the machine's load, even if the machine was busy only
    /// for a while.
    #[test]
    fn an_undecided_run_names_the_machine() {
        let mut example = Example::clean();
        example.samples[60..100].iter_mut().for_each(|sample| sample.subject = None);
        example.manifest.budgets.memory = Some(serde_json::from_str(r#"{"ceiling": "1GiB"}"#).unwrap());
        busy(&mut example, 0.8, 60..100);
        let judgement = example.judged();
        assert_eq!(judgement.verdict, Verdict::Inconclusive, "{:?}", judgement.crossed());
        assert!(judgement.reason.contains("The machine was busy: other programs had up to 8"), "{}", judgement.reason);
    }

    /// On a busy machine, the run of a subject that was not ready in time is undecided. A subject that ended by itself
    /// has failed.
    #[test]
    fn a_subject_that_was_not_ready_in_time_is_undecided_there() {
        let ended = |waited_ms: Option<u64>, share: f64| {
            let mut example = Example::clean();
            let reason = EndReason::SubjectNotReady { detail: "it has sent no request".into(), waited_ms };
            example.end = Some(End { ended_ms: 90_000, reason, lost: None, holes: Vec::new() });
            busy(&mut example, share, 0..200);
            example.judged().verdict
        };
        assert_eq!(ended(Some(60_000), 0.9), Verdict::Inconclusive);
        assert_eq!([ended(Some(60_000), 0.1), ended(None, 0.9)], [Verdict::Invalid; 2]);
    }
}
