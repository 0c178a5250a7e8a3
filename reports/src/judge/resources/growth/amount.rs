//! An amount that may grow, such as memory: its values over time, and how its sizes are shown.

use crate::record::{Phase, Record};

/// An amount that may grow, with its values in the steady phase.
pub(in crate::judge::resources) struct Amount {
    /// The amount's name, as the subject of a sentence.
    pub what: String,
    pub t_s: Vec<f64>,
    pub value: Vec<f64>,
    /// The smallest scatter that is assumed, in the amount's unit.
    pub sigma_least: f64,
    /// Shows a size in the amount's unit. A size may be negative, less than one, or infinite.
    pub size: fn(f64) -> String,
}

impl Amount {
    /// The values of the steady phase, each with its time in milliseconds.
    pub(in crate::judge::resources) fn of(
        record: &Record,
        what: impl Into<String>,
        (sigma_least, size): (f64, fn(f64) -> String),
        values: impl Iterator<Item = (u64, f64)>,
    ) -> Self {
        let steady = values.filter(|(t_ms, _)| record.phase_at(*t_ms) == Phase::Steady);
        let (t_s, value) = steady.map(|(t_ms, value)| (t_ms as f64 / 1000.0, value)).unzip();
        Self { what: what.into(), t_s, value, sigma_least, size }
    }

    /// The amount with only the samples of these indexes.
    pub(super) fn at(&self, range: std::ops::Range<usize>) -> Self {
        let of = |list: &[f64]| list.get(range.clone()).map(<[f64]>::to_vec).unwrap_or_default();
        Self { what: self.what.clone(), t_s: of(&self.t_s), value: of(&self.value), ..*self }
    }

    /// The amount with only the samples between two times, in seconds.
    pub(super) fn between(&self, from_s: f64, to_s: f64) -> Self {
        self.at(self.t_s.partition_point(|t_s| *t_s < from_s)..self.t_s.partition_point(|t_s| *t_s <= to_s))
    }

    /// The time from the first to the last value, in seconds.
    pub(super) fn span_s(&self) -> f64 {
        self.t_s.last().zip(self.t_s.first()).map_or(0.0, |(last, first)| last - first)
    }
}
