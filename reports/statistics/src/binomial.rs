//! The lower tail of the binomial distribution.

/// The probability of at most `k` successes in `n` trials that each succeed with probability `share`, summed term by
/// term. O(k).
pub fn at_most(k: u64, n: u64, share: f64) -> f64 {
    if k >= n || share <= 0.0 {
        return 1.0;
    }
    if share >= 1.0 {
        return 0.0;
    }
    let ratio = share / (1.0 - share);
    let mut log_term = n as f64 * (1.0 - share).ln();
    let mut sum = log_term.exp();
    for i in 0..k {
        log_term += ((n - i) as f64 / (i + 1) as f64 * ratio).ln();
        sum += log_term.exp();
        // Far beyond the mean the terms no longer matter.
        if log_term < -60.0 && i as f64 > n as f64 * share {
            break;
        }
    }
    sum.min(1.0)
}
