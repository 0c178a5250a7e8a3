//! Histograms of microseconds: adding them, reading quantiles, and their lines in HdrHistogram's interval log.
//!
//! Adding or reading a histogram goes through some twenty thousand counts. This code is not generic, so it is compiled
//! with this crate, which is optimized in every build profile.

mod line;
mod packed;

pub use line::{Lines, Row, read};

/// A histogram whose values are microseconds.
pub type Histogram = hdrhistogram::Histogram<u64>;

/// Records a value in a histogram. If a histogram that does not resize cannot hold the value, the value counts as the
/// largest value that the histogram can hold.
pub fn record(histogram: &mut Histogram, us: u64) {
    histogram.saturating_record(us);
}

/// A copy of a histogram that resizes by itself, so that any histogram can be added to it.
#[must_use]
pub fn growing(histogram: &Histogram) -> Histogram {
    let mut copy = histogram.clone();
    copy.auto(true);
    copy
}

/// Adds the histogram `part` to `sum`, which must resize by itself.
///
/// # Errors
/// Returns the reason if the sum does not resize and its range is too small.
pub fn add(sum: &mut Histogram, part: &Histogram) -> Result<(), String> {
    sum.add(part).map_err(|error| error.to_string())
}

/// The value below which the given fraction of all samples lies. `quantile` is from 0 to 1.
#[must_use]
pub fn value_at(histogram: &Histogram, quantile: f64) -> u64 {
    histogram.value_at_quantile(quantile)
}

/// Calls `see` with each recorded value, rounded down to the histogram's resolution, and its count, in rising order.
pub fn each_recorded(histogram: &Histogram, see: &mut dyn FnMut(u64, u64)) {
    for step in histogram.iter_recorded() {
        see(histogram.lowest_equivalent(step.value_iterated_to()), step.count_at_value());
    }
}
