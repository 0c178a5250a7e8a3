//! The judge of the harness's own memory growth: a tool that finds leaks must not leak.
//!
//! Owns the condition `validity.harness`. The function that judges the subject's memory also judges the harness, but
//! only in runs that are long enough.

use std::collections::BTreeSet;

use super::doubt::condition;
use super::rule::Name;
use super::{Findings, Verdict};
use crate::growth::{self, Outcome, Question, length};
use crate::record::{FaultRow, Record};
use crate::statistics::blocks::Series;
use crate::words::bytes;

const HARNESS: Name = condition("harness");
/// The allowed growth of the harness's memory, in bytes per hour: a day of such growth does not disturb a small
/// machine. A run of about an hour can decide whether the harness grows faster.
const BYTES_PER_HOUR: f64 = 4.0 * 1_048_576.0;
const SECONDS_PER_HOUR: f64 = 3600.0;
/// The smallest scatter of the harness's memory that is assumed, in bytes; the same as for the subject.
const SIGMA_BYTES_LEAST: f64 = 65_536.0;

/// Adds no finding for a run that is too short: memory that is filled once looks like growth in every short run.
pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let planned_s = record.manifest.phases.steady_ms as f64 / 1000.0;
    if !length::decidable(planned_s, length::SIGMA_BYTES, length::TAU_S, BYTES_PER_HOUR / SECONDS_PER_HOUR) {
        return;
    }
    let samples = record.samples_in_turn().filter_map(|sample| Some((sample.t_ms, sample.harness?.rss_bytes)));
    let (t_s, value): (Vec<f64>, Vec<f64>) = samples.map(|(t_ms, rss)| (t_ms as f64 / 1000.0, rss as f64)).unzip();
    let hours: Vec<f64> = t_s.iter().map(|t_s| t_s / SECONDS_PER_HOUR).collect();
    let series = Series { t_s: &t_s, value: &value, axis: &hours };
    let (sigma_least, tau_least_s) = (SIGMA_BYTES_LEAST, length::TAU_S);
    let answer =
        growth::judge(&Question { series, budget: BYTES_PER_HOUR, planned_s, sigma_least, tau_least_s, looks: 1 });
    let Some(slope) = answer.slope else { return };
    let size = |bytes_per_hour: f64| {
        let sign = if bytes_per_hour < 0.0 { "-" } else { "" };
        format!("{sign}{}/h", bytes(whole(bytes_per_hour.abs())))
    };
    let grew = format!("{} (between {} and {})", size(slope.estimate), size(slope.lower), size(slope.upper));
    let limit = size(BYTES_PER_HOUR);
    match answer.outcome {
        Outcome::Pass => {
            let text = format!("the harness itself grew by {grew} with 95 % confidence on each side, within {limit}.");
            findings.push(HARNESS, Verdict::Pass, size(slope.estimate), limit, text);
        }
        // The mock's history is most of the harness's memory: refilling it looks like growth.
        Outcome::Fail if was_emptied(record) => findings.note(format!(
            "growth of the harness itself is not decided: {grew}, and faults emptied the mock's history, which then filled again."
        )),
        Outcome::Fail => {
            let text = format!(
                "the harness itself grew by {grew} with 95 % confidence on each side, more than {limit}, and takes memory from the \
                 subject. Please report this, with the record."
            );
            // The measurements of the subject stay valid.
            findings.push(HARNESS, Verdict::Inconclusive, size(slope.estimate), limit, text);
        }
        Outcome::Inconclusive { .. } | Outcome::Invalid { .. } => {
            findings.note(format!("growth of the harness itself is not decided: {grew}."));
        }
    }
}

/// Faults after which the mock API server drops its history and begins to fill it again.
const EMPTYING: &[&str] = &["compact", "watch-410", "rewind"];

