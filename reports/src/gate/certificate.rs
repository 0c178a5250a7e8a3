//! The A/A certificate of a gate: its false alarm rate and its smallest detectable change on this machine. Pure
//! functions compute these two figures from the measurements of the session.
//!
//! Two sources show the noise of the machine. The first source of noise is the pairs of B and A, from which their
//! common shift is subtracted. The second source of noise is the *halves*: each build compared with itself in the same
//! block (A with A, B with B). If the builds do not differ, a pair is as likely above zero as below it, so every choice
//! of signs for the pairs is a possible session.
//!
//! A thousand choices of signs, drawn from the seed, are decided like sessions of a gate. The percentage of choices
//! that call B worse is the false alarm rate. The shift at which nine of ten choices call B worse is the smallest
//! detectable change. The source of noise with the worse figures counts. A verdict of "worse" needs two sessions, so
//! both figures are for two sessions.

use super::decide::{Word, decide, needed};
use super::order::Draw;
use super::pairs::Pairs;
use crate::statistics::hodges_lehmann;

/// Number of choices of signs that a gate draws for its certificate.
pub const RESAMPLES: usize = 1000;
/// The probability with which two sessions in a row must detect a change.
pub const POWER: f64 = 0.8;

/// The certificate of one metric: its false alarm rate and its smallest detectable change. Changes are on the scale on
/// which the metric is compared (logarithm of the ratio, or difference).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    /// The fraction of gates that would call identical builds worse, in two sessions.
    pub false_alarm: f64,
    /// The smallest change that the gate would call worse with probability [`POWER`].
    pub smallest: f64,
    /// The decision on each build compared with itself; none if too few such comparisons are left.
    pub halves: Option<Word>,
}

/// Computes the certificate of a metric; none if too few pairs are left for any decision.
pub fn certificate(pairs: &Pairs, limit: f64, seed: u64, resamples: usize) -> Option<Certificate> {
    let shift = hodges_lehmann::estimate(&pairs.between).ok()?;
    let residuals = centred(&pairs.between, shift);
    let mut draw = Draw::new(seed);
    let mut account = |noise: &[f64]| account(noise, (pairs.between.len(), resamples), limit, &mut draw);
    let between = account(&residuals)?;
    // Halves are centred too: an even drift moves the later slice of both builds, and no pair.
    let drift = hodges_lehmann::estimate(&pairs.within).unwrap_or_default();
    let halves = centred(&pairs.within, drift);
    let within = (halves.len() >= pairs.between.len() / 2).then(|| account(&halves)).flatten();
    let (cries, smallest) = within.map_or(between, |within| (within.0.max(between.0), within.1.max(between.1)));
    let halves = decide(&pairs.within, limit).filter(|decision| decision.lower.is_some()).map(|decision| decision.word);
    Some(Certificate { false_alarm: cries * cries, smallest, halves })
}

/// The noise of pairs around their middle, widened to the upper bound of the 80 % confidence interval of their spread.
/// The certificate predicts the next gate, and a dozen pairs do not determine the spread of the next dozen. Without
/// this factor, a promise of four in five would hold only in three of four cases (`simulation`).
fn centred(pairs: &[f64], middle: f64) -> Vec<f64> {
    let count = pairs.len() as f64;
    let surely = if count > 1.0 { (count / chi_squared(count - 1.0)).sqrt() } else { 1.0 };
    pairs.iter().map(|pair| (pair - middle) * surely).collect()
}

/// The 20 % quantile of the chi-squared distribution, by the approximation of Wilson and Hilferty (1931).
fn chi_squared(freedom: f64) -> f64 {
    /// The 20 % quantile of the normal distribution.
    const NORMAL: f64 = -0.841_62;
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + NORMAL * part.sqrt()).powi(3)
}

/// The fraction of choices of signs that call B worse, and the shift at which nine of ten choices call B worse.
fn account(noise: &[f64], (pairs, resamples): (usize, usize), limit: f64, draw: &mut Draw) -> Option<(f64, f64)> {
    if noise.is_empty() || resamples == 0 {
        return None;
    }
    let mut shifts = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        // If a half is missing, the others are repeated: a session has as many pairs as it had.
        let session: Vec<f64> =
            noise.iter().cycle().take(pairs).map(|noise| if draw.coin() { *noise } else { -noise }).collect();
        shifts.push(needed(&session, limit)?);
    }
    shifts.sort_unstable_by(f64::total_cmp);
    let cries = shifts.partition_point(|shift| *shift < 0.0) as f64 / resamples as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in the list")]
    let place = (POWER.sqrt() * resamples as f64).ceil() as usize;
    Some((cries, shifts[place.clamp(1, resamples) - 1]))
}

/// The probability that at least one of several metrics raises a false alarm.
pub fn together(certificates: impl IntoIterator<Item = f64>) -> f64 {
    1.0 - certificates.into_iter().map(|false_alarm| 1.0 - false_alarm).product::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The approximated quantiles agree with tables of the chi-squared distribution.
    #[test]
    fn chi_squared_is_that_of_the_tables() {
        for (freedom, quantile) in [(5.0, 2.343), (11.0, 6.989), (19.0, 13.716)] {
            let found = chi_squared(freedom);
            assert!((found - quantile).abs() < 0.03, "{freedom}: {found}");
        }
    }
}
