//! Reading a run record, including one of a run that was killed half-way.
//!
//! Owns the rules for damaged files. An incomplete last line or a missing file becomes a note; any other damage is an
//! error with file and line. The reader judges nothing: the judge of validity decides the effect of each note on the
//! verdict.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::files::io_error;
use super::latency::{Frame, Latency};
use super::open::{Folder, RECORD_BYTES_MAX};
use super::times::{self, TIME_MS_MAX, Times};
use super::writer::ALL_SAMPLES_MS;
use super::{
    AnomalyRow, Answers, CrashRow, End, EndState, Error, EventCounts, FaultRow, Interval, Manifest, MetricsRow,
    Objects, PLANNED_FAULTS_MAX, Phase, Phases, Requests, SCHEMA, Sample, file,
};

/// Maximum number of log files of a control plane that are listed; a control plane has three or four.
const LOGS_MAX: usize = 20;
/// Maximum number of entries of the log folder that are examined.
const ENTRIES_MAX: usize = 1000;
/// The minimum time between two samples, in milliseconds, if a run kept one sample of each interval: a little less than
/// an interval.
const APART_MS: u64 = 4000;
/// Maximum length of a row, in bytes: far more than the writer needs for its capped fields.
const ROW_BYTES_MAX: u64 = 1 << 20;

/// Maximum number of lines of `story.txt`: far more than the run of a documented bug writes.
const STORY_LINES_MAX: usize = 1000;

#[derive(Debug)]
pub struct Record {
    /// The plan of the run.
    pub manifest: Manifest,
    /// One row for each interval, in order of time.
    pub intervals: Vec<Interval>,
    /// Resource samples, in order of time.
    pub samples: Vec<Sample>,
    /// The events of the faults, in order of time.
    pub faults: Vec<FaultRow>,
    /// Anomalies: outcomes that are neither observed nor coalesced; their number is capped by the writer.
    pub anomalies: Vec<AnomalyRow>,
    /// Readings of the subject's own metrics, in order of time; empty if they were not read.
    pub metrics: Vec<MetricsRow>,
    /// Processes of the subject that ended by themselves and were started again, in order of time.
    pub crashes: Vec<CrashRow>,
    /// The subject's requests to the control plane; empty if the control plane does not record them.
    pub requests: Requests,
    pub latency: Latency,
    /// The state after the drain; none if no budget needs it, or the run did not reach the end.
    pub end_state: Option<EndState>,
    /// Facts from the control plane's objects; none in records that are older than `objects.json`.
    pub objects: Option<Objects>,
    /// The answers of webhooks that were asked again; none if no budget needs them, or the run did not reach its end.
    pub answers: Option<Answers>,
    /// How the run ended; none if the harness was killed.
    pub end: Option<End>,
    /// The lines of `story.txt` in the record's directory; empty if the file does not exist.
    pub story: Vec<String>,
    /// Problems with the files of the record, for people.
    pub notes: Vec<String>,
    /// The files that exist: those of [`file::DESCRIBED`], then those of the folder [`file::CONTROL_PLANE`].
    pub files: Vec<RecordFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFile {
    /// The file's path relative to the record's directory.
    pub name: String,
    /// A description of the file's contents, for people.
    pub what: &'static str,
}

impl Record {
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let mut folder = Folder::at(dir);
        let folder = &mut folder;
        let manifest = read_manifest(dir, folder)?;
        let mut notes = Vec::new();
        let intervals: Vec<Interval> = read_rows(folder, file::INTERVALS, &mut notes)?;
        let samples: Vec<Sample> = read_rows(folder, file::SAMPLES, &mut notes)?;
        let faults = read_rows(folder, file::FAULTS, &mut notes)?;
        let anomalies = read_rows(folder, file::ANOMALIES, &mut notes)?;
        let metrics = read_rows_if_told(folder, file::METRICS, &mut notes)?;
        let crashes = read_rows_if_told(folder, file::CRASHES, &mut notes)?;
        let requests = read_requests(folder, &mut notes)?;
        let end_state = read_one(folder, file::END_STATE)?;
        let objects = read_one(folder, file::OBJECTS)?;
        let answers = read_one(folder, file::ANSWERS)?;
        let end = read_end(folder, &mut notes)?;
        let length_ms = length_ms(&intervals, &samples);
        let frame = Frame { phase_at: &|t_ms| phase_at(&intervals, &manifest.phases, t_ms), length_ms };
        let mut logs = Vec::new();
        for name in [file::LATENCY, file::LATENCY_OPEN] {
            match folder.open(name)? {
                Some(input) => logs.push((input, folder.path(name))),
                None if name == file::LATENCY => notes.push(format!("{name} is missing")),
                None => {}
            }
        }
        let latency = Latency::read(&mut logs, &frame, &mut notes)?;
        let story = read_story(folder)?;
        let files = files(folder);
        Ok(Self {
            manifest,
            intervals,
            samples,
            faults,
            anomalies,
            metrics,
            crashes,
            requests,
            latency,
            end_state,
            objects,
            answers,
            end,
            story,
            notes,
            files,
        })
    }

