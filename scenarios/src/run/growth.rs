//! The estimate of growth in the progress line: the expected verdict of each growth budget, and the time at which the
//! budget is decided.

use reports::judge::{Interim, SoFar, Verdict};
use reports::record::{Interval, Manifest, MetricsRow, Phase, Sample};
use reports::words::millis;

/// Interval of the estimates. An estimate takes milliseconds and hardly changes within a second.
const EVERY_MS: u64 = 30_000;

pub(super) struct Growth {
    so_far: Option<SoFar>,
    /// Planned length of the steady phase, in seconds.
    steady_s: f64,
    began_ms: Option<u64>,
    due_ms: u64,
    text: String,
}

impl Growth {
    pub(super) fn new(manifest: &Manifest) -> Self {
        let steady_s = manifest.phases.steady_ms as f64 / 1000.0;
        Self { so_far: SoFar::new(manifest), steady_s, began_ms: None, due_ms: 0, text: String::new() }
    }

    pub(super) fn sample(&mut self, sample: &Sample) {
        if let Some(so_far) = &mut self.so_far {
            so_far.sample(sample);
        }
    }

    pub(super) fn metrics(&mut self, row: &MetricsRow) {
        if let Some(so_far) = &mut self.so_far {
            so_far.metrics(row);
        }
    }

    pub(super) fn interval(&mut self, row: &Interval) {
        let Some(so_far) = &mut self.so_far else { return };
        so_far.interval(row);
        if row.phase != Phase::Steady || row.end_ms < self.due_ms {
            return;
        }
        self.due_ms = row.end_ms + EVERY_MS;
        let began_ms = *self.began_ms.get_or_insert(row.start_ms);
        let passed_s = row.end_ms.saturating_sub(began_ms) as f64 / 1000.0;
        let texts: Vec<String> = so_far.interims().iter().map(|one| text(one, passed_s, self.steady_s)).collect();
        self.text = texts.join(", ");
    }

    /// Text for the progress line; empty before the first estimate.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, saturates at u64::MAX")]
fn text(standing: &Interim, passed_s: f64, steady_s: f64) -> String {
    let key = standing.budget.rsplit('.').next().unwrap_or_default();
    let whole_s = |s: f64| millis(s.max(0.0) as u64 * 1000);
    let when = match (standing.verdict, standing.needed_s) {
        (Verdict::Inconclusive, Some(needed_s)) if needed_s > steady_s * 1.01 => {
            format!("needs {}", whole_s(needed_s))
        }
        (Verdict::Inconclusive, Some(needed_s)) => format!("decided in {}", whole_s(needed_s - passed_s)),
        (Verdict::Inconclusive, None) => "undecided".to_owned(),
        (verdict, _) => verdict.word().to_owned(),
    };
    format!("{key} {}: {when}", standing.observed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_when_it_will_be_decided() {
        let standing = |verdict, needed_s| Interim {
            budget: "memory.growth".to_owned(),
            verdict,
            observed: "2.1 MiB/h".to_owned(),
            needed_s,
        };
        let said = |verdict, needed_s| text(&standing(verdict, needed_s), 600.0, 3600.0);
        assert_eq!(said(Verdict::Inconclusive, Some(3600.0)), "growth 2.1 MiB/h: decided in 50 min");
        assert_eq!(said(Verdict::Inconclusive, Some(9000.0)), "growth 2.1 MiB/h: needs 2 h 30 min");
        assert_eq!(said(Verdict::Inconclusive, None), "growth 2.1 MiB/h: undecided");
        assert_eq!(said(Verdict::Fail, None), "growth 2.1 MiB/h: fail");
    }
}
