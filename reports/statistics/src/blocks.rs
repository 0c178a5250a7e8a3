//! Reduces a series of samples to blocks that are nearly independent, so that the interval of a slope through the
//! blocks can be trusted.

use super::saw_tooth::{self, SawTooth};
use super::{Error, check, correlation, quantile, whole};

/// Minimum number of blocks through which a slope is fitted.
pub const BLOCKS_LEAST: usize = 12;
/// The desired number of blocks of a series: more blocks would be shorter and give no better slope.
pub const BLOCKS_AIM: usize = 24;
/// Minimum length of a block, in correlation times: neighbouring blocks then share about a tenth of their variance.
pub const TIMES_LEAST: f64 = 5.0;
/// Minimum length of a block, in periods of a saw-tooth (slow rise, sudden fall): each block then contains a whole
/// period with its true minimum.
pub const PERIODS_LEAST: f64 = 2.0;
/// Maximum number of points from which the correlation and the shape of a series are computed. A longer series is
/// reduced to medians: one point for each minute of a day, which is sixty for each of 24 blocks.
pub const POINTS_MAX: usize = 1440;
/// Maximum number of samples of a series: one a second for twelve days.
pub const SAMPLES_MAX: usize = 1 << 20;
/// A series is divided into this number of equal time ranges, and the median of their correlation times is used; see
/// [`correlation::robust`].
const PARTS: usize = 3;
/// The factor by which the correlation time of a time range is too short after its fitted parabola is subtracted. The
/// factor was measured with series of 150 correlation times.
const SHORT_OF: f64 = 1.3;
/// The time between two samples, in multiples of the usual time, above which the series has a gap between them.
pub const REACH: f64 = 3.0;
/// Minimum number of samples that can be reduced to blocks.
pub const SAMPLES_LEAST: usize = 2 * BLOCKS_LEAST;

/// A series of values, each with a time and a position on an axis, without missing values.
#[derive(Debug, Clone, Copy)]
pub struct Series<'a> {
    /// The times of the samples, in seconds, rising.
    pub t_s: &'a [f64],
    pub value: &'a [f64],
    /// The positions of the samples on the axis (hours, requests or objects), never falling.
    pub axis: &'a [f64],
}

/// The correlation time, scatter and saw-tooth shape of a series without its trends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nature {
    /// The correlation time, in seconds.
    pub tau_s: f64,
    /// The scatter of the values around a line, in the unit of the values.
    pub sigma: f64,
    pub saw_tooth: Option<SawTooth>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// The middle of the times of the block's samples, in seconds.
    pub t_s: f64,
    /// The median position of the block's samples on the axis.
    pub axis: f64,
    /// The minimum of the block's samples if the series has a saw-tooth shape, else their median.
    pub value: f64,
    pub samples: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Blocks {
    pub blocks: Vec<Block>,
    /// The length of each block, in seconds.
    pub length_s: f64,
    /// The correlation of a block with the next one, assuming a first-order autoregression.
    pub correlation: f64,
}

