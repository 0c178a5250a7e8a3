//! Writes `end.json`, the last file of a record. Room on the disk is reserved for `end.json` at the start of the run.
//!
//! Owns `end.json` until the file is written. A full disk ends many runs, and a record without `end.json` looks like
//! the record of a killed harness. So the module reserves the room at the start of a run and writes `end.json` into
//! that room.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::files::{chain, io_error};
use super::{End, EndReason, Error};

/// Bytes reserved for an `end.json` with the last lines of a subject: twelve lines of 300 characters of up to four
/// bytes.
const RESERVED_BYTES: usize = 16 << 10;

pub(super) struct Last {
    path: PathBuf,
    part: PathBuf,
    room: File,
}

impl Last {
    /// Reserves the room for the file at `path` by a file with another name.
    pub fn reserve(path: PathBuf) -> Result<Self, Error> {
        let part = path.with_extension("part");
        let mut room = File::create(&part).map_err(io_error("create", &part))?;
        // Real bytes, not a sparse file: only written bytes have their place on the disk.
        room.write_all(&[b' '; RESERVED_BYTES]).map_err(io_error("write", &part))?;
        Ok(Self { path, part, room })
    }

    /// Writes `end.json`. The file appears complete or not at all; an end that is larger than the reserved room is
    /// shortened and marked as shortened.
    pub fn say(&mut self, end: &End) -> Result<(), Error> {
        self.write(end).or_else(|error| {
            let reason = EndReason::HarnessError { detail: chain(&error) };
            self.write(&End { ended_ms: end.ended_ms, reason, lost: end.lost, holes: Vec::new() })
        })?;
        fs::rename(&self.part, &self.path).map_err(io_error("write", &self.path))
    }

    fn write(&mut self, end: &End) -> Result<(), Error> {
        let mut bytes =
            serde_json::to_vec_pretty(end).map_err(|source| Error::Encode { path: self.path.clone(), source })?;
        bytes.push(b'\n');
        let length = bytes.len() as u64;
        let written = self.room.seek(SeekFrom::Start(0)).and_then(|_| self.room.write_all(&bytes));
        written.and_then(|()| self.room.set_len(length)).map_err(io_error("write", &self.part))
    }
}
