//! Confidence in a fraction (share) that is known from counts: exact where that is cheap, otherwise by an
//! approximation.
//!
//! [`side_of`], [`share_when_none`] and [`samples_when_none`] are one-sided at 95 %; [`wilson`] is two-sided.

use super::binomial::at_most;
use super::{Error, check_confidence, normal};

/// The mean of the count above which the normal approximation is used: the error of the approximation is then smaller
/// than the 5 % on which the decision depends.
const NORMAL_ABOVE: f64 = 2000.0;
/// The 95 % point of the normal distribution.
const Z95: f64 = 1.645;

/// Whether the true fraction is below or above a given fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The true fraction is below the given one, with 95 % confidence.
    Below,
    /// The true fraction is above the given one, with 95 % confidence.
    Above,
    /// Too few samples to decide.
    Undecided,
}

/// If none of `n` samples was bad, the true fraction of bad samples is below the returned one with 95 % confidence (the
/// rule of three; Hanley & Lippman-Hand, JAMA 249, 1983).
pub fn share_when_none(n: u64) -> f64 {
    if n == 0 { 1.0 } else { (3.0 / n as f64).min(1.0) }
}

/// The number of samples, all of them good, that prove that the true fraction of bad samples is below `share`.
pub fn samples_when_none(share: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "share is at least a thousandth")]
    let needed = (0.05f64.ln() / (1.0 - share).ln()).ceil() as u64;
    needed
}

/// Decides whether the true fraction of bad samples is below or above `share`, if `bad` of `n` independent samples were
/// bad.
pub fn side_of(bad: u64, n: u64, share: f64) -> Side {
    if n == 0 {
        return Side::Undecided;
    }
    let mean = n as f64 * share;
    if mean > NORMAL_ABOVE {
        let z = (bad as f64 - mean) / (mean * (1.0 - share)).sqrt();
        return match z {
            z if z < -Z95 => Side::Below,
            z if z > Z95 => Side::Above,
            _ => Side::Undecided,
        };
    }
    if at_most(bad, n, share) <= 0.05 {
        Side::Below
    } else if bad > 0 && 1.0 - at_most(bad - 1, n, share) <= 0.05 {
        Side::Above
    } else {
        Side::Undecided
    }
}

/// A fraction with the bounds of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The observed fraction.
    pub estimate: f64,
    pub lower: f64,
    pub upper: f64,
}

/// Wilson's two-sided score interval (Wilson, 1927) for `hits` of `n`: the true fraction lies inside with this
/// confidence.
pub fn wilson(hits: u64, n: u64, confidence: f64) -> Result<Interval, Error> {
    check_confidence(confidence)?;
    if n == 0 {
        return Err(Error::TooFew { found: 0, least: 1 });
    }
    if hits > n {
        return Err(Error::OutOfRange { what: "the number of hits", value: hits as f64 });
    }
    let z = normal::quantile(0.5 + confidence / 2.0)?;
    let (n, share) = (n as f64, hits as f64 / n as f64);
    let middle = share + z * z / (2.0 * n);
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let below = 1.0 + z * z / n;
    Ok(Interval {
        estimate: share,
        lower: ((middle - half) / below).max(0.0),
        upper: ((middle + half) / below).min(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_points() {
        // 0.99^298 = 0.0500, 0.99^299 = 0.0495.
        assert_eq!((side_of(0, 298, 0.01), side_of(0, 299, 0.01)), (Side::Undecided, Side::Below));
        assert_eq!(samples_when_none(0.01), 299);
        // Binomial(1000, 0.01): P(X <= 4) = 0.0287, P(X <= 5) = 0.0661, P(X >= 16) = 0.0479, P(X >= 15) = 0.0824.
        assert_eq!((side_of(4, 1000, 0.01), side_of(5, 1000, 0.01)), (Side::Below, Side::Undecided));
        assert_eq!((side_of(16, 1000, 0.01), side_of(15, 1000, 0.01)), (Side::Above, Side::Undecided));
        assert_eq!((side_of(1000, 1000, 0.01), side_of(0, 0, 0.01)), (Side::Above, Side::Undecided));
        assert_eq!((side_of(2800, 300_000, 0.01), side_of(3200, 300_000, 0.01)), (Side::Below, Side::Above));
    }

    /// The intervals agree with Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    #[test]
    fn the_intervals_of_newcombe() {
        let table =
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)];
        for (hits, n, lower, upper) in table {
            let found = wilson(hits, n, 0.95).unwrap();
            assert!((found.lower - lower).abs() < 5e-5 && (found.upper - upper).abs() < 5e-5, "{hits}/{n}: {found:?}");
        }
        assert!(wilson(1, 0, 0.95).is_err() && wilson(2, 1, 0.95).is_err() && wilson(1, 2, 1.0).is_err());
    }
}
