//! The confidence interval of the mean of a count.

use super::{Error, check_confidence, normal};

/// The two-sided interval of the mean of a count, by Byar's approximation to Garwood's exact interval (Rothman & Boice,
/// *Epidemiologic Analysis with a Programmable Calculator*, 1979). The upper bound differs from the exact bound by at
/// most a hundredth of it; so does the lower bound for counts from ten on. For smaller counts the lower bound is below
/// the exact one, which makes the interval wider. The count may be a fraction, because values that are lost at once
/// count as one.
pub fn byar(count: f64, confidence: f64) -> Result<(f64, f64), Error> {
    check_confidence(confidence)?;
    if !(count >= 0.0 && count.is_finite()) {
        return Err(Error::OutOfRange { what: "the count", value: count });
    }
    let z = normal::quantile(0.5 + confidence / 2.0)?;
    let bound = |count: f64, z: f64| count * (1.0 - 1.0 / (9.0 * count) + z / (3.0 * count.sqrt())).max(0.0).powi(3);
    let lower = if count > 0.0 { bound(count, -z) } else { 0.0 };
    Ok((lower, bound(count + 1.0, z)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The intervals are near those in Garwood's table (Biometrika 28, 1936).
    #[test]
    fn near_the_exact_interval() {
        for (count, lower, upper) in
            [(0.0, 0.0, 3.689), (1.0, 0.025, 5.572), (10.0, 4.795, 18.39), (100.0, 81.36, 121.63)]
        {
            let found = byar(count, 0.95).unwrap();
            assert!(found.0 <= 1.001 * lower && lower - found.0 <= 0.01 * lower.max(1.5), "{count}: {found:?}");
            assert!((found.1 - upper).abs() <= 0.01 * upper, "{count}: {found:?}");
        }
        assert!(byar(-1.0, 0.95).is_err() && byar(f64::NAN, 0.95).is_err() && byar(1.0, 1.0).is_err());
    }
}
