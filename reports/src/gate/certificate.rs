//! The A/A certificate: what this gate can do on this machine, from the very slices of the session. Pure.
//!
//! How it is computed. There are two accounts of the noise: the pairs of B and A without their common shift, and the *halves*, each build
//! against itself in the same block (A against A, B against B). If the builds do not differ, a pair is as likely above nought as below it,
//! so every choice of signs is a session that might have been. A thousand choices, drawn from the seed, are decided as a session is: the
//! share of those that cry is the false alarm, and the shift that nine of ten need until they cry is the smallest change. Of the two
//! accounts the worse one counts. A verdict of "worse" needs two sessions, so both figures are of two.

use super::decide::{Word, decide, needed};
use super::order::Draw;
use super::pairs::Pairs;
use crate::statistics::hodges_lehmann;

/// Sessions that might have been, for a gate.
pub const RESAMPLES: usize = 1000;
/// A change counts as seen when two sessions in a row see it with this probability.
pub const POWER: f64 = 0.8;

/// What the gate can do for one metric, on the axis of its comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    /// How often it would have called identical builds worse, in two sessions.
    pub false_alarm: f64,
    /// The smallest change that it would have called worse with [`POWER`].
    pub smallest: f64,
    /// What the halves say, each build against itself; none where too few are left.
    pub halves: Option<Word>,
}

/// The certificate; none where too few pairs are left to decide anything.
pub fn certificate(pairs: &Pairs, limit: f64, seed: u64, resamples: usize) -> Option<Certificate> {
    let shift = hodges_lehmann::estimate(&pairs.between).ok()?;
    let residuals = centred(&pairs.between, shift);
    let mut draw = Draw::new(seed);
    let mut account = |noise: &[f64]| account(noise, (pairs.between.len(), resamples), limit, &mut draw);
    let between = account(&residuals)?;
    // Halves are centred alike: what drifts evenly moves the later slice of both builds, and no pair.
    let drift = hodges_lehmann::estimate(&pairs.within).unwrap_or_default();
    let halves = centred(&pairs.within, drift);
    let within = (halves.len() >= pairs.between.len() / 2).then(|| account(&halves)).flatten();
    let (cries, smallest) = within.map_or(between, |within| (within.0.max(between.0), within.1.max(between.1)));
    let halves = decide(&pairs.within, limit).filter(|decision| decision.lower.is_some()).map(|decision| decision.word);
    Some(Certificate { false_alarm: cries * cries, smallest, halves })
}

/// The noise of pairs around their own middle, as large as it is with a confidence of 80 %: a certificate speaks of the next gate, and a dozen
/// pairs do not tell the spread of the next dozen. Without that it promises four in five and keeps three in four (`simulation`).
fn centred(pairs: &[f64], middle: f64) -> Vec<f64> {
    let count = pairs.len() as f64;
    let surely = if count > 1.0 { (count / chi_squared(count - 1.0)).sqrt() } else { 1.0 };
    pairs.iter().map(|pair| (pair - middle) * surely).collect()
}

/// The quantile of chi squared that four of five lie above, by the approximation of Wilson and Hilferty (1931).
fn chi_squared(freedom: f64) -> f64 {
    /// The quantile of the normal distribution that four of five lie above.
    const NORMAL: f64 = -0.841_62;
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + NORMAL * part.sqrt()).powi(3)
}

/// How many of the sessions that might have been cry, as a share, and which shift all but a few of them need.
fn account(noise: &[f64], (pairs, resamples): (usize, usize), limit: f64, draw: &mut Draw) -> Option<(f64, f64)> {
    if noise.is_empty() || resamples == 0 {
        return None;
    }
    let mut shifts = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        // Where a half is missing, the others are gone round again: a session has as many pairs as it had.
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

/// How often any of these would have cried.
pub fn together(certificates: impl IntoIterator<Item = f64>) -> f64 {
    1.0 - certificates.into_iter().map(|false_alarm| 1.0 - false_alarm).product::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From tables of the distribution.
    #[test]
    fn chi_squared_is_that_of_the_tables() {
        for (freedom, quantile) in [(5.0, 2.343), (11.0, 6.989), (19.0, 13.716)] {
            let found = chi_squared(freedom);
            assert!((found - quantile).abs() < 0.03, "{freedom}: {found}");
        }
    }
}
