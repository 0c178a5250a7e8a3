//! Cuts a series of memory samples into time ranges in which one process was measured without a gap.
//!
//! Owns the rule for cutting: a series is cut at each start of the subject, and at gaps in its samples. The time right
//! after a start is warm-up and belongs to no time range.

use super::amount::Amount;
use crate::growth;
use crate::judge::resources::{Life, anew, lives};
use crate::record::Record;
use crate::statistics::blocks::Series;
use crate::words::millis;

/// A time range of a series in which one process was measured without a gap.
pub(super) struct Stretch {
    pub(super) amount: Amount,
}

impl Stretch {
    pub(super) fn begin_s(&self) -> f64 {
        self.amount.t_s.first().copied().unwrap_or_default()
    }

    pub(super) fn end_s(&self) -> f64 {
        self.amount.t_s.last().copied().unwrap_or_default()
    }
}

/// All time ranges that have a sample; the whole series if no time range has one.
pub(super) fn of(record: &Record, amount: &Amount) -> Vec<Stretch> {
    let mut parts = Vec::new();
    for life in lives(record) {
        let within = amount.between(life.from_ms as f64 / 1000.0, life.to_ms as f64 / 1000.0);
        let series = Series { t_s: &within.t_s, value: &within.value, axis: &within.t_s };
        parts.extend(growth::pieces(&series).into_iter().map(|range| Stretch { amount: within.at(range) }));
    }
    parts.retain(|part| !part.amount.t_s.is_empty());
    if parts.is_empty() { vec![Stretch { amount: amount.at(0..amount.t_s.len()) }] } else { parts }
}

/// All samples of each process after its warm-up, if these samples have gaps. Growth across a gap counts, although the
/// time before and the time after it may be too short to decide.
pub(super) fn holed(record: &Record, amount: &Amount) -> Vec<Stretch> {
    let whole = |life: Life| {
        let within = amount.between(life.from_ms as f64 / 1000.0, life.to_ms as f64 / 1000.0);
        let series = Series { t_s: &within.t_s, value: &within.value, axis: &within.t_s };
        (growth::pieces(&series).len() > 1).then_some(Stretch { amount: within })
    };
    lives(record).into_iter().filter_map(whole).collect()
}

/// Why a series has more than one time range, as a clause of a sentence.
pub(super) fn broken(record: &Record, amount: &Amount) -> String {
    if let Some(t_ms) = anew(record) {
        return format!("the subject was restarted at {}", millis(t_ms));
    }
    let longest = amount.t_s.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    format!("there are no samples for {longest:.0} s")
}

/// Why a series has more than one time range, in a word or two.
pub(super) fn observed(record: &Record) -> &'static str {
    if anew(record).is_some() { "restarted" } else { "not judged" }
}
