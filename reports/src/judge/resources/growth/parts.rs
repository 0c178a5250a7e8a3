//! The parts of a series in which one process was measured without a break.
//!
//! Owns where a series is cut: at each start of the subject, and at gaps. The time right after a start is the subject's
//! warm-up, and belongs to no part.

use super::amount::Amount;
use crate::growth;
use crate::judge::resources::{Life, anew, lives};
use crate::record::Record;
use crate::statistics::blocks::Series;
use crate::words::millis;

/// One of these parts.
pub(super) struct Part {
    pub(super) amount: Amount,
}

impl Part {
    pub(super) fn begin_s(&self) -> f64 {
        self.amount.t_s.first().copied().unwrap_or_default()
    }

    pub(super) fn end_s(&self) -> f64 {
        self.amount.t_s.last().copied().unwrap_or_default()
    }
}

/// All parts that have a sample, and the whole series if it has none.
pub(super) fn of(record: &Record, amount: &Amount) -> Vec<Part> {
    let mut parts = Vec::new();
    for life in lives(record) {
        let within = amount.between(life.from_ms as f64 / 1000.0, life.to_ms as f64 / 1000.0);
        let series = Series { t_s: &within.t_s, value: &within.value, axis: &within.t_s };
        parts.extend(growth::pieces(&series).into_iter().map(|range| Part { amount: within.at(range) }));
    }
    parts.retain(|part| !part.amount.t_s.is_empty());
    if parts.is_empty() { vec![Part { amount: amount.at(0..amount.t_s.len()) }] } else { parts }
}

/// The whole of each life that has a gap: growth across a gap is growth, though each side may be too short to decide.
pub(super) fn holed(record: &Record, amount: &Amount) -> Vec<Part> {
    let whole = |life: Life| {
        let within = amount.between(life.from_ms as f64 / 1000.0, life.to_ms as f64 / 1000.0);
        let series = Series { t_s: &within.t_s, value: &within.value, axis: &within.t_s };
        (growth::pieces(&series).len() > 1).then_some(Part { amount: within })
    };
    lives(record).into_iter().filter_map(whole).collect()
}

/// Why there is more than one part, as a clause that follows others.
pub(super) fn broken(record: &Record, amount: &Amount) -> String {
    if let Some(t_ms) = anew(record) {
        return format!("the subject was restarted at {}", millis(t_ms));
    }
    let longest = amount.t_s.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    format!("there are no samples for {longest:.0} s")
}

/// The reason in a word or two.
pub(super) fn observed(record: &Record) -> &'static str {
    if anew(record).is_some() { "restarted" } else { "not judged" }
}
