//! Computes the pause before the next list or watch after failures.
//!
//! This module does no I/O and never sleeps.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);
/// The largest fraction of a pause that is subtracted at random, so that many clients do not return at the same time.
const JITTER: f64 = 0.2;

/// The pause after `failures` failures in a row. The argument `random` is between 0 and 1.
pub fn pause(failures: u32, random: f64) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    FIRST.saturating_mul(1 << (failures - 1).min(10)).min(LONGEST).mul_f64(1.0 - JITTER * random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_two_seconds() {
        let pauses: Vec<u128> = (0..7).map(|failures| pause(failures, 0.0).as_millis()).collect();
        assert_eq!(pauses, [0, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(pause(u32::MAX, 1.0), Duration::from_millis(1600));
    }
}
