//! The judge of resources: ceilings over the run, growth of descriptors, and whether a run could decide growth of memory.
//!
//! Owns `memory.*`, `descriptors.*` and `threads.*`. It must not fit a line through raw samples: memory is autocorrelated,
//! and that cries wolf in a third of clean runs. Until blocks and a slope with an interval are there, growth is never a pass.

use super::{Findings, Verdict};
use crate::record::{Phase, Process, Record};
use crate::words::{bytes, count, millis};

/// Descriptors are compared over windows of at most this length, at the ends of warm-up and of the steady phase.
const WINDOW_MS: u64 = 30_000;
/// Samples that a window needs for its median.
const WINDOW_SAMPLES: usize = 3;
/// The correlation time that the length of a run is planned with, in seconds. Measured on noisy two-core machines.
const TAU_S: f64 = 50.0;
/// The least scatter of memory that the plan believes in, in bytes: a page of noise would promise too short a run.
const SIGMA_BYTES_LEAST: f64 = 65_536.0;

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let budgets = &record.manifest.budgets;
    if let Some(memory) = &budgets.memory {
        if let Some(ceiling) = memory.ceiling {
            judge_ceiling(record, findings, "memory.ceiling", "resident set", ceiling.0, bytes, |p| p.rss_bytes);
        }
        if let Some(growth) = memory.growth {
            let per_second = growth.bytes_per_hour as f64 / 3600.0;
            judge_growth(record, findings, "memory.growth", per_second, &growth.to_string());
        }
        if let Some(growth) = memory.growth_per_object {
            let rate = objects_per_second(record);
            judge_growth(
                record,
                findings,
                "memory.growthPerObject",
                growth.0 as f64 * rate,
                &format!("{growth}/object"),
            );
        }
    }
    if let Some(descriptors) = &budgets.descriptors {
        if let Some(ceiling) = descriptors.ceiling {
            let read = |p: &Process| p.fds.total();
            judge_ceiling(record, findings, "descriptors.ceiling", "number of open descriptors", ceiling, count, read);
        }
        if let Some(limit) = descriptors.growth {
            judge_descriptor_growth(record, limit, findings);
        }
    }
    if let Some(ceiling) = budgets.threads.as_ref().and_then(|threads| threads.ceiling) {
        judge_ceiling(record, findings, "threads.ceiling", "number of threads", ceiling, count, |p| p.threads);
    }
}

/// Time and process of every sample of the subject.
fn subject(record: &Record) -> impl Iterator<Item = (u64, Process)> {
    record.samples.iter().filter_map(|sample| Some((sample.t_ms, sample.subject?)))
}

fn judge_ceiling(
    record: &Record,
    findings: &mut Findings,
    name: &str,
    what: &str,
    ceiling: u64,
    words: fn(u64) -> String,
    read: impl Fn(&Process) -> u64,
) {
    // The first time that it was reached.
    let values = subject(record).map(|(t_ms, process)| (read(&process), t_ms));
    let Some((largest, t_ms)) = values.max_by_key(|(value, t_ms)| (*value, std::cmp::Reverse(*t_ms))) else {
        let text = format!("the {what} was never sampled.");
        findings.push(name, Verdict::Inconclusive, "no samples", words(ceiling), text);
        return;
    };
    let broken = largest > ceiling;
    let text = format!(
        "the {what} reached {} at {}, {} the ceiling of {}.",
        words(largest),
        millis(t_ms),
        if broken { "over" } else { "within" },
        words(ceiling)
    );
    findings.push(name, if broken { Verdict::Fail } else { Verdict::Pass }, words(largest), words(ceiling), text);
}

