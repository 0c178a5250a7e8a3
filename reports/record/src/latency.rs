//! `latency.hlog`: histograms in the standard interval log format of HdrHistogram, so that any tool that knows the
//! format can read it.
//!
//! Owns the tags, the lines and the reader of `latency.hlog`. The reader keeps totals for each tag and phase of a run,
//! and values for a few hundred time ranges for charts. A run of 100 hours has tens of thousands of lines, and the
//! reader never has them all in memory at once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use statistics::hlog::{self, Histogram, Lines, Row};

use super::files::io_error;
use super::sink::Sink;
use super::{Error, Phase, Quantiles, TIME_MS_MAX};

/// The tags of `latency.hlog`. All values are microseconds.
pub mod tag {
    /// Response time from the planned start of reviews that were allowed.
    pub const RESPONSE_ALLOWED: &str = "response.allowed";
    /// Response time from the planned start of reviews that were denied.
    pub const RESPONSE_DENIED: &str = "response.denied";
    /// Response time from the planned start of reviews without a valid answer.
    pub const RESPONSE_ERROR: &str = "response.error";
    /// Service time from the real start of all reviews.
    pub const SERVICE: &str = "service";
    /// How late the generator started reviews.
    pub const LATENESS: &str = "lateness";
    /// How late the generator started object changes.
    pub const CHURN_LATENESS: &str = "churn.lateness";
    /// Response time from the planned start of calls to the subject's API that read replica counts and lists.
    pub const CALLS_READ: &str = "calls.read";
    /// Response time from the planned start of calls to the subject's API that set replica counts.
    pub const CALLS_SET: &str = "calls.set";
    /// How late the generator started calls to the subject's API.
    pub const CALLS_LATENESS: &str = "calls.lateness";
    /// The age of the replica counts in answers of the subject's API.
    pub const CALLS_STALENESS: &str = "calls.staleness";
    /// Time from commit to observation, of commits made while no fault was active.
    pub const LAG: &str = "lag";
    /// Time from commit to observation, of commits made while a fault was active.
    pub const LAG_FAULTED: &str = "lag.faulted";
    /// Time from the commit of a late version to the observation that settled the version.
    pub const HEAL: &str = "heal";
    /// Not in the file: the sum of the three `response.*` tags.
    pub const RESPONSE: &str = "response";
}

pub const RESPONSE_TAGS: [&str; 3] = [tag::RESPONSE_ALLOWED, tag::RESPONSE_DENIED, tag::RESPONSE_ERROR];

/// Number of time slices (ranges) of a tag over the whole run: enough for a chart that is a thousand pixels wide.
const SLICES: u64 = 240;
/// Maximum length of a line of the log, in bytes. A histogram of three significant digits over the whole range needs
/// fewer bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of lines of `latency.hlog` and `latency.open.hlog` together: five times those of a run of 100 hours.
const LINES_MAX: usize = 200_000;
/// Maximum number of tags in one file, a few more than runs write. More tags mean a damaged file.
const TAGS_MAX: usize = 32;
/// Maximum number of time slices of one tag. If the lines of the log are in order of time, a tag has fewer time slices.
const SLICES_MAX: usize = 4800;

/// All latencies of a run: totals, and time slices for charts.
#[derive(Debug, Default)]
pub struct Latency {
    totals: BTreeMap<(String, Phase), Histogram>,
    slices: BTreeMap<String, Vec<Slice>>,
}

const BANDS_PER_DECADE: f64 = 5.0;
/// The decades that have their own bands, as powers of ten microseconds: 10 µs to 100 s. Latencies below or above these
/// decades count in the outermost bands.
const BAND_DECADES: (f64, f64) = (1.0, 8.0);
pub const BANDS: usize = 35;

/// A time range of the run and the distribution of its latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    pub start_ms: u64,
    pub end_ms: u64,
    pub quantiles: Quantiles,
    /// The number of samples in each band, from the quickest band. [`band_edge_us`] returns the lower edge of a band.
    pub bands: [u32; BANDS],
}

/// The lower edge of a band of latency, in microseconds.
pub fn band_edge_us(band: usize) -> f64 {
    10f64.powf(BAND_DECADES.0 + band as f64 / BANDS_PER_DECADE)
}

