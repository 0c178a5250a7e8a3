//! Writing a run record while the run is under way.
//!
//! Owns the order in which the files of a record are written, and the limits on their rows. Rows are appended and
//! flushed at each interval, so that a killed run can be judged up to its last interval. The files of a run of 100
//! hours stay under 200 MB. The writer judges nothing.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use statistics::hlog::Histogram;

use super::files::{chain, io_error, write_bytes, write_whole};
use super::last::Last;
use super::requests::Cap;
use super::sink::Sink;
use super::slices::Slices;
use super::{
    AnomalyRow, CommitEvent, CrashRow, End, EndReason, EndState, Error, FaultEvent, FaultRow, Interval, Lost, Manifest,
    MetricsRow, Objects, Outcome, Phase, RequestLine, RequestRow, Sample, file,
};

/// Maximum number of rows of one outcome in `anomalies.jsonl`. Ten outcomes have rows, so the file has at most 10,000.
/// A limit for each outcome keeps very many duplicates from hiding the only missed version. The counts of outcomes in
/// the intervals have no limit.
pub const ANOMALY_ROWS_PER_OUTCOME: u64 = 1000;
/// Maximum number of lines of watch streams kept with an anomaly, and of characters kept of each line.
const WIRE_LINES: usize = 20;
const WIRE_LINE_CHARS: usize = 600;
/// The time at the start of a run, in milliseconds, in which every sample is kept. Later, only the last sample of each
/// interval is kept, and the sample with the largest resident set if it stands out. A sample has a row of about 430
/// bytes, so all samples of 100 hours would be 155 MB.
pub(crate) const ALL_SAMPLES_MS: u64 = 2 * 3600 * 1000;
/// Total length of the anomaly rows of one outcome, in bytes, up to which rows keep their lines of watch streams.
/// Without these lines a row is about 400 bytes. With all such lines the rows of ten outcomes could be 120 MB. A usual
/// row of an anomaly has less than 2 KiB.
const WIRE_BYTES_PER_OUTCOME: u64 = 2 << 20;
/// Total length of the anomaly rows of one outcome, in bytes, up to which rows keep the history of their object. The
/// history of an object has usually 2 KiB and at most 5 KiB.
const EVIDENCE_BYTES_PER_OUTCOME: u64 = 3 << 20;
/// Maximum number of hits of one fault that have a row each: more than people need to understand a run. A fault that
/// hits each event of a busy stream has thousands of hits.
const HIT_ROWS_MAX: u64 = 100;
/// Maximum number of hits of all faults that have a row each, 2.5 MB in sum. Of later hits, only the first hit of each
/// fault and each doubling of its hits have a row. Without this limit, 100 hours with one fault a minute would be 140
/// MB.
const HIT_ROWS_OF_ALL_MAX: u64 = 10_000;
/// A sample stands out if its resident set is more than this many times that of the interval's last sample, or larger
/// than in all earlier samples.
const PEAK_LEAST: f64 = 1.05;

/// Appends the facts of a run to its record.
pub struct Writer {
    dir: PathBuf,
    manifest: Manifest,
    last: Last,
    intervals: Rows,
    samples: Rows,
    faults: Rows,
    anomalies: Rows,
    latency: Slices,
    /// The files of commits and of observations; none if the run does not record them.
    events: Option<[Packed; 2]>,
    requests: Option<(Rows, Cap)>,
    metrics: Option<Rows>,
    crashes: Option<Rows>,
    /// The number of rows and of bytes of each outcome in `anomalies.jsonl`.
    anomaly_rows: BTreeMap<Outcome, (u64, u64)>,
    anomalies_dropped: u64,
    hit_rows: u64,
    phase: Option<Phase>,
    /// The two samples of the current interval that will be kept after [`ALL_SAMPLES_MS`]: the one with the largest
    /// resident set, and the last one.
    kept_samples: Option<(Sample, Sample)>,
    /// The largest resident set of all written samples, in bytes.
    largest_bytes: u64,
    lost: Option<Lost>,
    /// The time in the run until which no row was lost.
    whole_to_ms: u64,
}

/// A file of JSON lines.
struct Rows(Sink);

