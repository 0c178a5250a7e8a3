//! One line of an interval log: a tag, a stretch of time and a histogram.

use std::time::Duration;

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag};

use super::{Histogram, packed};

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Empty if the line has no tag.
    pub tag: String,
    /// Start of the stretch, counted from the log's own start.
    pub start_ms: u64,
    /// End of the stretch.
    pub end_ms: u64,
    pub histogram: Histogram,
}

#[derive(Default)]
pub struct Lines(V2DeflateSerializer);

impl Lines {
    /// The line of a histogram, with its end.
    ///
    /// # Errors
    /// The reason: a tag with a comma, space or line end.
    pub fn line(&mut self, tag: &str, start_ms: u64, end_ms: u64, histogram: &Histogram) -> Result<Vec<u8>, String> {
        let tag = Tag::new(tag).ok_or("a tag has no comma, space or line end")?;
        let length = Duration::from_millis(end_ms.saturating_sub(start_ms));
        let mut line = Vec::new();
        let mut log = IntervalLogWriterBuilder::new()
            .begin_log_with(&mut line, &mut self.0)
            .map_err(|error| error.to_string())?;
        log.write_histogram(histogram, Duration::from_millis(start_ms), length, Some(tag))
            .map_err(|error| error.to_string())?;
        Ok(line)
    }
}

/// Reads a line; none if it is a comment or the legend. `highest_us` is the largest value that a run can have: a
/// histogram of a larger range, or of more memory than such a range needs, is refused before memory is allocated for
/// it.
///
/// # Errors
/// The fault of the line.
pub fn read(line: &[u8], highest_us: u64) -> Result<Option<Row>, String> {
    let entry = match IntervalLogIterator::new(line).next() {
        Some(Ok(LogEntry::Interval(entry))) => entry,
        Some(Err(_)) => return Err("not a line of an HdrHistogram log".into()),
        Some(Ok(_)) | None => return Ok(None),
    };
    let histogram = packed::histogram(entry.encoded_histogram(), highest_us)?;
    let start_ms = millis(entry.start_timestamp());
    let end_ms = start_ms.saturating_add(millis(entry.duration()));
    Ok(Some(Row { tag: entry.tag().map_or("", |tag| tag.as_str()).to_owned(), start_ms, end_ms, histogram }))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.saturating_add(Duration::from_micros(500)).as_millis()).unwrap_or(u64::MAX)
}