fn judge_descriptor_growth(record: &Record, limit: u64, findings: &mut Findings) {
    let window = |phase: Phase| -> Option<Process> {
        let of_phase: Vec<_> = subject(record).filter(|(t_ms, _)| record.phase_at(*t_ms) == phase).collect();
        let (first, last) = (of_phase.first()?.0, of_phase.last()?.0);
        let from = last.saturating_sub(WINDOW_MS.min((last - first) / 2));
        let mut tail: Vec<Process> = of_phase.into_iter().filter(|(t, _)| *t >= from).map(|(_, p)| p).collect();
        tail.sort_by_key(|process| process.fds.total());
        (tail.len() >= WINDOW_SAMPLES).then(|| tail[tail.len() / 2])
    };
    let (Some(before), Some(after)) = (window(Phase::WarmUp), window(Phase::Steady)) else {
        let text = format!("{WINDOW_SAMPLES} samples at the end of warm-up and of the steady phase would decide it.");
        findings.push("descriptors.growth", Verdict::Inconclusive, "too few samples", count(limit), text);
        return;
    };
    let grown = after.fds.total().saturating_sub(before.fds.total());
    let classes = [
        ("sockets", before.fds.socket, after.fds.socket),
        ("files", before.fds.file, after.fds.file),
        ("pipes", before.fds.pipe, after.fds.pipe),
        ("others", before.fds.other, after.fds.other),
    ];
    let parts: Vec<String> = classes
        .iter()
        .filter(|(_, before, after)| before != after)
        .map(|(name, before, after)| format!("{name} {before} → {after}"))
        .collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let text = format!(
        "open descriptors went from {} at the end of warm-up to {} at the end of the steady phase{parts}.",
        before.fds.total(),
        after.fds.total()
    );
    let verdict = if grown > limit { Verdict::Fail } else { Verdict::Pass };
    findings.push("descriptors.growth", verdict, count(grown), count(limit), text);
}

/// Distinct objects a second in the steady phase.
fn objects_per_second(record: &Record) -> f64 {
    let steady: Vec<(u64, u64)> = record
        .intervals
        .iter()
        .filter(|row| row.phase == Phase::Steady)
        .filter_map(|row| Some((row.end_ms, row.churn.as_ref()?.objects_total)))
        .collect();
    match (steady.first(), steady.last()) {
        (Some((start_ms, before)), Some((end_ms, after))) if end_ms > start_ms => {
            (after - before.min(after)) as f64 / ((end_ms - start_ms) as f64 / 1000.0)
        }
        _ => 0.0,
    }
}

/// Says how long a run would decide growth: `T ≥ (2.5 σ √(24 τ) / B)^(2/3)`.
fn judge_growth(record: &Record, findings: &mut Findings, name: &str, budget_bytes_per_second: f64, limit: &str) {
    let steady: Vec<(f64, f64)> = subject(record)
        .filter(|(t_ms, _)| record.phase_at(*t_ms) == Phase::Steady)
        .map(|(t_ms, process)| (t_ms as f64 / 1000.0, process.rss_bytes as f64))
        .collect();
    let ran_s = steady.last().map_or(0.0, |last| last.0) - steady.first().map_or(0.0, |first| first.0);
    let sigma = scatter(&steady).max(SIGMA_BYTES_LEAST);
    let text = if budget_bytes_per_second <= 0.0 {
        format!("no length of run decides a budget of {limit} at this churn.")
    } else {
        let needed_s = (2.5 * sigma * (24.0 * TAU_S).sqrt() / budget_bytes_per_second).powf(2.0 / 3.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, saturates at u64::MAX")]
        let (ran, needed) = (millis(ran_s as u64 * 1000), millis(needed_s as u64 * 1000));
        if ran_s < needed_s {
            format!(
                "too short: the steady phase ran for {ran}, with this scatter of memory about {needed} would decide {limit}."
            )
        } else {
            format!("the run was long enough ({ran}, {needed} needed), but growth is not decided by this version.")
        }
    };
    findings.push(name, Verdict::Inconclusive, "not decided", limit, text);
}

/// The scatter round a straight line, in the unit of the second coordinate.
fn scatter(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    if points.len() < 3 {
        return 0.0;
    }
    let mean = |read: fn(&(f64, f64)) -> f64| points.iter().map(read).sum::<f64>() / n;
    let (mean_t, mean_v) = (mean(|p| p.0), mean(|p| p.1));
    let covariance: f64 = points.iter().map(|(t, v)| (t - mean_t) * (v - mean_v)).sum();
    let variance: f64 = points.iter().map(|(t, _)| (t - mean_t).powi(2)).sum();
    let slope = if variance > 0.0 { covariance / variance } else { 0.0 };
    let residuals: f64 = points.iter().map(|(t, v)| (v - mean_v - slope * (t - mean_t)).powi(2)).sum();
    (residuals / (n - 2.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scatter_ignores_a_slope() {
        let line: Vec<(f64, f64)> = (0..100).map(|i| (f64::from(i), f64::from(i) * 7.0)).collect();
        assert!(scatter(&line) < 1e-6);
        let noisy: Vec<(f64, f64)> = (0..100).map(|i| (f64::from(i), f64::from(i % 2) * 2.0)).collect();
        assert!((scatter(&noisy) - 1.0).abs() < 0.02, "{}", scatter(&noisy));
    }
}
