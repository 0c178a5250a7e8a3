//! `commits.jsonl.zst` and `observations.jsonl.zst`: every single version that was written and every single
//! observation, recorded only on request.
//!
//! Owns their rows and how they are read. Judges do not read them, because most records do not have them: they are
//! for people, and for the story of a short run.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::files::io_error;
use super::open::Folder;
use super::{CommitEvent, Error, file};
use facts::Observation;

/// Rows of each file that are read. A story covers a run of a minute, which has a few thousand.
pub const EVENTS_MAX: usize = 200_000;
/// A row is below 1 KiB.
const LINE_BYTES_MAX: u64 = 1 << 13;
/// Bytes unpacked from each file, however small it is on the disk: [`EVENTS_MAX`] rows of half a kilobyte.
const UNPACKED_BYTES_MAX: u64 = 128 << 20;
/// The writer packs with a window of 2 MiB.
const WINDOW_LOG_MAX: u32 = 23;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Events {
    /// In the order of writing.
    pub commits: Vec<CommitEvent>,
    /// In the order of arrival.
    pub observations: Vec<Observation>,
}

impl Events {
    /// Reads the events in a record's directory: the first [`EVENTS_MAX`] of each kind, none if the run did not keep
    /// them. If the end of a file is torn, the rows before it are read.
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
