//! Range and resolution of all histograms, defined once so that histograms can be added.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The smallest value that is distinguished from zero, in microseconds.
pub const LOWEST_US: u64 = 1;
/// The largest value in microseconds, 120 s; longer durations count as this value.
pub const HIGHEST_US: u64 = 120_000_000;
/// Values are exact to one part in a thousand.
pub const SIGNIFICANT_DIGITS: u8 = 3;

pub(crate) fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(LOWEST_US, HIGHEST_US, SIGNIFICANT_DIGITS)
        .expect("1 <= lowest, 2 * lowest <= highest and at most 5 digits: the bounds are valid constants")
}

/// Records a duration in a histogram. A duration beyond the range counts as [`HIGHEST_US`].
pub(crate) fn record(histogram: &mut Histogram<u64>, duration: Duration) {
    let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    histogram.saturating_record(us.clamp(LOWEST_US, HIGHEST_US));
}

pub(crate) fn add(histogram: &mut Histogram<u64>, other: &Histogram<u64>) {
    histogram.add(other).expect("both were made by `empty`, so the ranges are equal");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_is_kept_at_the_ends() {
        let mut histogram = empty();
        for duration in [Duration::ZERO, Duration::from_micros(5), Duration::from_secs(500)] {
            record(&mut histogram, duration);
        }
        assert_eq!(histogram.len(), 3);
        assert_eq!(histogram.min(), 1);
        assert!(histogram.max() >= 119_900_000, "{}", histogram.max());
    }
}
