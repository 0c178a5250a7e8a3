//! A file to which whole rows are appended, and which can still be used after the disk was full.
//!
//! Owns the rows that wait to be written. If the disk is full for a while, rows wait in bounded memory and are written
//! when there is room again. Each row is in the file completely or not at all, so that a file with lost rows can still
//! be read.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Error;
use super::files::io_error;

/// Number of bytes written to the operating system at once.
const CHUNK_BYTES: usize = 8 << 10;
/// Maximum number of bytes that wait for room on the disk: some minutes of the largest file of a record.
const WAITING_BYTES_MAX: usize = 1 << 20;

pub(super) struct Sink {
    path: PathBuf,
    out: File,
    waiting: Vec<u8>,
}

impl Sink {
    /// Creates the file; an existing file is emptied.
    pub(super) fn create(path: PathBuf) -> Result<Self, Error> {
        let out = File::create(&path).map_err(io_error("create", &path))?;
        Ok(Self { path, out, waiting: Vec::new() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a row, which may wait for the next flush. An error means that this row is lost; earlier rows are kept in
    /// memory until they are written.
    pub(super) fn append(&mut self, row: &[u8]) -> Result<(), Error> {
        if !self.waiting.is_empty() && self.waiting.len() + row.len() > CHUNK_BYTES {
            match self.flush() {
                Err(error) if !error.is_full() || self.waiting.len() + row.len() > WAITING_BYTES_MAX => {
                    return Err(error);
                }
                _ => {}
            }
        }
        self.waiting.extend_from_slice(row);
        Ok(())
    }

    /// Writes all rows to the operating system. After an error the unwritten rows are kept in memory until they are
    /// written.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        let mut taken = 0;
        let result = loop {
            if taken == self.waiting.len() {
                break Ok(());
            }
            match self.out.write(&self.waiting[taken..]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => taken += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.waiting.drain(..taken);
        result.map_err(io_error("write", &self.path))
    }

    pub(super) fn rows_waiting(&self) -> u64 {
        self.waiting.split_inclusive(|byte| *byte == b'\n').count() as u64
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map_err(Error::into_io)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::flush(self).map_err(Error::into_io)
    }
}
