//! How sure a count makes us: exact where it is cheap, a stated approximation elsewhere.
//!
//! Owns the two statements that judges of counts need. Everything here is one-sided at 95 %.

/// Above this mean the normal approximation is closer to the exact tail than the 5 % that decide.
const NORMAL_ABOVE: f64 = 2000.0;
/// The 95 % point of the normal distribution.
const Z95: f64 = 1.645;

/// On which side of a share the truth is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Below, with 95 % confidence.
    Below,
    /// Above, with 95 % confidence.
    Above,
    /// Too few samples to say.
    Undecided,
}

/// None among `n` were bad: with 95 % confidence the true share is below this (the rule of three).
pub fn share_when_none(n: u64) -> f64 {
    if n == 0 { 1.0 } else { (3.0 / n as f64).min(1.0) }
}

/// Samples without a single bad one that decide "below `share`".
pub fn samples_when_none(share: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "share is at least a thousandth")]
    let needed = (0.05f64.ln() / (1.0 - share).ln()).ceil() as u64;
    needed
}

/// `bad` of `n` independent samples were bad: is the true share below or above `share`?
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

/// The binomial probability of at most `k` of `n`, summed term by term.
fn at_most(k: u64, n: u64, share: f64) -> f64 {
    let ratio = share / (1.0 - share);
    let mut log_term = n as f64 * (1.0 - share).ln();
    let mut sum = log_term.exp();
    for i in 0..k.min(n) {
        log_term += ((n - i) as f64 / (i + 1) as f64 * ratio).ln();
        sum += log_term.exp();
        // Far beyond the mean the terms no longer matter.
        if log_term < -60.0 && i as f64 > n as f64 * share {
            break;
        }
    }
    sum.min(1.0)
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
}