    /// The end of the recorded facts, in milliseconds.
    pub fn length_ms(&self) -> u64 {
        length_ms(&self.intervals, &self.samples)
    }

    /// The sum of the outcomes of all intervals.
    pub fn totals(&self) -> EventCounts {
        self.intervals.iter().fold(EventCounts::default(), |sum, row| sum + row.events)
    }

    /// The phase of the run at `t_ms`, from the intervals, or from the plan if the record has no intervals.
    pub fn phase_at(&self, t_ms: u64) -> Phase {
        phase_at(&self.intervals, &self.manifest.phases, t_ms)
    }

    /// The events of each fault, in order of time. The key is the fault's identifier.
    pub fn fault_rows(&self) -> BTreeMap<&str, Vec<&FaultRow>> {
        let mut rows: BTreeMap<&str, Vec<&FaultRow>> = BTreeMap::new();
        for row in &self.faults {
            rows.entry(&row.id).or_default().push(row);
        }
        rows
    }

    /// The samples of the steady phase at even distances, although the first hours of the run were sampled more
    /// densely. No two samples are of the same moment.
    pub fn samples_in_turn(&self) -> impl Iterator<Item = &Sample> {
        let apart_ms = if self.length_ms() > ALL_SAMPLES_MS { APART_MS } else { 1 };
        let mut due_ms = 0;
        self.samples.iter().filter(move |row| {
            let taken = !row.peak && row.t_ms >= due_ms && self.phase_at(row.t_ms) == Phase::Steady;
            if taken {
                due_ms = row.t_ms + apart_ms;
            }
            taken
        })
    }

    /// Whether the last interval was written after the ledger was finished: only then all missed versions are counted.
    pub fn finished(&self) -> bool {
        self.intervals.last().is_some_and(|row| row.last)
    }
}

fn length_ms(intervals: &[Interval], samples: &[Sample]) -> u64 {
    let intervals = intervals.last().map_or(0, |row| row.end_ms);
    intervals.max(samples.last().map_or(0, |row| row.t_ms))
}

fn phase_at(intervals: &[Interval], plan: &Phases, t_ms: u64) -> Phase {
    let next = intervals.partition_point(|row| row.end_ms <= t_ms);
    if let Some(row) = intervals.get(next)
        && row.start_ms <= t_ms
    {
        return row.phase;
    }
    match t_ms {
        t if t < plan.warm_up_ms => Phase::WarmUp,
        t if t < plan.warm_up_ms + plan.steady_ms => Phase::Steady,
        _ => Phase::Drain,
    }
}

fn read_manifest(dir: &Path, folder: &mut Folder<'_>) -> Result<Manifest, Error> {
    /// The schema that the manifest names, which is read first, so that a manifest of another schema version gives an
    /// error about its schema and not about its fields.
    #[derive(Deserialize)]
    struct Version {
        schema: Option<String>,
    }
    let path = folder.path(file::MANIFEST);
    let Some(text) = folder.whole(file::MANIFEST)? else { return Err(Error::NotARecord { path: dir.to_owned() }) };
    let broken = |source: serde_json::Error| Error::Row { path: path.clone(), line: source.line(), source };
    let version: Version = serde_json::from_slice(&text).map_err(broken)?;
    match version.schema {
        Some(schema) if schema == SCHEMA => {
            let manifest: Manifest = serde_json::from_slice(&text).map_err(broken)?;
            in_time(&manifest, &path, 1)?;
            if manifest.faults.len() > PLANNED_FAULTS_MAX {
                return Err(Error::TooMany { path, limit: PLANNED_FAULTS_MAX });
            }
            Ok(manifest)
        }
        other => Err(Error::Schema { path, found: other.unwrap_or_else(|| "none".to_owned()) }),
    }
}

/// The files of the record that exist. In the folder of the control plane's logs, names that no control plane program
/// uses are left out. If that folder is a link, all its files are left out.
fn files(folder: &Folder<'_>) -> Vec<RecordFile> {
    let described = file::DESCRIBED.into_iter().filter(|(name, _)| folder.has_file(name));
    let mut files: Vec<RecordFile> = described.map(|(name, what)| RecordFile { name: name.to_owned(), what }).collect();
    let logs =
        Some(folder.path(file::CONTROL_PLANE)).filter(|logs| logs.symlink_metadata().is_ok_and(|is| is.is_dir()));
    let entries = logs.and_then(|logs| std::fs::read_dir(logs).ok()).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let plain = |name: &String| name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
    let regular = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    let logs = entries.filter(regular).filter_map(|entry| entry.file_name().into_string().ok()).filter(plain);
    let mut logs: Vec<String> = logs.take(LOGS_MAX).collect();
    // A folder has no order of its own.
    logs.sort_unstable();
    let log = |name| RecordFile { name: format!("{}/{name}", file::CONTROL_PLANE), what: file::CONTROL_PLANE_DOC };
    files.extend(logs.into_iter().map(log));
    files
}