impl Series<'_> {
    /// Refuses values that are not finite, lists of different lengths, and falling times.
    pub fn check(&self) -> Result<(), Error> {
        for list in [self.value, self.axis] {
            if list.len() != self.t_s.len() {
                return Err(Error::Unpaired { left: self.t_s.len(), right: list.len() });
            }
            check(list, SAMPLES_LEAST, SAMPLES_MAX)?;
        }
        check(self.t_s, SAMPLES_LEAST, SAMPLES_MAX)?;
        match self.t_s.windows(2).zip(self.axis.windows(2)).position(|(t, a)| t[1] <= t[0] || a[1] < a[0]) {
            Some(index) => Err(Error::NotRising { index: index + 1 }),
            None => Ok(()),
        }
    }

    /// The time from the first to the last sample, in seconds; zero if there is no sample.
    pub fn span_s(&self) -> f64 {
        self.t_s.last().map_or(0.0, |last| last - self.t_s[0])
    }

    #[must_use]
    pub fn from(&self, t_s: f64) -> Self {
        let first = self.t_s.partition_point(|t| *t < t_s);
        Self { t_s: &self.t_s[first..], value: &self.value[first..], axis: &self.axis[first..] }
    }

    /// The series as at most [`POINTS_MAX`] points: time and median of equal time ranges. Gaps in the series are filled
    /// first, so that points are about equally far apart.
    pub fn thinned(&self) -> (Vec<f64>, Vec<f64>) {
        let (t_s, value) = self.filled();
        let each = t_s.len().div_ceil(POINTS_MAX).max(1);
        let middle = |part: &[f64]| part[part.len() / 2];
        let times = t_s.chunks(each).map(middle).collect();
        (times, value.chunks(each).map(quantile::median).collect())
    }

    /// The samples, with points on the line between the ends of each gap. Without points in its gaps, a series that
    /// grows evenly would jump at a gap and look like noise with a long correlation time. The number of added points is
    /// at most the number of samples.
    fn filled(&self) -> (Vec<f64>, Vec<f64>) {
        let distances: Vec<f64> = self.t_s.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let usual_s = if distances.is_empty() { 0.0 } else { quantile::median(&distances) };
        let missing = |distance_s: f64| {
            if distance_s > REACH * usual_s && usual_s > 0.0 {
                whole(distance_s / usual_s).saturating_sub(1)
            } else {
                0
            }
        };
        let most = self.t_s.len();
        if distances.iter().map(|distance_s| missing(*distance_s).min(most + 1)).sum::<usize>() > most {
            return (self.t_s.to_vec(), self.value.to_vec());
        }
        let (mut t_s, mut value) = (Vec::with_capacity(most), Vec::with_capacity(most));
        for (at, (time, one)) in self.t_s.iter().zip(self.value).enumerate() {
            t_s.push(*time);
            value.push(*one);
            let (Some(next), Some(other)) = (self.t_s.get(at + 1), self.value.get(at + 1)) else { continue };
            let points = missing(next - time);
            for point in 1..=points {
                let share = point as f64 / (points + 1) as f64;
                t_s.push(time + share * (next - time));
                value.push(one + share * (other - one));
            }
        }
        (t_s, value)
    }
}

/// Computes correlation time, scatter and saw-tooth shape of a series. The samples of the series must be about equally
/// far apart. O(n log n).
pub fn nature(series: &Series<'_>) -> Result<Nature, Error> {
    series.check()?;
    let (t_s, values) = series.thinned();
    let saw_tooth = saw_tooth::detect(&t_s, &values)?;
    let distance_s = series.span_s() / (t_s.len() - 1) as f64;
    let parts: Vec<&[f64]> = values.chunks_exact(values.len() / PARTS).take(PARTS).collect();
    let scatters: Vec<f64> = parts.iter().map(|part| quantile::scale(&correlation::without_parabola(part))).collect();
    // A periodic series has no correlation time of its own; blocks of whole periods account for that.
    let tau_s = match saw_tooth {
        Some(_) => 0.0,
        None => SHORT_OF * distance_s * correlation::robust(&values, PARTS)?,
    };
    Ok(Nature { tau_s, sigma: quantile::median(&scatters), saw_tooth })
}

/// Reduces a series to [`BLOCKS_AIM`] blocks. If the correlation time or saw-tooth shape of the series requires longer
/// blocks, the number may go down to [`BLOCKS_LEAST`]. Blocks with less than half of the usual number of samples are
/// left out. O(n log n).
pub fn reduce(series: &Series<'_>, nature: &Nature) -> Result<Blocks, Error> {
    series.check()?;
    let span_s = series.span_s();
    let period_s = nature.saw_tooth.map_or(0.0, |found| found.period_s);
    let least_s = (TIMES_LEAST * nature.tau_s).max(PERIODS_LEAST * period_s);
    let fit = if least_s > 0.0 { whole(span_s / least_s) } else { BLOCKS_AIM };
    let too_short = Error::TooShort { span_s, needed_s: least_s * BLOCKS_LEAST as f64 };
    if fit < BLOCKS_LEAST {
        return Err(too_short);
    }
    let number = fit.min(BLOCKS_AIM);
    let length_s = span_s / number as f64;
    let of = |t: f64| whole((t - series.t_s[0]) / length_s).min(number - 1);
    let usual = series.t_s.len() / number;
    let mut blocks = Vec::with_capacity(number);
    let mut start = 0;
    for index in 0..number {
        let end = start + series.t_s[start..].partition_point(|t| of(*t) <= index);
        let (times, values, axis) = (&series.t_s[start..end], &series.value[start..end], &series.axis[start..end]);
        if 2 * times.len() >= usual.max(1) {
            blocks.push(Block {
                t_s: quantile::median(times),
                axis: quantile::median(axis),
                value: match nature.saw_tooth {
                    Some(_) => values.iter().copied().fold(f64::INFINITY, f64::min),
                    None => quantile::median(values),
                },
                samples: times.len(),
            });
        }
        start = end;
    }
    if blocks.len() < BLOCKS_LEAST {
        return Err(Error::TooFew { found: blocks.len(), least: BLOCKS_LEAST });
    }
    Ok(Blocks { blocks, length_s, correlation: neighbours(nature.tau_s / length_s) })
}

