//! Autocorrelation of a series: its integrated autocorrelation time.

use super::{Error, check, quantile};

/// Maximum number of values for a correlation time. With half as many lags, that is eight million products.
pub const VALUES_MAX: usize = 4096;
/// The sum of autocorrelations ends where the lag is this many times the sum (Sokal 1997): later autocorrelations are
/// noise.
const WINDOW: f64 = 5.0;

/// The integrated autocorrelation time `½ + Σ ρ(k)` of values at equal distances, counted in distances (Sokal, *Monte
/// Carlo Methods in Statistical Mechanics*, 1997, section 3, with his automatic window). For a first-order
/// autoregression this is the time in which the correlation falls to 1/e; ½ means no correlation. A straight line is
/// fitted to the values and subtracted first. O(n × lags).
pub fn time(values: &[f64]) -> Result<f64, Error> {
    check(values, 8, VALUES_MAX)?;
    Ok(of_left(values, &without_line(values)))
}

/// The correlation time of values, computed from their residuals `left`.
fn of_left(values: &[f64], left: &[f64]) -> f64 {
    let variance = product(left, 0);
    let level = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if variance <= (level * 1e-12).powi(2) * values.len() as f64 {
        return 0.5;
    }
    let mut sum = 0.5;
    for lag in 1..=values.len() / 2 {
        sum += product(left, lag) / variance;
        if lag as f64 >= WINDOW * sum {
            break;
        }
    }
    sum.max(0.5)
}

/// The median of the correlation times of `parts` equal ranges of the values, counted in distances of values. From the
/// values of each range their fitted parabola is subtracted. A sudden step looks like a long correlation of the whole
/// series, but affects only one range. A smooth bend of the series affects no range.
pub fn robust(values: &[f64], parts: usize) -> Result<f64, Error> {
    check(values, 8 * parts.max(1), VALUES_MAX)?;
    let length = values.len() / parts.max(1);
    let of = |part: &[f64]| of_left(part, &without_parabola(part));
    let times: Vec<f64> = values.chunks_exact(length).take(parts.max(1)).map(of).collect();
    Ok(quantile::median(&times))
}

/// The residuals of values at equal distances after subtracting the least-squares line.
pub fn without_line(values: &[f64]) -> Vec<f64> {
    let middle = (values.len().max(1) - 1) as f64 / 2.0;
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let off = |index: usize| index as f64 - middle;
    let covariance: f64 = values.iter().enumerate().map(|(index, value)| off(index) * (value - mean)).sum();
    let variance: f64 = (0..values.len()).map(|index| off(index).powi(2)).sum();
    let slope = if variance > 0.0 { covariance / variance } else { 0.0 };
    values.iter().enumerate().map(|(index, value)| value - mean - slope * off(index)).collect()
}

/// The residuals of values at equal distances after subtracting the least-squares parabola.
pub fn without_parabola(values: &[f64]) -> Vec<f64> {
    let left = without_line(values);
    let count = left.len().max(1) as f64;
    let middle = (count - 1.0) / 2.0;
    // The square of the distance from the middle less its mean, (n² − 1) / 12, is orthogonal to every line.
    let bend = |index: usize| (index as f64 - middle).powi(2) - (count * count - 1.0) / 12.0;
    let covariance: f64 = left.iter().enumerate().map(|(index, value)| bend(index) * value).sum();
    let variance: f64 = (0..left.len()).map(|index| bend(index).powi(2)).sum();
    let by = if variance > 0.0 { covariance / variance } else { 0.0 };
    left.iter().enumerate().map(|(index, value)| value - by * bend(index)).collect()
}

fn product(values: &[f64], lag: usize) -> f64 {
    values.iter().zip(&values[lag..]).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_memory_and_what_cannot_be_computed_is_refused() {
        let line: Vec<f64> = (0..100).map(|i| 1e9 + 7.0 * f64::from(i)).collect();
        assert!((time(&line).unwrap() - 0.5).abs() < 1e-12);
        assert!((time(&[3.0; 20]).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(time(&[1.0]), Err(Error::TooFew { found: 1, least: 8 }));
        assert_eq!(time(&[f64::NAN; 8]), Err(Error::NotFinite { index: 0 }));
        assert!(robust(&[1.0; 20], 3).is_err());
        assert!((robust(&[1.0; 24], 3).unwrap() - 0.5).abs() < 1e-12);
        let bend: Vec<f64> = (0..90).map(|i| f64::from(i).powi(2) - 3.0 * f64::from(i) + 8.0).collect();
        assert!((robust(&bend, 3).unwrap() - 0.5).abs() < 1e-12);
    }
}