/// A file of JSON lines, compressed.
struct Packed {
    path: PathBuf,
    out: zstd::stream::write::Encoder<'static, Sink>,
}

impl Writer {
    /// Creates the directory of the record and writes the manifest. Returns an error if the directory already holds a
    /// record.
    pub fn create(dir: &Path, manifest: &Manifest) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(io_error("create", dir))?;
        let path = dir.join(file::MANIFEST);
        let mut text =
            serde_json::to_vec_pretty(manifest).map_err(|source| Error::Encode { path: path.clone(), source })?;
        text.push(b'\n');
        let mut out = OpenOptions::new().write(true).create_new(true).open(&path).map_err(io_error("create", &path))?;
        out.write_all(&text).map_err(io_error("write", &path))?;
        Ok(Self {
            dir: dir.to_owned(),
            manifest: manifest.clone(),
            last: Last::reserve(dir.join(file::END))?,
            intervals: Rows::create(dir.join(file::INTERVALS))?,
            samples: Rows::create(dir.join(file::SAMPLES))?,
            faults: Rows::create(dir.join(file::FAULTS))?,
            anomalies: Rows::create(dir.join(file::ANOMALIES))?,
            latency: Slices::create(dir, &manifest.started_at)?,
            events: None,
            requests: None,
            crashes: manifest.subject.restart.as_ref().map(|_| Rows::create(dir.join(file::CRASHES))).transpose()?,
            metrics: manifest.subject.metrics.as_ref().map(|_| Rows::create(dir.join(file::METRICS))).transpose()?,
            anomaly_rows: BTreeMap::new(),
            anomalies_dropped: 0,
            hit_rows: 0,
            phase: None,
            kept_samples: None,
            largest_bytes: 0,
            lost: None,
            whole_to_ms: 0,
        })
    }

    /// Writes the measured rate of the churn into the manifest, with a note for people, if the run had to measure the
    /// rate first.
    pub fn churn_rate(&mut self, per_second: f64, note: String) -> Result<(), Error> {
        self.manifest.churn_rate_per_second = Some(per_second);
        self.manifest.notes.push(note);
        let result = write_whole(&self.dir.join(file::MANIFEST), |bytes| {
            serde_json::to_writer_pretty(&mut *bytes, &self.manifest)?;
            bytes.push(b'\n');
            Ok(())
        });
        self.kept(result)
    }

    /// Lets the writer also record every commit and observation passed to [`Self::commit`] and [`Self::observation`].
    /// Only the length of the run limits the size of these two files.
    pub fn keep_events(mut self) -> Result<Self, Error> {
        let create = |name| Packed::create(self.dir.join(name));
        self.events = Some([create(file::COMMITS)?, create(file::OBSERVATIONS)?]);
        Ok(self)
    }

    /// Lets the writer also record the requests passed to [`Self::request`], because the control plane reports the
    /// author of each request. Without this call the record has no `requests.jsonl`, so that a missing record of
    /// requests is not taken for a silent subject.
    pub fn tell_requests(mut self) -> Result<Self, Error> {
        self.requests = Some((Rows::create(self.dir.join(file::REQUESTS))?, Cap::default()));
        Ok(self)
    }

    /// Appends an interval and flushes all files, so that the record is complete up to this interval.
    pub fn interval(&mut self, row: &Interval) -> Result<(), Error> {
        // A slice must not span a change of phase, or it would be judged in the wrong one.
        if self.phase != Some(row.phase) {
            self.phase = Some(row.phase);
            self.close_slices()?;
        }
        let summary = self.requests.as_mut().and_then(|(rows, cap)| Some((rows, cap.close(row.end_ms)?)));
        if let Some(result) = summary.map(|(rows, summary)| rows.append(&RequestLine::Summary(summary))) {
            self.kept(result)?;
        }
        let result = self.intervals.append(row);
        self.kept(result)?;
        self.flush()?;
        if self.rows_waiting() == 0 {
            self.whole_to_ms = row.end_ms;
            if let Some(Lost { to_ms: to @ None, .. }) = &mut self.lost {
                *to = Some(row.end_ms);
            }
        }
        Ok(())
    }

    /// Number of rows that wait for room on the disk; zero unless the disk is full.
    pub fn rows_waiting(&self) -> u64 {
        let files = [&self.intervals, &self.samples, &self.faults, &self.anomalies].into_iter();
        let files = files.chain(self.requests.iter().map(|(rows, _)| rows)).chain(&self.metrics).chain(&self.crashes);
        let rows: u64 = files.map(|rows| rows.0.rows_waiting()).sum();
        rows + self.latency.rows_waiting()
    }

    /// The rows that the record has lost to a full disk so far.
    pub fn lost(&self) -> Option<Lost> {
        self.lost
    }

    /// Counts a row that is lost to a full disk. The run continues after a row is lost, because later measurements are
    /// still valid.
    fn kept<T>(&mut self, result: Result<T, Error>) -> Result<(), Error> {
        match result {
            Err(error) if error.is_full() => {
                self.lose(1);
                Ok(())
            }
            other => other.map(drop),
        }
    }

    fn lose(&mut self, rows: u64) {
        let lost = self.lost.get_or_insert(Lost { rows: 0, from_ms: self.whole_to_ms, to_ms: None });
        lost.rows += rows;
        lost.to_ms = None;
    }

    /// Appends a sample. After two hours only the last sample of each interval and the sample with the largest resident
    /// set are kept.
    pub fn sample(&mut self, row: &Sample) -> Result<(), Error> {
        if row.t_ms < ALL_SAMPLES_MS {
            self.largest_bytes = self.largest_bytes.max(rss(row));
            let result = self.samples.append(row);
            return self.kept(result);
        }
        // Values that only some samples have are taken from the last sample that has them.
        let before = self.kept_samples.take();
        let last = before.as_ref().map_or_else(|| row.clone(), |(_, last)| carried(last, row));
        let peak = match before {
            Some((peak, _)) if rss(&peak) > rss(row) => peak,
            _ => row.clone(),
        };
        self.kept_samples = Some((peak, last));
        Ok(())
    }

    /// Appends the values of the subject's own metrics at one time, if the manifest lists the series to read.
    pub fn metrics(&mut self, row: &MetricsRow) -> Result<(), Error> {
        let result = self.metrics.as_mut().map_or(Ok(0), |rows| rows.append(row));
        self.kept(result)
    }

    /// Appends a crash, if the manifest says that the subject is started again after a crash.
    pub fn crash(&mut self, row: &CrashRow) -> Result<(), Error> {
        let result = self.crashes.as_mut().map_or(Ok(0), |rows| rows.append(row));
        self.kept(result)
    }

    /// Appends a row of a fault. If a fault has very many hits, only some hits have a row, and each row has the number
    /// of hits so far.
    pub fn fault(&mut self, row: &FaultRow) -> Result<(), Error> {
        if row.event == FaultEvent::Hit {
            let many = row.hits > HIT_ROWS_MAX || self.hit_rows >= HIT_ROWS_OF_ALL_MAX;
            if many && !row.hits.is_power_of_two() {
                return Ok(());
            }
            self.hit_rows += 1;
        }
        let result = self.faults.append(row);
        self.kept(result)
    }

    /// Appends an anomaly, unless the record already has [`ANOMALY_ROWS_PER_OUTCOME`] rows of its outcome.
    pub fn anomaly(&mut self, row: &AnomalyRow) -> Result<(), Error> {
        let (rows, bytes) = self.anomaly_rows.entry(row.outcome).or_default();
        if *rows >= ANOMALY_ROWS_PER_OUTCOME {
            self.anomalies_dropped += 1;
            return Ok(());
        }
        *rows += 1;
        let mut capped = row.clone();
        capped.wire.truncate(if *bytes < WIRE_BYTES_PER_OUTCOME { WIRE_LINES } else { 0 });
        for line in &mut capped.wire {
            if let Some((end, _)) = line.char_indices().nth(WIRE_LINE_CHARS) {
                line.truncate(end);
                line.push('…');
            }
        }
        if *bytes >= EVIDENCE_BYTES_PER_OUTCOME {
            capped.evidence = None;
        }
        if let Some(evidence) = &mut capped.evidence {
            evidence.bound(&row.revision);
        }
        let result = self.anomalies.append(&capped).map(|written| *bytes += written);
        self.kept(result)
    }

    /// Whether a further anomaly of this outcome would have a row. If a further anomaly would have no row, the caller
    /// need not gather evidence.
    pub fn wants(&self, outcome: Outcome) -> bool {
        self.anomaly_rows.get(&outcome).is_none_or(|(rows, _)| *rows < ANOMALY_ROWS_PER_OUTCOME)
    }

    /// Number of anomalies that were counted but have no row.
    pub fn anomalies_dropped(&self) -> u64 {
        self.anomalies_dropped
    }

    /// Appends a histogram of microseconds that was recorded from `start_ms` to `end_ms`; see [`super::tag`] for the tags.
    /// Empty histograms are not written.
    pub fn latency(&mut self, tag: &str, start_ms: u64, end_ms: u64, histogram: &Histogram) -> Result<(), Error> {
        if histogram.is_empty() {
            return Ok(());
        }
        let result = self.latency.add(tag, start_ms, end_ms, histogram);
        self.kept(result)
    }

    /// Appends a request of the subject, if [`Self::tell_requests`] was called. The caller passes a watch once when it
    /// is answered and once when it has ended. After [`super::REQUEST_LINES_MAX`] lines the writer only counts
    /// requests.
    pub fn request(&mut self, row: RequestRow) -> Result<(), Error> {
        let Some((rows, cap)) = &mut self.requests else { return Ok(()) };
        if !cap.admits(&row) {
            return Ok(());
        }
        let result = rows.append(&RequestLine::Request(Box::new(row)));
        self.kept(result)
    }

    /// Counts requests of the subject whose details are lost.
    pub fn requests_lost(&mut self, requests: u64) {
        if let Some((_, cap)) = &mut self.requests {
            cap.lost(requests);
        }
    }

    pub fn commit(&mut self, event: &CommitEvent) -> Result<(), Error> {
        let result = self.events.as_mut().map_or(Ok(()), |[commits, _]| commits.append(event));
        self.kept_event(result)
    }

    pub fn observation(&mut self, event: &facts::Observation) -> Result<(), Error> {
        let result = self.events.as_mut().map_or(Ok(()), |[_, observations]| observations.append(event));
        self.kept_event(result)
    }

    /// Handles a failed write of a compressed file of events. A compressed file cannot leave out a row, and this file
    /// grows fast. Recording of commits or observations therefore ends if the disk is full.
    fn kept_event(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        if result.as_ref().is_err_and(Error::is_full) {
            self.events = None;
        }
        self.kept(result)
    }

    /// Writes `end-state.json`, after the drain; the file appears completely or not at all.
    pub fn end_state(&mut self, state: &EndState) -> Result<(), Error> {
        self.whole(file::END_STATE, state)
    }

    /// Writes `objects.json`; the file appears completely or not at all.
    pub fn objects(&mut self, objects: &Objects) -> Result<(), Error> {
        self.whole(file::OBJECTS, objects)
    }

    fn whole(&mut self, name: &str, row: &impl Serialize) -> Result<(), Error> {
        let result = write_whole(&self.dir.join(name), |bytes| {
            serde_json::to_writer_pretty(&mut *bytes, row)?;
            bytes.push(b'\n');
            Ok(())
        });
        self.kept(result)
    }

    /// Writes `end.json`, after all other files; the file appears completely or not at all. If no other file can be
    /// written any more, `end.json` records the error, and the error is returned.
    pub fn end(&mut self, end: &End) -> Result<(), Error> {
        let result = self.finish();
        let waiting = self.rows_waiting();
        if waiting > 0 {
            self.lose(waiting);
        }
        let Err(error) = result else { return self.last.say(&End { lost: self.lost.or(end.lost), ..end.clone() }) };
        let detail = format!("the rest of the record could not be written: {}", chain(&error));
        let reason = match &end.reason {
            reason @ EndReason::HarnessError { .. } => reason.clone(),
            _ => EndReason::HarnessError { detail },
        };
        self.last.say(&End { ended_ms: end.ended_ms, reason, lost: self.lost, holes: end.holes.clone() })?;
        Err(error)
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.close_slices()?;
        self.flush()?;
        for Packed { path, out } in self.events.take().into_iter().flatten() {
            let result = out.finish().and_then(|mut file| Write::flush(&mut file)).map_err(io_error("write", &path));
            self.kept(result)?;
        }
        Ok(())
    }

    /// Writes all appended rows to the operating system, as far as the disk has room.
    pub fn flush(&mut self) -> Result<(), Error> {
        if let Some((peak, last)) = self.kept_samples.take() {
            let stands_out = rss(&peak) > self.largest_bytes || rss(&peak) as f64 > PEAK_LEAST * rss(&last) as f64;
            if peak.t_ms < last.t_ms && stands_out {
                let result = self.samples.append(&Sample { peak: true, ..peak });
                self.kept(result)?;
            }
            self.largest_bytes = self.largest_bytes.max(rss(&peak));
            let result = self.samples.append(&last);
            self.kept(result)?;
        }
        let files = [&mut self.intervals, &mut self.samples, &mut self.faults, &mut self.anomalies].into_iter();
        let requests = self.requests.as_mut().map(|(rows, _)| rows);
        let rows = files.chain(requests).chain(&mut self.metrics).chain(&mut self.crashes).map(|rows| rows.0.flush());
        let packed = self.events.iter_mut().flatten();
        let packed = packed.map(|Packed { path, out }| out.flush().map_err(io_error("write", path)));
        for result in rows.chain([self.latency.flush()]).chain(packed) {
            // Rows without room on the disk wait.
            result.or_else(|error| if error.is_full() { Ok(()) } else { Err(error) })?;
        }
        Ok(())
    }

    fn close_slices(&mut self) -> Result<(), Error> {
        while let Some(result) = self.latency.close_one() {
            self.kept(result)?;
        }
        Ok(())
    }
}

