//! The Hodges–Lehmann estimate of the centre of one sample.

use super::{Error, check, quantile};

/// Maximum number of values, of which half a million averages are computed.
pub const VALUES_MAX: usize = 1000;

/// The median of the Walsh averages: the averages of all pairs of values, including each value paired with itself. This
/// median estimates the centre of a symmetric distribution (Hodges & Lehmann, 1963; Hollander & Wolfe, section 3.2), in
/// the unit of the values. O(n² log n).
pub fn estimate(values: &[f64]) -> Result<f64, Error> {
    Ok(quantile::of_sorted(&walsh(values)?, 0.5))
}

/// The sorted averages of all pairs of values, including each value paired with itself.
pub(super) fn walsh(values: &[f64]) -> Result<Vec<f64>, Error> {
    check(values, 1, VALUES_MAX)?;
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (i, a) in values.iter().enumerate() {
        averages.extend(values[i..].iter().map(|b| f64::midpoint(*a, *b)));
    }
    averages.sort_unstable_by(f64::total_cmp);
    Ok(averages)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_cannot_be_computed_is_refused() {
        assert_eq!(estimate(&[]), Err(Error::TooFew { found: 0, least: 1 }));
        assert_eq!(estimate(&[f64::NAN]), Err(Error::NotFinite { index: 0 }));
        assert!(estimate(&vec![0.0; VALUES_MAX + 1]).is_err());
    }

    proptest! {
        /// The estimate moves and scales with the values, lies between the smallest and the largest value, and does not
        /// depend on the order.
        #[test]
        fn shift_scale_order(mut values in prop::collection::vec(-1e3..1e3_f64, 1..40), shift in -1e3..1e3_f64, factor in -5.0..5.0_f64) {
            let plain = estimate(&values).unwrap();
            let moved: Vec<f64> = values.iter().map(|value| factor * value + shift).collect();
            prop_assert!((estimate(&moved).unwrap() - (factor * plain + shift)).abs() < 1e-6);
            values.reverse();
            prop_assert!((estimate(&values).unwrap() - plain).abs() < 1e-9);
            let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
            prop_assert!(least <= plain && plain <= most);
        }
    }
}
