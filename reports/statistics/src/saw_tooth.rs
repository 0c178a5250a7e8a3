//! Finds the saw-tooth shape that a garbage collector gives to memory: it rises slowly and falls suddenly, again and
//! again.

use super::{Error, check, correlation, quantile, sorted};

pub const VALUES_MAX: usize = 1 << 16;
/// A change of direction counts only if the values then move by at least this fraction of their spread. A smaller
/// movement of the values is noise.
const TURN: f64 = 0.5;
/// Minimum number of falls of a saw-tooth shape.
const FALLS_LEAST: usize = 5;
/// How many times longer a rise must take than a fall. The rises and falls of noise take the same time, because noise
/// is the same forwards and backwards.
const RISE_PER_FALL: f64 = 4.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SawTooth {
    /// The median time from one fall to the next, in seconds.
    pub period_s: f64,
    /// The median height of a fall, in the unit of the values.
    pub height: f64,
    pub falls: usize,
}

/// Finds a saw-tooth shape in values at these times, in seconds; none if the values do not have it. A fitted straight
/// line is subtracted first, so that the saw-tooth shape is also found while a program leaks. O(n log n).
pub fn detect(t_s: &[f64], values: &[f64]) -> Result<Option<SawTooth>, Error> {
    if t_s.len() != values.len() {
        return Err(Error::Unpaired { left: t_s.len(), right: values.len() });
    }
    check(t_s, 8, VALUES_MAX)?;
    check(values, 8, VALUES_MAX)?;
    let left = correlation::without_line(values);
    let ordered = sorted(&left);
    let spread = quantile::of_sorted(&ordered, 0.95) - quantile::of_sorted(&ordered, 0.05);
    if spread <= 0.0 {
        return Ok(None);
    }
    let turns = turns(&left, TURN * spread);
    let (mut rises, mut falls, mut heights, mut troughs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // The first and the last piece are cut off by the ends of the series.
    for pair in turns.windows(2) {
        let took = t_s[pair[1]] - t_s[pair[0]];
        let by = left[pair[1]] - left[pair[0]];
        if by > 0.0 {
            rises.push(took);
        } else {
            falls.push(took);
            heights.push(-by);
            troughs.push(t_s[pair[1]]);
        }
    }
    if falls.len() < FALLS_LEAST || quantile::median(&rises) < RISE_PER_FALL * quantile::median(&falls) {
        return Ok(None);
    }
    let periods: Vec<f64> = troughs.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (period_s, height) = (quantile::median(&periods), quantile::median(&heights));
    Ok(Some(SawTooth { period_s, height, falls: falls.len() }))
}

/// The indices of tops and bottoms, alternating, between which the values move by at least `least`.
fn turns(values: &[f64], least: f64) -> Vec<usize> {
    let (mut turns, mut top, mut bottom) = (Vec::new(), 0, 0);
    let mut rising = None;
    for (index, value) in values.iter().enumerate() {
        if *value > values[top] {
            top = index;
        }
        if *value < values[bottom] {
            bottom = index;
        }
        if rising != Some(false) && values[top] - value >= least {
            turns.push(top);
            (rising, bottom) = (Some(false), index);
        } else if rising != Some(true) && value - values[bottom] >= least {
            turns.push(bottom);
            (rising, top) = (Some(true), index);
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn teeth(period: u32, leak: f64) -> (Vec<f64>, Vec<f64>) {
        (0..600).map(|i| (f64::from(i), f64::from(i % period) + leak * f64::from(i))).unzip()
    }

    #[test]
    fn teeth_are_found_with_their_period_and_other_shapes_are_none() {
        for leak in [0.0, 0.1] {
            let (t_s, values) = teeth(50, leak);
            let found = detect(&t_s, &values).unwrap().unwrap();
            assert!((found.period_s - 50.0).abs() < 1.5 && (found.height - 49.0).abs() < 2.0, "{found:?}");
        }
        let (t_s, values) = teeth(200, 0.0);
        assert_eq!(detect(&t_s, &values), Ok(None), "three teeth are no habit");
        let turned: Vec<f64> = teeth(50, 0.0).1.into_iter().rev().collect();
        assert_eq!(detect(&t_s, &turned), Ok(None), "sudden rises are not a collector's");
        let wave: Vec<f64> = t_s.iter().map(|t| (t / 8.0).sin()).collect();
        assert_eq!(detect(&t_s, &wave), Ok(None));
        assert_eq!(detect(&t_s, &[5.0; 600]), Ok(None));
    }

    #[test]
    fn what_cannot_be_computed_is_refused() {
        assert_eq!(detect(&[1.0], &[1.0]), Err(Error::TooFew { found: 1, least: 8 }));
        assert_eq!(detect(&[1.0], &[]), Err(Error::Unpaired { left: 1, right: 0 }));
        assert_eq!(detect(&[1.0; 8], &[f64::NAN; 8]), Err(Error::NotFinite { index: 0 }));
    }
}
