//! `commits.jsonl.zst` and `observations.jsonl.zst`: every single version that was written and every one that was proven,
//! written only on request.
//!
//! Owns their rows and reading them. They are no input of judges, because most records do not have them: they are for people,
//! and for telling the story of a short run.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::files::io_error;
use super::open::Folder;
use super::{CommitEvent, Error, file};
use facts::Observation;

/// Rows of each file that are read. A story is told of a run of a minute, which has a few thousand.
pub const EVENTS_MAX: usize = 200_000;
/// A row is below 1 KiB.
const LINE_BYTES_MAX: u64 = 1 << 13;
/// What is unpacked of each file, however little of it is on the disk: so many rows of half a kilobyte.
const UNPACKED_BYTES_MAX: u64 = 128 << 20;
/// The window of what the writer packs has 2 MiB.
const WINDOW_LOG_MAX: u32 = 23;

/// The single events of a run that kept them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Events {
    /// What was written, in order.
    pub commits: Vec<CommitEvent>,
    /// What was proven, in order.
    pub observations: Vec<Observation>,
}

impl Events {
    /// Reads the events in a record's directory: the first [`EVENTS_MAX`] of each sort, none where they were not kept. A file whose
    /// end is torn is read up to there.
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
