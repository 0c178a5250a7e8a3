//! Writes and reads one line of an interval log: a tag, a time range and a histogram.

use std::time::Duration;

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag};

use super::{Histogram, packed};

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The tag of the line; empty if the line has none.
    pub tag: String,
    /// The start of the time range, from the start of the log.
    pub start_ms: u64,
    /// The end of the time range, from the start of the log.
    pub end_ms: u64,
    pub histogram: Histogram,
}

#[derive(Default)]
pub struct Lines(V2DeflateSerializer);

impl Lines {
    /// The text of a line with a histogram, with its line end.
    ///
    /// # Errors
    /// Returns the reason if the tag has a comma, space or line end.
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

/// Reads a line of the log; none if it is a comment or the legend. `highest_us` is the largest value that a run can
/// have. A histogram is refused before memory is allocated if its range is larger, or if it needs more memory than this
/// range.
///
/// # Errors
/// The error says what is wrong with the line.
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
