//! `memory.growth`, `memory.growthPerObject`: whether a run could decide that memory grows.
//!
//! It must not fit a line through raw samples: memory is autocorrelated, and that cries wolf in a third of clean runs. Until blocks
//! and a slope with an interval are there, growth is never a pass.

use units::{Bytes, Growth};

use super::{Memory, subject};
use crate::judge::rule::{Name, Rule};
use crate::judge::{Findings, Verdict, Word};
use crate::record::{Phase, Record};
use crate::words::millis;

/// The correlation time that the length of a run is planned with, in seconds. Measured on noisy two-core machines.
const TAU_S: f64 = 50.0;
/// The least scatter of memory that the plan believes in, in bytes: a page of noise would promise too short a run.
const SIGMA_BYTES_LEAST: f64 = 65_536.0;

/// `memory.growth`.
pub(super) struct Growing;

impl Rule for Growing {
    type Section = Memory;
    type Limit = Growth;
    const KEY: &'static str = "growth";
    const DOC: &'static str = "How much the resident set may grow with time at a constant population.";
    const WORD: Option<Word> = Some(Word::Leak);

    fn judge(record: &Record, (): &(), limit: &Growth, findings: &mut Findings) {
        let per_second = limit.bytes_per_hour as f64 / 3600.0;
        judge_growth(record, findings, Name::of::<Self>(), per_second, &limit.to_string());
    }
}

/// `memory.growthPerObject`.
pub(super) struct PerObject;

impl Rule for PerObject {
    type Section = Memory;
    type Limit = Bytes;
    const KEY: &'static str = "growthPerObject";
    const DOC: &'static str = "How much the resident set may grow with each distinct object that has come and gone.";
    const WORD: Option<Word> = Some(Word::Leak);

    fn judge(record: &Record, (): &(), limit: &Bytes, findings: &mut Findings) {
        let per_second = limit.0 as f64 * objects_per_second(record);
        judge_growth(record, findings, Name::of::<Self>(), per_second, &format!("{limit}/object"));
    }
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
fn judge_growth(record: &Record, findings: &mut Findings, name: Name, budget_bytes_per_second: f64, limit: &str) {
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
