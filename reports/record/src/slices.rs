//! Adds up histograms over ranges of time (slices) before they are written to `latency.hlog`, so that the file of a
//! long run stays small.
//!
//! Owns the length of a time slice. If a run is killed, no latency is lost: a second file (`latency.open.hlog`) holds
//! the incomplete time slices and is written again at each interval. The module does not know phases: the caller closes
//! the time slices when the phase changes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use statistics::hlog::{self, Histogram};

use super::files::{io_error, write_bytes};
use super::latency::HistogramLog;
use super::{Error, file};

/// The first milliseconds of a run, in which each histogram is written without adding it to others.
const SINGLE_MS: u64 = 3600 * 1000;
/// After [`SINGLE_MS`], a time slice is as long as the run so far divided by this number, so that a chart has a point
/// for each two or three pixels.
const PARTS: u64 = 240;
/// Shortest and longest time slice, in milliseconds. With time slices of 60 s in the whole run, the latencies of 100
/// hours would be 36 MB.
const SLICE_MS_LEAST: u64 = 60_000;
const SLICE_MS_MOST: u64 = 600_000;

/// `latency.hlog`, and the histograms of incomplete time slices.
pub(super) struct Slices {
    log: HistogramLog,
    open: BTreeMap<String, OpenSlice>,
    open_path: PathBuf,
    /// Whether the file of incomplete time slices exists, and whether its contents are current.
    open_written: bool,
    open_current: bool,
}

struct OpenSlice {
    start_ms: u64,
    end_ms: u64,
    histogram: Histogram,
}

impl Slices {
    pub(super) fn create(dir: &Path, started_at: &str) -> Result<Self, Error> {
        Ok(Self {
            log: HistogramLog::create(dir.join(file::LATENCY), started_at)?,
            open: BTreeMap::new(),
            open_path: dir.join(file::LATENCY_OPEN),
            open_written: false,
            open_current: true,
        })
    }

    /// Adds a histogram that was recorded from `start_ms` to `end_ms`.
    pub(super) fn add(&mut self, tag: &str, start_ms: u64, end_ms: u64, histogram: &Histogram) -> Result<(), Error> {
        if start_ms < SINGLE_MS {
            return self.log.append(tag, start_ms, end_ms, histogram);
        }
        self.open_current = false;
        let Some(slice) = self.open.get_mut(tag) else {
            self.open.insert(tag.to_owned(), OpenSlice { start_ms, end_ms, histogram: hlog::growing(histogram) });
            return Ok(());
        };
        slice.end_ms = slice.end_ms.max(end_ms);
        hlog::add(&mut slice.histogram, histogram).map_err(|error| self.log.error(&error))?;
        let long = (slice.start_ms / PARTS).clamp(SLICE_MS_LEAST, SLICE_MS_MOST);
        if slice.end_ms.saturating_sub(slice.start_ms) < long {
            return Ok(());
        }
        let Some(full) = self.open.remove(tag) else { return Ok(()) };
        self.log.append(tag, full.start_ms, full.end_ms, &full.histogram)
    }

    /// Closes one of the incomplete time slices and returns the result of writing it; none if no time slice is
    /// incomplete.
    pub(super) fn close_one(&mut self) -> Option<Result<(), Error>> {
        let (tag, slice) = self.open.pop_first()?;
        self.open_current = false;
        Some(self.log.append(&tag, slice.start_ms, slice.end_ms, &slice.histogram))
    }

    /// Writes all complete and incomplete time slices to the operating system. On a full disk the file of incomplete
    /// time slices keeps the state of the last interval. No latency is lost, because memory still holds these time
    /// slices.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.log.flush()?;
        if self.open_current {
            return Ok(());
        }
        if self.open.is_empty() {
            if std::mem::take(&mut self.open_written) {
                match fs::remove_file(&self.open_path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(io_error("remove", &self.open_path)(error));
                    }
                    _ => {}
                }
            }
            self.open_current = true;
            return Ok(());
        }
        let mut text = Vec::new();
        for (tag, slice) in &self.open {
            text.extend(self.log.line(tag, slice.start_ms, slice.end_ms, &slice.histogram)?);
        }
        write_bytes(&self.open_path, &text)?;
        self.open_written = true;
        self.open_current = true;
        Ok(())
    }

    pub(super) fn rows_waiting(&self) -> u64 {
        self.log.rows_waiting()
    }
}
