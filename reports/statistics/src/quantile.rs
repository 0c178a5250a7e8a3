//! Quantiles of values, and bounds of quantiles by order statistics, which hold for any distribution.

use super::{Error, binomial, check, check_confidence, sorted, whole};

pub const VALUES_MAX: usize = 1 << 20;

/// A quantile with its one-sided bounds, each in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The quantile of the given values, interpolated.
    pub estimate: f64,
    /// The lower bound of the true quantile at the stated confidence; none if there are too few values.
    pub lower: Option<f64>,
    /// The upper bound of the true quantile at the stated confidence; none if there are too few values.
    pub upper: Option<f64>,
}

/// The quantile `p` with its bounds by order statistics (Hahn & Meeker, *Statistical Intervals*, section 5.2; Conover,
/// *Practical Nonparametric Statistics*, section 3.2). The values must be independent; their distribution does not
/// matter. O(n log n).
pub fn interval(values: &[f64], p: f64, confidence: f64) -> Result<Interval, Error> {
    check(values, 1, VALUES_MAX)?;
    check_confidence(confidence)?;
    if !(p > 0.0 && p < 1.0) {
        return Err(Error::OutOfRange { what: "the quantile", value: p });
    }
    let sorted = sorted(values);
    let n = sorted.len() as u64;
    // The value of rank r is at least the quantile with the probability that fewer than r of n lie below it. Both ranks
    // are found by bisection: the tail falls as the rank does.
    let ranks_below = |limit: f64| -> u64 {
        let (mut low, mut high) = (0, n);
        while low < high {
            let middle = low + (high - low) / 2;
            if binomial::at_most(middle, n, p) <= limit { low = middle + 1 } else { high = middle }
        }
        low
    };
    let at = |rank: u64| usize::try_from(rank).ok().and_then(|rank| sorted.get(rank)).copied();
    let lower_rank = ranks_below(1.0 - confidence);
    // The first k with P(X ≤ k) ≥ confidence; as a rank from 1 it is k + 1, and none above n.
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if binomial::at_most(middle, n, p) < confidence { low = middle + 1 } else { high = middle }
    }
    let lower = lower_rank.checked_sub(1).and_then(at);
    Ok(Interval { estimate: of_sorted(&sorted, p), lower, upper: at(low) })
}

/// The median of finite values; zero if there are none. O(n log n).
pub fn median(values: &[f64]) -> f64 {
    of_sorted(&sorted(values), 0.5)
}

/// The median absolute deviation from the median, multiplied so that it estimates the standard deviation of normal
/// values (Hampel, 1974).
pub fn scale(values: &[f64]) -> f64 {
    let middle = median(values);
    let off: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    1.482_602_218_505_602 * median(&off)
}

/// The quantile of sorted values, interpolated between the two nearest (definition 7 of Hyndman & Fan, 1996); zero if
/// there are none.
pub fn of_sorted(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = p.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (whole(at.floor()).min(last), whole(at.ceil()).min(last));
    sorted[below] + (sorted[above] - sorted[below]) * (at - at.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bounds agree with Conover (1999), section 3.2: of ten values the second and the ninth bound the median, each
    /// with 98.9 % confidence.
    #[test]
    fn known_points() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let found = interval(&values, 0.5, 0.989).unwrap();
        assert_eq!((found.lower, found.upper), (Some(2.0), Some(9.0)));
        // 0.95^58 > 0.05 > 0.95^59: 59 values bound the 95th percentile from above with 95 %, 58 do not.
        let values: Vec<f64> = (1..=59).map(f64::from).collect();
        assert_eq!(interval(&values, 0.95, 0.95).unwrap().upper, Some(59.0));
        assert_eq!(interval(&values[..58], 0.95, 0.95).unwrap().upper, None);
        assert!((median(&[4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-12);
        assert!((scale(&[1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]) - 1.4826).abs() < 1e-4);
        assert!(median(&[]).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_computed_is_refused() {
        assert_eq!(interval(&[], 0.5, 0.95), Err(Error::TooFew { found: 0, least: 1 }));
        assert_eq!(interval(&[1.0, f64::NAN], 0.5, 0.95), Err(Error::NotFinite { index: 1 }));
        assert!(interval(&[1.0], 1.0, 0.95).is_err());
        assert!(interval(&[1.0], 0.5, 0.5).is_err());
    }
}