impl Drop for Writer {
    /// Flushes the appended rows of a run that ends by an error; `drop` cannot return errors.
    fn drop(&mut self) {
        let _ = self.close_slices();
        let _ = self.flush();
        for packed in self.events.take().into_iter().flatten() {
            let _ = packed.out.finish();
        }
    }
}

impl Packed {
    fn create(path: PathBuf) -> Result<Self, Error> {
        let sink = Sink::create(path.clone())?;
        let out = zstd::stream::write::Encoder::new(sink, 0).map_err(io_error("write", &path))?;
        Ok(Self { path, out })
    }

    fn append(&mut self, row: &impl Serialize) -> Result<(), Error> {
        let line = json_line(row, &self.path)?;
        self.out.write_all(&line).map_err(io_error("write", &self.path))
    }
}

impl Rows {
    fn create(path: PathBuf) -> Result<Self, Error> {
        Sink::create(path).map(Self)
    }

    fn append(&mut self, row: &impl Serialize) -> Result<u64, Error> {
        let line = json_line(row, self.0.path())?;
        self.0.append(&line)?;
        Ok(line.len() as u64)
    }
}

/// A row as JSON text, encoded in memory first: a row that cannot be encoded must not leave half a line in the file.
fn json_line(row: &impl Serialize, path: &Path) -> Result<Vec<u8>, Error> {
    let mut line = serde_json::to_vec(row).map_err(|source| Error::Encode { path: path.to_owned(), source })?;
    line.push(b'\n');
    Ok(line)
}

/// The sample `row`, with missing values taken from the previous sample of the same interval.
fn carried(before: &Sample, row: &Sample) -> Sample {
    let mut row = row.clone();
    row.sockets = row.sockets.or(before.sockets);
    row.cgroup = row.cgroup.or(before.cgroup);
    row.rollup_cost_us = row.rollup_cost_us.or(before.rollup_cost_us);
    if let (Some(subject), Some(before)) = (&mut row.subject, &before.subject) {
        subject.pss_bytes = subject.pss_bytes.or(before.pss_bytes);
    }
    row
}

fn rss(sample: &Sample) -> u64 {
    sample.subject.map_or(0, |process| process.rss_bytes)
}

/// Writes `story.txt`, a text about the run, into the record's directory for the reports.
pub fn tell_story(dir: &Path, lines: &[String]) -> Result<(), Error> {
    write_bytes(&dir.join(file::STORY), (lines.join("\n") + "\n").as_bytes())
}
