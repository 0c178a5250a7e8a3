//! The Theil–Sen slope, with Sen's confidence interval.

use super::{Error, check, check_confidence, normal, quantile, sorted, whole};

/// Maximum number of points of all strata together, between which half a million slopes are computed.
pub const POINTS_MAX: usize = 1024;

/// A slope in units of y for each unit of x, with two one-sided bounds at the stated confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// The median of the slopes between any two points.
    pub estimate: f64,
    /// The lower bound; negative infinity if there are too few points.
    pub lower: f64,
    /// The upper bound; infinity if there are too few points.
    pub upper: f64,
}

/// A group of points: slopes are computed only between points of the same group.
#[derive(Debug, Clone, Copy)]
pub struct Stratum<'a> {
    pub x: &'a [f64],
    pub y: &'a [f64],
}

/// The median of the slopes between any two points (Theil 1950) with the interval of Sen (1968, equation 2.6; Hollander
/// & Wolfe, *Nonparametric Statistical Methods*, section 9.3). Ties in x and y are taken into account. O(n² log n).
///
/// `inflation` multiplies the variance of Kendall's statistic: 1 for independent points, more for autocorrelated points
/// (Hamed & Rao, Journal of Hydrology 204, 1998).
pub fn slope(x: &[f64], y: &[f64], confidence: f64, inflation: f64) -> Result<Slope, Error> {
    stratified(&[Stratum { x, y }], confidence, inflation)
}

/// Like [`slope`], but only slopes between points of one stratum count. Differences between strata, such as the levels
/// before and after a sudden step, therefore have no effect (the seasonal test of Hirsch, Slack & Smith, Water
/// Resources Research 18, 1982).
pub fn stratified(strata: &[Stratum<'_>], confidence: f64, inflation: f64) -> Result<Slope, Error> {
    check_confidence(confidence)?;
    if !(inflation >= 1.0 && inflation.is_finite()) {
        return Err(Error::OutOfRange { what: "the inflation", value: inflation });
    }
    let found = strata.iter().map(|stratum| stratum.x.len()).sum();
    if found > POINTS_MAX {
        return Err(Error::TooMany { found, most: POINTS_MAX });
    }
    let (mut slopes, mut variance) = (Vec::new(), 0.0);
    for Stratum { x, y } in strata {
        if x.len() != y.len() {
            return Err(Error::Unpaired { left: x.len(), right: y.len() });
        }
        check(x, 2, POINTS_MAX)?;
        check(y, 2, POINTS_MAX)?;
        add_slopes(x, y, &mut slopes);
        let points = x.len() as f64;
        variance += kendall(points) - tied(x) - tied(y);
    }
    if slopes.is_empty() {
        return Err(Error::Flat);
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let pairs = slopes.len() as f64;
    let reach = normal::quantile(confidence)? * (variance.max(0.0) / 18.0 * inflation).sqrt();
    // Ranks from 1, to the even number as SciPy rounds them.
    let lower_rank = ((pairs - reach) / 2.0).round_ties_even();
    let upper_rank = f64::midpoint(pairs, reach).round_ties_even() + 1.0;
    let everywhere_equal = slopes[0].total_cmp(&slopes[slopes.len() - 1]).is_eq();
    let at = |rank: f64| slopes[whole(rank - 1.0).min(slopes.len() - 1)];
    let bound = |rank: f64, none: f64| {
        // If all slopes are equal only because there are very few points, the bound is unknown; if no value differs
        // from another, it is known.
        let known = rank >= 1.0 && rank <= pairs || everywhere_equal && variance <= 0.0;
        if known { at(rank) } else { none }
    };
    Ok(Slope {
        estimate: quantile::of_sorted(&slopes, 0.5),
        lower: bound(lower_rank, f64::NEG_INFINITY),
        upper: bound(upper_rank, f64::INFINITY),
    })
}

/// The intercept of a line with this slope: the median of the residuals.
pub fn intercept(x: &[f64], y: &[f64], slope: f64) -> f64 {
    let left: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - slope * x).collect();
    quantile::median(&left)
}

fn add_slopes(x: &[f64], y: &[f64], slopes: &mut Vec<f64>) {
    for (i, (x_i, y_i)) in x.iter().zip(y).enumerate() {
        for (x_j, y_j) in x[i + 1..].iter().zip(&y[i + 1..]) {
            let run = x_j - x_i;
            if run != 0.0 {
                slopes.push((y_j - y_i) / run);
            }
        }
    }
}

/// Eighteen times the variance of Kendall's statistic of this number of points.
fn kendall(points: f64) -> f64 {
    points * (points - 1.0) * (2.0 * points + 5.0)
}

/// The amount by which ties reduce eighteen times the variance of Kendall's statistic.
fn tied(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    sorted.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|equal| kendall(equal.len() as f64)).sum()
}

#[cfg(test)]
mod tests;
