//! One-sided confidence bounds by Wilcoxon's signed-rank statistic.

use super::hodges_lehmann::walsh;
use super::{Error, check_confidence, normal, whole};

/// The number of values up to which the exact distribution of the statistic is computed. For more values the normal
/// approximation is as good.
pub const EXACT_MAX: usize = 50;

/// Bounds of the centre of a symmetric distribution, in the unit of the values. Each bound alone holds with the stated
/// confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The lower bound of the centre; none if there are too few values.
    pub lower: Option<f64>,
    /// The upper bound of the centre; none if there are too few values.
    pub upper: Option<f64>,
}

/// Tukey's bounds: the Walsh averages at the ranks where the signed-rank test just does not reject them (Hollander &
/// Wolfe, section 3.3). With ties the confidence is at least the stated one. O(n² log n), for at most
/// [`VALUES_MAX`](super::hodges_lehmann::VALUES_MAX) values.
pub fn bounds(values: &[f64], confidence: f64) -> Result<Bounds, Error> {
    check_confidence(confidence)?;
    let averages = walsh(values)?;
    let rank = rank(values.len(), 1.0 - confidence)?;
    let Some(index) = rank.checked_sub(1) else { return Ok(Bounds { lower: None, upper: None }) };
    let at = |index: usize| averages.get(index).copied();
    Ok(Bounds { lower: at(index), upper: averages.len().checked_sub(rank).and_then(at) })
}

/// The largest rank, from 1, such that the statistic of `n` values is below the rank with a probability of at most
/// `alpha`; 0 if no rank is.
fn rank(n: usize, alpha: f64) -> Result<usize, Error> {
    if n <= EXACT_MAX {
        let mut sum = 0.0;
        let below = distribution(n).into_iter().take_while(|probability| {
            sum += probability;
            sum <= alpha
        });
        return Ok(below.count());
    }
    let n = n as f64;
    let (mean, deviation) = (n * (n + 1.0) / 4.0, (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt());
    // With the correction for continuity: P(T < rank) is that of rank − ½.
    Ok(whole((mean + normal::quantile(alpha)? * deviation + 0.5).floor()))
}

/// The probability of each value of the signed-rank statistic, from 0 on, for `n` values without ties.
fn distribution(n: usize) -> Vec<f64> {
    let mut probabilities = vec![0.0; n * (n + 1) / 2 + 1];
    probabilities[0] = 1.0;
    for rank in 1..=n {
        // Each rank is in the sum or not, with the same probability.
        for sum in (0..=rank * (rank + 1) / 2).rev() {
            let with = if sum >= rank { probabilities[sum - rank] } else { 0.0 };
            probabilities[sum] = f64::midpoint(probabilities[sum], with);
        }
    }
    probabilities
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The distribution agrees with table A.4 of Hollander & Wolfe: for n = 9 values P(T ≥ 39) = 0.020 and P(T ≥ 40) =
    /// 0.014.
    #[test]
    fn the_distribution_adds_up() {
        for n in [1, 2, 9, 50] {
            let probabilities = distribution(n);
            assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!((probabilities[0] - 0.5_f64.powi(i32::try_from(n).unwrap())).abs() < 1e-15);
        }
    }

    /// With five values, the smallest of them is a lower bound of the centre with a confidence of 1 − 1/32. Four values
    /// give no bound with 95 % confidence.
    #[test]
    fn few_values_have_no_bound() {
        let found = bounds(&[3.0, 1.0, 2.0, 5.0, 4.0], 0.95).unwrap();
        assert_eq!((found.lower, found.upper), (Some(1.0), Some(5.0)));
        assert_eq!(bounds(&[3.0, 1.0, 2.0, 4.0], 0.95).unwrap(), Bounds { lower: None, upper: None });
        assert_eq!(bounds(&[], 0.95), Err(Error::TooFew { found: 0, least: 1 }));
        assert_eq!(bounds(&[1.0, f64::NAN], 0.95), Err(Error::NotFinite { index: 1 }));
        assert!(bounds(&[1.0], 1.0).is_err());
    }

    #[test]
    fn the_normal_approximation_continues_the_exact_ranks() {
        let n = EXACT_MAX as f64;
        let exact = rank(EXACT_MAX, 0.05).unwrap() as f64;
        let normal = n * (n + 1.0) / 4.0 - 1.644_85 * (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt() + 0.5;
        assert!((exact - normal).abs() < 2.0, "{exact} {normal}");
    }

    proptest! {
        /// Bounds move and scale with the values. A higher confidence widens the bounds, and a change of the values'
        /// sign swaps the bounds.
        #[test]
        fn shift_scale_order(values in prop::collection::vec(-1e3..1e3_f64, 6..70), shift in -1e3..1e3_f64, factor in 0.1..5.0_f64) {
            let plain = bounds(&values, 0.95).unwrap();
            let (lower, upper) = (plain.lower.unwrap(), plain.upper.unwrap());
            prop_assert!(lower <= upper);
            let moved: Vec<f64> = values.iter().rev().map(|value| factor * value + shift).collect();
            let found = bounds(&moved, 0.95).unwrap();
            prop_assert!((found.lower.unwrap() - (factor * lower + shift)).abs() < 1e-6);
            let turned: Vec<f64> = values.iter().map(|value| -value).collect();
            prop_assert!((bounds(&turned, 0.95).unwrap().lower.unwrap() + upper).abs() < 1e-9);
            let wide = bounds(&values, 0.975).unwrap();
            prop_assert!(wide.lower.unwrap() <= lower && upper <= wide.upper.unwrap());
        }
    }
}
