//! `commits.jsonl.zst` and `observations.jsonl.zst`: one row for every commit and every observation of a run, recorded
//! only on request.
//!
//! Owns the rows of these two files and their reader. Judges do not read the rows of commits and observations, because
//! most records do not have them. The rows are for people, and for the text `story.txt` of a short run.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::files::io_error;
use super::open::Folder;
use super::{CommitEvent, Error, file};
use facts::Observation;

/// Maximum number of rows that are read from each file. `story.txt` of a run of a minute needs a few thousand rows.
pub const EVENTS_MAX: usize = 200_000;
/// Maximum length of a row, in bytes; the writer's rows are shorter than 1 KiB.
const LINE_BYTES_MAX: u64 = 1 << 13;
/// Maximum number of bytes unpacked from each file, however small the file is on the disk: [`EVENTS_MAX`] rows of half
/// a kilobyte.
const UNPACKED_BYTES_MAX: u64 = 128 << 20;
/// The largest zstd window for unpacking, as a power of two in bytes. The writer packs with a window of 2 MiB.
const WINDOW_LOG_MAX: u32 = 23;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Events {
    /// The commits, in the order of writing.
    pub commits: Vec<CommitEvent>,
    /// The observations, in the order of arrival.
    pub observations: Vec<Observation>,
}

impl Events {
    /// Reads the first [`EVENTS_MAX`] commits and observations of a record's directory, or none if the run did not
    /// record them. If the last row of a file is incomplete, the rows before it are read.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Ok(Self { commits: read(dir, file::COMMITS)?, observations: read(dir, file::OBSERVATIONS)? })
    }
}

fn read<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<Vec<T>, Error> {
    let path = dir.join(name);
    let Some(file) = Folder::at(dir).open(name)? else { return Ok(Vec::new()) };
    let mut unpacked = zstd::stream::read::Decoder::new(file).map_err(io_error("read", &path))?;
    unpacked.window_log_max(WINDOW_LOG_MAX).map_err(io_error("read", &path))?;
    let mut input = BufReader::new(unpacked.take(UNPACKED_BYTES_MAX));
    let mut rows = Vec::new();
    let mut line = Vec::new();
    while rows.len() < EVENTS_MAX {
        line.clear();
        // A run that was killed leaves a frame without its end.
        if (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).is_err() || line.is_empty() {
            break;
        }
        let Ok(row) = serde_json::from_slice(&line) else { break };
        rows.push(row);
    }
    Ok(rows)
}
