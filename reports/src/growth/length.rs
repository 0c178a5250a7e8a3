//! The length of a run that decides whether a value grows faster than its budget. The plan and the judge use the same
//! functions, so that no plan promises more than the judge can decide.

use crate::statistics::blocks::{BLOCKS_LEAST, TIMES_LEAST};

/// The correlation time of memory that a plan assumes, in seconds. The time was measured on noisy two-core machines.
pub const TAU_S: f64 = 50.0;
/// The scatter of memory that a plan assumes, in bytes.
pub const SIGMA_BYTES: f64 = 2.0 * 1024.0 * 1024.0;
/// Minimum size of the budget in standard errors of the slope. With 2.5 standard errors, an ideal estimator that knows
/// the noise would distinguish twice the budget from the budget in 80 % of runs. The Theil–Sen slope through medians of
/// blocks has to measure its noise, and with 2.5 standard errors distinguishes them in 68 to 75 %. With 3.4 standard
/// errors the Theil–Sen slope distinguishes them in about 88 % of runs; the calibration in `growth/tests.rs` checks
/// this rate.
const ERRORS: f64 = 3.4;

/// The length of the steady phase, in seconds, that decides a budget of `budget_per_s`: `(3.4 σ √(24 τ) / B)^(2/3)`, or
/// longer if the minimum number of blocks needs it. None if the budget is zero, because no length decides such a
/// budget.
///
/// The standard error of a slope through noise with scatter σ and correlation time τ is `σ √(24 τ) / T^(3/2)`.
pub fn needed_s(sigma: f64, tau_s: f64, budget_per_s: f64) -> Option<f64> {
    let usable = budget_per_s > 0.0 && sigma >= 0.0 && tau_s >= 0.0;
    let blocks_s = BLOCKS_LEAST as f64 * TIMES_LEAST * tau_s;
    let slope_s = (ERRORS * sigma * (24.0 * tau_s).sqrt() / budget_per_s).powf(2.0 / 3.0);
    usable.then(|| slope_s.max(blocks_s)).filter(|needed_s| needed_s.is_finite())
}

/// The scatter of the memory of a quiet program, in bytes: a program with one thread that allocates little.
const SIGMA_QUIET_BYTES: f64 = 262_144.0;
/// The distance of a one-sided 95 % bound from the slope, in standard errors.
const BOUND: f64 = 1.645;
/// The growth, in standard errors of the slope, at which four of five runs detect a leak.
const FOUND: f64 = 1.645 + 0.842;

/// The length, in seconds, from which a subject may pass if its memory is quiet. The judge measures noise itself and
/// needs no assumed number of correlation times. None if no length is enough.
pub fn quiet_s(budget_per_s: f64) -> Option<f64> {
    let slope_s = (BOUND * SIGMA_QUIET_BYTES * (24.0 * TAU_S).sqrt() / budget_per_s).powf(2.0 / 3.0);
    (budget_per_s > 0.0).then_some(slope_s).filter(|slope_s| slope_s.is_finite())
}

/// The slowest growth, in bytes per second, that a steady phase of this length detects if memory scatters as usual. A
/// failure does not need the planned length of the phase.
pub fn found_per_s(length_s: f64, budget_per_s: f64) -> f64 {
    budget_per_s.max(0.0) + FOUND * SIGMA_BYTES * (24.0 * TAU_S).sqrt() / length_s.max(1.0).powf(1.5)
}

/// Whether a steady phase of this length, in seconds, decides a budget of `budget_per_s`.
pub fn decidable(length_s: f64, sigma: f64, tau_s: f64, budget_per_s: f64) -> bool {
    needed_s(sigma, tau_s, budget_per_s).is_some_and(|needed_s| length_s >= needed_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1024.0 * 1024.0;

    #[test]
    fn a_mebibyte_an_hour_takes_two_and_a_half_hours() {
        let needed_s = needed_s(SIGMA_BYTES, TAU_S, MIB / 3600.0).unwrap();
        assert!((needed_s / 3600.0 - 2.49).abs() < 0.01, "{needed_s}");
        // Never less than the theoretical minimum.
        assert!(needed_s >= (2.5 * SIGMA_BYTES * (24.0 * TAU_S).sqrt() / (MIB / 3600.0)).powf(2.0 / 3.0));
        assert!(decidable(needed_s, SIGMA_BYTES, TAU_S, MIB / 3600.0));
        assert!(!decidable(needed_s - 1.0, SIGMA_BYTES, TAU_S, MIB / 3600.0));
    }

    /// A subject with quiet memory can pass a short run, and a short run always detects a large leak.
    #[test]
    fn a_short_run_finds_large_leaks() {
        let quiet = quiet_s(MIB / 3600.0).unwrap();
        assert!(quiet < needed_s(SIGMA_BYTES, TAU_S, MIB / 3600.0).unwrap() / 4.0, "{quiet}");
        let (minutes, hour) = (found_per_s(300.0, 0.0), found_per_s(3600.0, 0.0));
        assert!(minutes > hour && (20_000.0..50_000.0).contains(&minutes), "{minutes} {hour}");
        assert!(found_per_s(300.0, 1000.0) > minutes);
        assert_eq!(quiet_s(0.0), None);
    }

    #[test]
    fn no_length_decides_nothing_and_no_budget_beats_the_blocks() {
        for budget in [0.0, -1.0, f64::NAN] {
            assert_eq!(needed_s(1.0, 50.0, budget), None, "{budget}");
        }
        assert_eq!(needed_s(f64::NAN, 50.0, 1.0), None);
        assert_eq!(needed_s(1.0, 50.0, 1e12), Some(3000.0));
    }
}