/// Whether a fault of [`EMPTYING`] had an effect in the run.
fn was_emptied(record: &Record) -> bool {
    let struck = |row: &&FaultRow| row.hits > 0;
    let struck: BTreeSet<&str> = record.faults.iter().filter(struck).map(|row| row.id.as_str()).collect();
    let mut emptying = record.manifest.faults.iter().filter(|fault| EMPTYING.contains(&fault.name.as_str()));
    emptying.any(|fault| struck.contains(fault.id.as_str()))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, saturates at u64::MAX")]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

#[cfg(test)]
mod tests {
    use crate::example::{Example, Judged as _};
    use crate::judge::{Judgement, Verdict};
    use crate::record::Interval;

    const STEADY_S: u64 = 3 * 3600;

    /// The judgement of a run of three hours in which the harness grows by `bytes_per_s`. In this run, the last hour is
    /// sampled less densely.
    fn judgement_of(bytes_per_s: u64) -> Judgement {
        judgement_after(bytes_per_s, None)
    }

    /// Like [`judged`], with `fault` as the only fault.
    fn judgement_after(bytes_per_s: u64, fault: Option<&str>) -> Judgement {
        let mut example = Example::clean();
        if let Some(fault) = fault {
            example.manifest.faults[0].name = fault.to_owned();
        }
        example.manifest.phases.steady_ms = STEADY_S * 1000;
        // The requests of the example cover minutes: with them the subject would be blind for hours.
        (example.requests, example.manifest.budgets.requests) = (None, None);
        example.manifest.budgets.memory = Some(serde_json::from_str(r#"{"growth": "1MiB/h"}"#).unwrap());
        let (sample, row) = (example.samples[30].clone(), example.intervals[10].clone());
        let last = example.intervals.last().cloned().unwrap();
        let phase = |s: u64| if s < 10 { example.intervals[0].phase } else { row.phase };
        example.intervals = (0..STEADY_S / 5)
            .map(|n| Interval { start_ms: 5000 * n, end_ms: 5000 * (n + 1), phase: phase(5 * n), ..row.clone() })
            .collect();
        let end_ms = 1000 * STEADY_S;
        example.intervals.push(Interval { start_ms: end_ms, end_ms: end_ms + 1000, ..last });
        example.samples = (0..STEADY_S)
            .map(|s| {
                let mut sample = sample.clone();
                sample.t_ms = 1000 * s + 500;
                let wobble = 4096 * (s * 7919 % 131);
                sample.subject.as_mut().unwrap().rss_bytes = (40 << 20) + wobble;
                sample.harness.as_mut().unwrap().rss_bytes = (90 << 20) + wobble + s * bytes_per_s;
                sample
            })
            .collect();
        example.judged()
    }

    fn verdict(judgement: &Judgement, budget: &str) -> Option<Verdict> {
        judgement.findings.iter().find(|finding| finding.budget == budget).map(|finding| finding.verdict)
    }

    /// A harness that does not grow passes, although the last hour of the run has fewer samples. Samples that were kept
    /// only for their large resident set do not count.
    #[test]
    fn a_flat_harness_passes_and_a_leak_in_it_is_told() {
        let flat = judgement_of(0);
        assert_eq!(verdict(&flat, "memory.growth"), Some(Verdict::Pass), "{:?}", flat.findings);
        assert_eq!(verdict(&flat, "validity.harness"), Some(Verdict::Pass), "{:?}", flat.findings);
        let leak = judgement_of(8 << 10);
        assert_eq!(verdict(&leak, "validity.harness"), Some(Verdict::Inconclusive), "{:?}", leak.findings);
        assert_eq!(leak.verdict, Verdict::Inconclusive, "{}", leak.reason);
    }

    /// While the mock's history fills again after a fault, growth proves neither a leak nor its absence.
    #[test]
    fn growth_after_a_fault_that_empties_the_mock_is_not_decided() {
        let refilled = judgement_after(8 << 10, Some("compact"));
        assert_eq!(verdict(&refilled, "validity.harness"), None, "{:?}", refilled.findings);
        assert!(refilled.notes.iter().any(|note| note.contains("emptied the mock's history")), "{:?}", refilled.notes);
        assert_eq!(verdict(&judgement_after(0, Some("compact")), "validity.harness"), Some(Verdict::Pass));
    }
}
