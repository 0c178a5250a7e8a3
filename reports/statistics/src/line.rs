//! A straight line through a few points, by least squares, with two-sided 95 % intervals from Student's t.
//!
//! Use it if each point is one expensive measurement, so that there are too few points for robust methods.

use super::{Error, check};

/// Maximum number of points.
const MAX: usize = 10_000;
/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The quantile for more than 30 degrees of freedom.
const T_95_MANY: f64 = 2.0;

/// A fitted line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    pub intercept: f64,
    pub slope: f64,
    /// Half the width of the slope's interval; `None` with two points, because the line then fits exactly.
    pub slope_half: Option<f64>,
    /// Standard deviation of the points around the line.
    deviation: f64,
    quantile: f64,
    points: f64,
    mean_x: f64,
    squares: f64,
}

impl Line {
    /// The value of the line at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.slope.mul_add(x, self.intercept)
    }

    /// Half the width of the interval for one new measurement at `x`; `None` with two points.
    pub fn half_at(&self, x: f64) -> Option<f64> {
        self.slope_half?;
        let away = x - self.mean_x;
        Some(self.quantile * self.deviation * (1.0 + 1.0 / self.points + away * away / self.squares).sqrt())
    }
}

/// Fits a line. Needs two points with different `x`.
pub fn fit(x: &[f64], y: &[f64]) -> Result<Line, Error> {
    if x.len() != y.len() {
        return Err(Error::Unpaired { left: x.len(), right: y.len() });
    }
    check(x, 2, MAX)?;
    check(y, 2, MAX)?;
    let points = x.len() as f64;
    let mean_x = x.iter().sum::<f64>() / points;
    let mean_y = y.iter().sum::<f64>() / points;
    let squares: f64 = x.iter().map(|x| (x - mean_x) * (x - mean_x)).sum();
    if squares <= 0.0 {
        return Err(Error::Flat);
    }
    let slope = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / squares;
    let intercept = slope.mul_add(-mean_x, mean_y);
    let left: f64 = x.iter().zip(y).map(|(x, y)| (y - slope.mul_add(*x, intercept)).powi(2)).sum();
    let free = x.len() - 2;
    let deviation = if free == 0 { 0.0 } else { (left / free as f64).sqrt() };
    let quantile = if free == 0 { 0.0 } else { T_95.get(free - 1).copied().unwrap_or(T_95_MANY) };
    let slope_half = (free > 0).then(|| quantile * deviation / squares.sqrt());
    Ok(Line { intercept, slope, slope_half, deviation, quantile, points, mean_x, squares })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example was calculated by hand: y = 2x + 1 with one point a little off.
    #[test]
    fn a_line_and_its_interval() {
        let line = fit(&[0.0, 1.0, 2.0, 3.0], &[1.0, 3.0, 5.0, 7.4]).unwrap();
        assert!((line.slope - 2.12).abs() < 1e-9 && (line.intercept - 0.92).abs() < 1e-9, "{line:?}");
        let half = line.slope_half.unwrap();
        assert!((half - 0.298).abs() < 0.002, "{half}");
        assert!(line.half_at(30.0).unwrap() > 5.0 * line.half_at(1.5).unwrap(), "a forecast far away is less certain");
    }

    /// Two points give a line without an interval. Points with the same `x` give no line.
    #[test]
    fn too_few_points_give_no_interval() {
        let line = fit(&[0.0, 10.0], &[5.0, 25.0]).unwrap();
        assert_eq!((line.slope, line.intercept, line.slope_half, line.half_at(5.0)), (2.0, 5.0, None, None));
        assert!(matches!(fit(&[1.0, 1.0], &[2.0, 3.0]), Err(Error::Flat)));
    }
}