/// The number of samples of a histogram in each band.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place is from 0 to the number of bands")]
fn bands(histogram: &Histogram) -> [u32; BANDS] {
    let mut bands = [0_u32; BANDS];
    hlog::each_recorded(histogram, &mut |us, times| {
        let us = us.max(1) as f64;
        let place = (us.log10().clamp(BAND_DECADES.0, BAND_DECADES.1) - BAND_DECADES.0) * BANDS_PER_DECADE;
        // An edge belongs to the band that begins there, however its logarithm was rounded.
        let band = (place + 1e-9) as usize;
        let band = &mut bands[band.min(BANDS - 1)];
        *band = band.saturating_add(u32::try_from(times).unwrap_or(u32::MAX));
    });
    bands
}

/// The phases and the length of the run, which the reader of `latency.hlog` needs.
pub(super) struct Frame<'a> {
    pub phase_at: &'a dyn Fn(u64) -> Phase,
    pub length_ms: u64,
}

/// Writer of `latency.hlog`. Each interval is appended at once, so that intervals before an unexpected end can be read.
pub struct HistogramLog {
    out: Sink,
    lines: Lines,
}

struct OpenSlice {
    index: u64,
    start_ms: u64,
    end_ms: u64,
    histogram: Histogram,
}

impl Latency {
    pub fn in_phase(&self, tag: &str, phase: Phase) -> Option<&Histogram> {
        self.totals.get(&(tag.to_owned(), phase))
    }

    pub fn whole(&self, tag: &str) -> Option<Histogram> {
        let mut sum: Option<Histogram> = None;
        for phase in [Phase::WarmUp, Phase::Steady, Phase::Drain] {
            if let Some(part) = self.in_phase(tag, phase) {
                match &mut sum {
                    Some(sum) => merge(sum, part),
                    None => sum = Some(hlog::growing(part)),
                }
            }
        }
        sum
    }

    /// The latencies of a tag over time, in at most a few hundred time slices.
    pub fn slices(&self, tag: &str) -> &[Slice] {
        self.slices.get(tag).map_or(&[], Vec::as_slice)
    }

    /// Reads `latency.hlog`, and the time slices that a killed run had not completed. An incomplete last line is left
    /// out, and a note says so.
    pub(super) fn read(
        files: &mut [(File, PathBuf)],
        frame: &Frame<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let mut latency = Self::default();
        let mut open: BTreeMap<String, OpenSlice> = BTreeMap::new();
        for (input, path) in files {
            latency.read_file(input, path, &mut open, frame, notes)?;
        }
        for (tag, slice) in open {
            latency.close(&tag, &slice);
        }
        Ok(latency)
    }

