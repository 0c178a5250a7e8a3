//! The pauses of a controller on client-go between its tries for one object.

/// The pause after an object's first failure, in milliseconds. Each further failure doubles the pause
/// (`DefaultTypedControllerRateLimiter` in `util/workqueue/default_rate_limiters.go`).
const FIRST_MS: u64 = 5;
/// The longest pause, in milliseconds.
pub const BACK_OFF_MAX_MS: u64 = 1_000_000;
/// Number of failures, in addition to refused writes, that a controller may have had for each object. Examples of such
/// failures are a failed read, or a refused child with another name.
const UNSEEN: u64 = 3;

/// The pause after so many failures in a row, in milliseconds.
pub fn back_off_ms(failures: u64) -> u64 {
    let doubled = u32::try_from(failures).ok().and_then(|failures| 1u64.checked_shl(failures)).unwrap_or(u64::MAX);
    FIRST_MS.saturating_mul(doubled).min(BACK_OFF_MAX_MS)
}

/// The longest pause that may follow so many refused writes in a row, in milliseconds: some failures are no refused
/// writes.
pub fn longest_back_off_ms(refusals: u64) -> u64 {
    back_off_ms(refusals.saturating_add(UNSEEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum() {
        assert_eq!([0, 1, 12].map(back_off_ms), [5, 10, 20_480]);
        assert_eq!([18, 64, u64::MAX].map(back_off_ms), [BACK_OFF_MAX_MS; 3]);
        assert_eq!(longest_back_off_ms(9), back_off_ms(12));
    }
}
