//! Histograms of microseconds: adding them up, reading points off them, and their lines in HdrHistogram's interval log.
//!
//! Not generic, because adding and reading goes through some twenty thousand counts: this crate is optimized in every
//! profile, and its users need not be.

mod line;
mod packed;

pub use line::{Lines, Row, read};

/// A histogram whose values are microseconds.
pub type Histogram = hdrhistogram::Histogram<u64>;

/// Records a value. A value above the range of a histogram that does not resize counts as the end of the range.
pub fn record(histogram: &mut Histogram, us: u64) {
    histogram.saturating_record(us);
}

/// A copy that resizes by itself, so that any histogram can be added to it.
#[must_use]
pub fn growing(histogram: &Histogram) -> Histogram {
    let mut copy = histogram.clone();
    copy.auto(true);
    copy
}

/// Adds a histogram to one that resizes by itself.
///
/// # Errors
/// The reason, if the sum does not resize and its range is too small.
pub fn add(sum: &mut Histogram, part: &Histogram) -> Result<(), String> {
    sum.add(part).map_err(|error| error.to_string())
}

/// The value below which this part of all samples lies, from 0 to 1.
#[must_use]
pub fn value_at(histogram: &Histogram, quantile: f64) -> u64 {
    histogram.value_at_quantile(quantile)
}

/// Calls `see` with each recorded value, rounded down to the histogram's resolution, and its count; in rising order.
pub fn each_recorded(histogram: &Histogram, see: &mut dyn FnMut(u64, u64)) {
    for step in histogram.iter_recorded() {
        see(histogram.lowest_equivalent(step.value_iterated_to()), step.count_at_value());
    }
}