fn read_end(folder: &mut Folder<'_>, notes: &mut Vec<String>) -> Result<Option<End>, Error> {
    let end = read_one(folder, file::END)?;
    if end.is_none() {
        notes.push(format!("{} is missing: the harness was killed", file::END));
    }
    Ok(end)
}

/// Reads a file of the record with one row; none if the file does not exist.
fn read_one<T: DeserializeOwned + Times>(folder: &mut Folder<'_>, name: &'static str) -> Result<Option<T>, Error> {
    let path = folder.path(name);
    let Some(text) = folder.whole(name)? else { return Ok(None) };
    let broken = |source: serde_json::Error| Error::Row { path: path.clone(), line: source.line(), source };
    let row = serde_json::from_slice(&text).map_err(broken)?;
    in_bounds(&row, &text, &path, 1)?;
    Ok(Some(row))
}

/// Reads `story.txt`, the text about the run for people. Bytes that are not UTF-8 are replaced, because judges do not
/// read this file.
fn read_story(folder: &mut Folder<'_>) -> Result<Vec<String>, Error> {
    let text = folder.whole(file::STORY)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&text).lines().take(STORY_LINES_MAX).map(str::to_owned).collect())
}

/// Reads the rows of `requests.jsonl`. A missing file needs no note: not every control plane reports the author of each
/// request.
fn read_requests(folder: &mut Folder<'_>, notes: &mut Vec<String>) -> Result<Requests, Error> {
    let told = folder.has(file::REQUESTS);
    Ok(Requests::from_lines(read_rows_if_told(folder, file::REQUESTS, notes)?, told))
}

/// Reads the rows of a file that many runs do not write.
fn read_rows_if_told<T: DeserializeOwned + Times>(
    folder: &mut Folder<'_>,
    name: &'static str,
    notes: &mut Vec<String>,
) -> Result<Vec<T>, Error> {
    if folder.has(name) { read_rows(folder, name, notes) } else { Ok(Vec::new()) }
}

/// Maximum number of rows that are read of a file: the writer's limit, or the number of rows of a run of 300 hours.
fn rows_max(name: &str) -> usize {
    const INTERVALS: usize = 300 * 720;
    match name {
        file::INTERVALS => INTERVALS,
        // Two for each interval, and all of the first two hours.
        file::SAMPLES | file::METRICS => 2 * INTERVALS + 7200,
        // Requests with a line of their own, twice, and a sum for each interval.
        file::REQUESTS => 2 * REQUEST_LINES + INTERVALS,
        // A start, an end, the hits that have rows and their doublings.
        file::FAULTS => 10 * PLANNED_FAULTS_MAX,
        // The rows of ten outcomes; other files have fewer.
        _ => 50_000,
    }
}

const REQUEST_LINES: usize = 20_000;
const _: () = assert!(REQUEST_LINES as u64 == super::REQUEST_LINES_MAX);

fn read_rows<T: DeserializeOwned + Times>(
    folder: &mut Folder<'_>,
    name: &'static str,
    notes: &mut Vec<String>,
) -> Result<Vec<T>, Error> {
    let path = folder.path(name);
    let Some(file) = folder.open(name)? else {
        notes.push(format!("{name} is missing"));
        return Ok(Vec::new());
    };
    let limit = rows_max(name);
    // The limit holds even if the file grows while it is read.
    let mut input = BufReader::new(file.take(RECORD_BYTES_MAX));
    let mut rows = Vec::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        (&mut input).take(ROW_BYTES_MAX).read_until(b'\n', &mut line).map_err(io_error("read", &path))?;
        if line.is_empty() {
            break;
        }
        if rows.len() == limit {
            return Err(Error::TooMany { path, limit });
        }
        match serde_json::from_slice(&line) {
            Ok(row) => {
                in_bounds(&row, &line, &path, number)?;
                rows.push(row);
            }
            Err(_) if at_end(&mut input) => {
                notes.push(format!("the last line of {name} is torn and was left out"));
                break;
            }
            Err(source) => return Err(Error::Row { path, line: number, source }),
        }
    }
    Ok(rows)
}

/// Refuses a row with a time or number that no run can reach. The error names file and line of the row.
fn in_bounds(row: &impl Times, json: &[u8], path: &Path, line: usize) -> Result<(), Error> {
    in_time(row, path, line)?;
    match times::too_long(json) {
        Some(digits) => Err(Error::Number { path: path.to_owned(), line, digits }),
        None => Ok(()),
    }
}

/// Like [`in_bounds`], but checks only times: the plan of a run may have a seed with any number of digits.
fn in_time(row: &impl Times, path: &Path, line: usize) -> Result<(), Error> {
    match row.latest_ms() {
        ..=TIME_MS_MAX => Ok(()),
        time_ms => Err(Error::Time { path: path.to_owned(), line, time_ms }),
    }
}

fn at_end(input: &mut impl BufRead) -> bool {
    input.fill_buf().is_ok_and(<[u8]>::is_empty)
}