impl Blocks {
    /// The factor by which the variance of Kendall's statistic exceeds that of independent values (Hamed & Rao, Journal
    /// of Hydrology 204, 1998). Only the first term of the sum in that paper is computed, because the others vanish at
    /// this length of blocks.
    pub fn inflation(&self) -> f64 {
        1.0 + 2.0 * self.correlation
    }
}

/// The correlation of the means of neighbouring blocks, for a first-order autoregression. `share` is the correlation
/// time divided by the length of a block.
fn neighbours(share: f64) -> f64 {
    if share <= 0.0 {
        return 0.0;
    }
    let left = 1.0 - (-1.0 / share).exp();
    let variance = 2.0 * share * (1.0 - share * left);
    (share * share * left * left / variance).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series<'a>(t_s: &'a [f64], value: &'a [f64]) -> Series<'a> {
        Series { t_s, value, axis: t_s }
    }

    #[test]
    fn blocks_are_as_many_as_the_nature_allows() {
        let t_s: Vec<f64> = (0..=2400).map(f64::from).collect();
        let of = |tau_s: f64, period_s: Option<f64>| {
            let saw_tooth = period_s.map(|period_s| SawTooth { period_s, height: 1.0, falls: 9 });
            reduce(&series(&t_s, &t_s), &Nature { tau_s, sigma: 1.0, saw_tooth })
        };
        assert_eq!(of(0.5, None).unwrap().blocks.len(), 24);
        assert_eq!(of(30.0, None).unwrap().blocks.len(), 16);
        assert_eq!(of(0.5, Some(90.0)).unwrap().blocks.len(), 13);
        assert_eq!(of(60.0, None), Err(Error::TooShort { span_s: 2400.0, needed_s: 3600.0 }));
        let minima = of(0.5, Some(10.0)).unwrap();
        assert!(minima.blocks[0].value.abs() < 1e-9, "the minimum: {minima:?}");
        let medians = of(0.5, None).unwrap();
        assert!((medians.blocks[0].value - 49.5).abs() < 1.0, "the median: {medians:?}");
        assert!(of(25.0, None).unwrap().inflation() > 1.2);
    }

    /// A gap in the series has no blocks. If too few blocks remain outside of gaps, [`reduce`] returns an error.
    #[test]
    fn holes_have_no_blocks() {
        let of = |keep: &dyn Fn(f64) -> bool| {
            let t_s: Vec<f64> = (0..=2400).map(f64::from).filter(|t| keep(*t)).collect();
            reduce(&series(&t_s, &t_s), &Nature { tau_s: 0.5, sigma: 1.0, saw_tooth: None })
        };
        assert_eq!(of(&|t| !(500.0..700.0).contains(&t)).unwrap().blocks.len(), 22);
        assert!(matches!(of(&|t| !(500.0..2000.0).contains(&t)), Err(Error::TooFew { found: 9, least: 12 })));
    }

    #[test]
    fn what_cannot_be_computed_is_refused() {
        let t_s: Vec<f64> = (0..100).map(f64::from).collect();
        let back: Vec<f64> = t_s.iter().rev().copied().collect();
        assert_eq!(nature(&series(&back, &t_s)), Err(Error::NotRising { index: 1 }));
        assert_eq!(nature(&series(&t_s, &[f64::NAN; 100])), Err(Error::NotFinite { index: 0 }));
        assert_eq!(nature(&series(&t_s, &[])), Err(Error::Unpaired { left: 100, right: 0 }));
        assert!(matches!(nature(&series(&[], &[])), Err(Error::TooFew { .. })));
    }
}
