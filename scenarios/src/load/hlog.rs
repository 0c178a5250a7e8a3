//! The `.hlog` file of a measurement: the histograms of every interval, in the standard HdrHistogram format, with the
//! tags of run records.

use std::path::Path;

use hdrhistogram::Histogram;
use loadgen::admission::Interval;
use reports::record::{Error, HistogramLog, tag};

/// The histograms of an interval with their tags, in a fixed order.
pub(crate) fn tagged(interval: &Interval) -> [(&'static str, &Histogram<u64>); 5] {
    [
        (tag::RESPONSE_ALLOWED, &interval.response_allowed),
        (tag::RESPONSE_DENIED, &interval.response_denied),
        (tag::RESPONSE_ERROR, &interval.response_error),
        (tag::SERVICE, &interval.service),
        (tag::LATENESS, &interval.lateness),
    ]
}

/// Like [`tagged`], with mutable histograms.
pub(crate) fn tagged_mut(interval: &mut Interval) -> [(&'static str, &mut Histogram<u64>); 5] {
    [
        (tag::RESPONSE_ALLOWED, &mut interval.response_allowed),
        (tag::RESPONSE_DENIED, &mut interval.response_denied),
        (tag::RESPONSE_ERROR, &mut interval.response_error),
        (tag::SERVICE, &mut interval.service),
        (tag::LATENESS, &mut interval.lateness),
    ]
}

pub(crate) struct Log(HistogramLog);

impl Log {
    /// Creates the `.hlog` file. Times in the file count from the creation of the file.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        HistogramLog::create(path.to_owned(), &jiff::Timestamp::now().to_string()).map(Self)
    }

    /// Appends the histograms of an interval, except empty histograms.
    pub(crate) fn append(&mut self, start_ms: u64, end_ms: u64, interval: &Interval) -> Result<(), Error> {
        for (tag, histogram) in tagged(interval).into_iter().filter(|(_, histogram)| !histogram.is_empty()) {
            self.0.append(tag, start_ms, end_ms, histogram)?;
        }
        self.0.flush()
    }
}
