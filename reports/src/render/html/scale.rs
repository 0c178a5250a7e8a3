//! Converts values to positions on an axis: linear and logarithmic scales with round ticks.
//!
//! Owns the position of a value, in percent of the plot, and the positions of ticks.

pub(super) use crate::words::whole;

/// The kind of an axis and its range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// A linear axis from zero.
    Linear {
        top: f64,
        /// The difference between two ticks.
        step: f64,
    },
    /// A linear axis that does not begin at zero, for values that are close together.
    Part {
        from: f64,
        to: f64,
        /// The difference between two ticks.
        step: f64,
    },
    /// A logarithmic axis of whole decades.
    Log {
        /// The exponent of ten at the start of the axis.
        from: i32,
        /// The exponent of ten at the end of the axis.
        to: i32,
    },
}

impl Scale {
    /// A linear axis from zero to a round number at or above `most`. Ticks are at round multiples of `unit`.
    pub fn linear(most: f64, unit: f64) -> Self {
        let most = (most / unit).max(1.0);
        let decade = 10f64.powf((most / 4.0).log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|n| n * decade).into_iter().find(|step| step * 4.0 >= most);
        let step = step.unwrap_or(decade * 10.0).max(if most >= 4.0 { 1.0 } else { 0.25 });
        Self::Linear { top: (most / step).ceil() * step * unit, step: step * unit }
    }

    /// A linear axis around the values `least` and `most`, with ticks at round multiples of `unit`. The range is a
    /// quarter wider than the values on both sides, and at least a fiftieth of the larger value, so that small
    /// differences look small.
    pub fn part(least: f64, most: f64, unit: f64) -> Self {
        let (least, most) = (least / unit, most / unit);
        let wide = (most - least).max(least.abs().max(most.abs()) / 50.0);
        let wide = if wide > 0.0 { wide } else { 1.0 };
        // Values that are never below zero have no ticks there.
        let lowest = if least >= 0.0 { 0.0 } else { f64::NEG_INFINITY };
        let (low, high) = ((least - wide / 4.0).max(lowest), most + wide / 4.0);
        let decade = 10f64.powf(((high - low) / 4.0).log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|n| n * decade).into_iter().find(|step| step * 4.0 >= high - low);
        let step = step.unwrap_or(decade * 10.0);
        Self::Part {
            from: (low / step).floor() * step * unit,
            to: (high / step).ceil() * step * unit,
            step: step * unit,
        }
    }

    /// A logarithmic axis of the whole decades that contain `least` and `most`, which must be positive.
    pub fn log(least: f64, most: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "decades of microseconds: -1 to 12")]
        let decade = |value: f64| value.max(1.0).log10().clamp(0.0, 12.0) as i32;
        let from = decade(least);
        let to = decade(most) + 1;
        Self::Log { from, to: to.max(from + 1) }
    }

    /// The position of a value, from 0 at the start of the axis to 100 at its end; never outside of the axis.
    pub fn percent(self, value: f64) -> f64 {
        let share = match self {
            Self::Linear { top, .. } => value / top,
            Self::Part { from, to, .. } => (value - from) / (to - from),
            Self::Log { from, to } => (value.max(1e-9).log10() - f64::from(from)) / f64::from(to - from),
        };
        share.clamp(0.0, 1.0) * 100.0
    }

    pub fn ticks(self) -> Vec<f64> {
        match self {
            Self::Linear { top, step } => {
                let mut ticks = vec![0.0];
                // Counted, so that no sum of fractions decides whether the last tick exists.
                for n in 1..=10 {
                    let tick = f64::from(n) * step;
                    if tick > top * 1.000_001 {
                        break;
                    }
                    ticks.push(tick);
                }
                ticks
            }
            Self::Part { from, to, step } => {
                let parts = whole((to - from) / step);
                // Of nine or ten every second is enough.
                let every = if parts > 6 { 2 } else { 1 };
                (0..=parts).step_by(every).map(|n| from + n as f64 * step).collect()
            }
            Self::Log { from, to } => (from..=to).map(|exponent| 10f64.powi(exponent)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(Scale::linear(93.0, 1.0).ticks(), [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(Scale::linear(26.0, 1.0).ticks(), [0.0, 10.0, 20.0, 30.0]);
        assert_eq!(Scale::linear(3.0, 1.0).ticks(), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(Scale::log(800.0, 45_000.0), Scale::Log { from: 2, to: 5 });
        assert_eq!(Scale::log(800.0, 45_000.0).ticks(), [100.0, 1000.0, 10_000.0, 100_000.0]);
    }

    #[test]
    fn a_part_holds_both_ends() {
        let part = Scale::part(812.0, 934.0, 1.0);
        assert_eq!(part, Scale::Part { from: 750.0, to: 1000.0, step: 50.0 });
        assert_eq!(part.ticks(), [750.0, 800.0, 850.0, 900.0, 950.0, 1000.0]);
        // Equal values, values around zero, and zero alone.
        for (least, most) in [(5.0, 5.0), (-300.0, 40.0), (0.0, 0.0)] {
            let part = Scale::part(least, most, 1.0);
            let places = [least, most].map(|value| part.percent(value));
            assert!(places.iter().all(|place| (0.0..=100.0).contains(place)) && part.ticks().len() > 1, "{part:?}");
        }
    }

    #[test]
    fn positions_stay_inside() {
        let log = Scale::log(100.0, 9999.0);
        let places = [100.0, 1000.0, 0.0, 1e9].map(|value| whole(log.percent(value)));
        assert_eq!(places, [0, 50, 0, 100]);
    }
}
