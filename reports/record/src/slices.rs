//! Histograms on their way into `latency.hlog`: a long run adds them up to slices first.
//!
//! Owns the length of a slice. A killed run loses no open slice: a second file holds the open slices and is written
//! anew at each interval. It must not know phases: the caller closes the slices when the phase changes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use statistics::hlog::{self, Histogram};

use super::files::{io_error, write_bytes};
use super::latency::HistogramLog;
use super::{Error, file};

/// The first part of a run, in which each histogram is written by itself.
const SINGLE_MS: u64 = 3600 * 1000;
/// Later a slice is this part of the run so far, so that a chart of the whole has a point for each two or three pixels.
const PARTS: u64 = 240;
/// The least and the greatest length of a slice. With 60 s throughout, the latencies of 100 hours would be 36 MB.
const SLICE_MS_LEAST: u64 = 60_000;
const SLICE_MS_MOST: u64 = 600_000;

/// `latency.hlog`, and the slices that wait to be written to it.
pub(super) struct Slices {
    log: HistogramLog,
    open: BTreeMap<String, OpenSlice>,
    open_path: PathBuf,
    /// Whether the file of open slices exists, and whether it is up to date.
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

    /// Closes one of the open slices and returns the result; none if no slice is open.
    pub(super) fn close_one(&mut self) -> Option<Result<(), Error>> {
        let (tag, slice) = self.open.pop_first()?;
        self.open_current = false;
        Some(self.log.append(&tag, slice.start_ms, slice.end_ms, &slice.histogram))
    }

    /// Writes everything to the operating system, including the open slices. On a full disk their file keeps the state
    /// of the last interval. Nothing is lost, because the slices are still in memory.
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