    fn read_file(
        &mut self,
        input: &mut File,
        path: &Path,
        open: &mut BTreeMap<String, OpenSlice>,
        frame: &Frame<'_>,
        notes: &mut Vec<String>,
    ) -> Result<(), Error> {
        // Samples in an earlier file are not counted again from a later one.
        let known: BTreeMap<String, u64> = open.iter().map(|(tag, slice)| (tag.clone(), slice.end_ms)).collect();
        let width_ms = (frame.length_ms / SLICES).max(1);
        let mut input = BufReader::new(input);
        let mut line = Vec::new();
        for number in 1.. {
            if number > LINES_MAX {
                return Err(Error::TooMany { path: path.to_owned(), limit: LINES_MAX });
            }
            line.clear();
            (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(io_error("read", path))?;
            if line.is_empty() {
                break;
            }
            if line.last() != Some(&b'\n') {
                let name = path.file_name().unwrap_or_default().display();
                notes.push(format!("the last line of {name} is torn and was left out"));
                break;
            }
            let bad = |reason: &str| Error::HistogramRow { path: path.to_owned(), line: number, reason: reason.into() };
            let row = hlog::read(&line, TIME_MS_MAX * 1000).map_err(|reason| bad(&reason))?;
            let Some(Row { tag, start_ms, end_ms, histogram }) = row else { continue };
            if end_ms > TIME_MS_MAX {
                return Err(Error::Time { path: path.to_owned(), line: number, time_ms: end_ms });
            }
            if open.len() >= TAGS_MAX && !open.contains_key(&tag) {
                return Err(bad("more tags than Longhaul writes"));
            }
            if known.get(&tag).is_some_and(|known_ms| start_ms < *known_ms) {
                continue;
            }
            if self.slices(&tag).len() >= SLICES_MAX {
                return Err(bad("more slices of one tag than lines in order make"));
            }
            if RESPONSE_TAGS.contains(&tag.as_str()) {
                self.take_in(open, tag::RESPONSE, (start_ms, end_ms), &histogram, frame, width_ms);
            }
            self.take_in(open, &tag, (start_ms, end_ms), &histogram, frame, width_ms);
        }
        Ok(())
    }

    fn take_in(
        &mut self,
        open: &mut BTreeMap<String, OpenSlice>,
        tag: &str,
        (start_ms, end_ms): (u64, u64),
        histogram: &Histogram,
        frame: &Frame<'_>,
        width_ms: u64,
    ) {
        let phase = (frame.phase_at)(start_ms);
        self.totals
            .entry((tag.to_owned(), phase))
            .and_modify(|sum| merge(sum, histogram))
            .or_insert_with(|| hlog::growing(histogram));
        let index = start_ms / width_ms;
        if let Some(current) = open.get_mut(tag)
            && current.index == index
        {
            current.end_ms = current.end_ms.max(end_ms);
            merge(&mut current.histogram, histogram);
            return;
        }
        let fresh = OpenSlice { index, start_ms, end_ms, histogram: hlog::growing(histogram) };
        if let Some(done) = open.insert(tag.to_owned(), fresh) {
            self.close(tag, &done);
        }
    }

    fn close(&mut self, tag: &str, slice: &OpenSlice) {
        self.slices.entry(tag.to_owned()).or_default().push(Slice {
            start_ms: slice.start_ms,
            end_ms: slice.end_ms,
            quantiles: Quantiles::of(&slice.histogram),
            bands: bands(&slice.histogram),
        });
    }
}

fn merge(sum: &mut Histogram, part: &Histogram) {
    hlog::add(sum, part).expect("a histogram that resizes itself takes every value");
}

impl HistogramLog {
    /// Creates `latency.hlog` and writes its head. `started_at` is an RFC 3339 time, from which the times of the rows
    /// count.
    pub fn create(path: PathBuf, started_at: &str) -> Result<Self, Error> {
        let mut out = Sink::create(path)?;
        // Base and start time are the same: the time stamps of the lines count from the run's epoch.
        let epoch_seconds =
            started_at.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_millisecond) as f64 / 1e3;
        let head = format!(
            "#[Histogram log format version 1.3]\n#[Values are microseconds]\n\
             #[BaseTime: {epoch_seconds:.3} (seconds since epoch)]\n#[StartTime: {epoch_seconds:.3} (seconds since epoch)]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
        );
        out.append(head.as_bytes())?;
        Ok(Self { out, lines: Lines::default() })
    }

    /// Appends the histogram of an interval. If the error says that the disk is full ([`Error::is_full`]), only this
    /// histogram is lost. Histograms that were appended earlier stay buffered until the disk has room.
    pub fn append(&mut self, tag: &str, start_ms: u64, end_ms: u64, histogram: &Histogram) -> Result<(), Error> {
        let row = self.line(tag, start_ms, end_ms, histogram)?;
        self.out.append(&row)
    }

    pub(super) fn line(
        &mut self,
        tag: &str,
        start_ms: u64,
        end_ms: u64,
        histogram: &Histogram,
    ) -> Result<Vec<u8>, Error> {
        self.lines.line(tag, start_ms, end_ms, histogram).map_err(|reason| self.error(&reason))
    }

    /// Writes all buffered lines to the operating system.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.out.flush()
    }

    pub(super) fn rows_waiting(&self) -> u64 {
        self.out.rows_waiting()
    }

    pub(super) fn error(&self, reason: &dyn std::fmt::Display) -> Error {
        Error::Histogram { path: self.out.path().to_owned(), reason: reason.to_string() }
    }
}
