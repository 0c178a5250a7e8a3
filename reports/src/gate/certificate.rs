//! The A/A certificate: the gate's false alarm rate and smallest detectable change on this machine, from the slices of
//! the session. Pure.
//!
//! There are two sources of the noise. One is the pairs of B and A without their common shift. The other is the
//! *halves*, each build against itself in the same block (A against A, B against B). If the builds do not differ, a
//! pair is as likely above zero as below it, so every choice of signs is a possible session.
//!
//! A thousand choices, drawn from the seed, are decided like a session. The share of those that call B worse is the
//! false alarm; the shift at which nine of ten call B worse is the smallest change. The worse one of the two sources
//! counts. A verdict of "worse" needs two sessions, so both figures are for two.

use super::decide::{Word, decide, needed};
use super::order::Draw;
use super::pairs::Pairs;
use crate::statistics::hodges_lehmann;

/// Possible sessions that a gate draws.
pub const RESAMPLES: usize = 1000;
/// A change counts as detected if two sessions in a row detect it with this probability.
pub const POWER: f64 = 0.8;

/// The certificate of one metric, on the axis of its comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    /// How often the gate would have called identical builds worse, in two sessions.
    pub false_alarm: f64,
    /// The smallest change that the gate would have called worse with [`POWER`].
    pub smallest: f64,
    /// The decision on the halves, each build against itself; none if too few are left.
    pub halves: Option<Word>,
}

/// The certificate; none if too few pairs are left to decide anything.
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

/// The noise of pairs around their own middle, at its upper bound of 80 % confidence. The certificate is about the next
/// gate, and a dozen pairs do not determine the spread of the next dozen. Without this factor it promises four in five
/// and keeps three in four (`simulation`).
fn centred(pairs: &[f64], middle: f64) -> Vec<f64> {
    let count = pairs.len() as f64;
    let surely = if count > 1.0 { (count / chi_squared(count - 1.0)).sqrt() } else { 1.0 };
    pairs.iter().map(|pair| (pair - middle) * surely).collect()
}

/// The 20 % quantile of chi squared, by the approximation of Wilson and Hilferty (1931).
fn chi_squared(freedom: f64) -> f64 {
    /// The 20 % quantile of the normal distribution.
    const NORMAL: f64 = -0.841_62;
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + NORMAL * part.sqrt()).powi(3)
}

/// The share of the possible sessions that call B worse, and the shift at which nearly all of them do.
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

/// The probability that at least one of these raises a false alarm.
pub fn together(certificates: impl IntoIterator<Item = f64>) -> f64 {
    1.0 - certificates.into_iter().map(|false_alarm| 1.0 - false_alarm).product::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are from tables of the distribution.
    #[test]
    fn chi_squared_is_that_of_the_tables() {
        for (freedom, quantile) in [(5.0, 2.343), (11.0, 6.989), (19.0, 13.716)] {
            let found = chi_squared(freedom);
            assert!((found - quantile).abs() < 0.03, "{freedom}: {found}");
        }
    }
}
