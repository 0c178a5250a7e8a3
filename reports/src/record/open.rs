//! Opening the files of a record that somebody else may have made.
//!
//! Owns what is refused before a byte is read: what is no regular file, what is larger than any run writes. A reader of a pipe
//! waits for ever, and one of a device never comes to its end.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::Error;
use super::writer::io_error;

/// A file of a record: well above the 200 MB that all files of a run of 100 hours have together.
pub(super) const FILE_BYTES_MAX: u64 = 512 << 20;
/// A file that is read as a whole. A manifest holds the scenario, whose longest part is a script of a few thousand steps.
const WHOLE_BYTES_MAX: u64 = 16 << 20;

/// Opens a regular file of at most [`FILE_BYTES_MAX`]; none if there is nothing of that name.
pub(super) fn open(path: &Path) -> Result<Option<File>, Error> {
    checked(path, FILE_BYTES_MAX)
}

/// Reads a regular file of at most [`WHOLE_BYTES_MAX`]; none if there is nothing of that name.
pub(super) fn whole(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let Some(file) = checked(path, WHOLE_BYTES_MAX)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(WHOLE_BYTES_MAX).read_to_end(&mut bytes).map_err(io_error("read", path))?;
    Ok(Some(bytes))
}

fn checked(path: &Path, limit: u64) -> Result<Option<File>, Error> {
    // Before it is opened: opening a pipe waits for a writer.
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", path)(error)),
    };
    if !metadata.is_file() {
        return Err(Error::NotAFile { path: path.to_owned() });
    }
    if metadata.len() > limit {
        return Err(Error::TooLarge { path: path.to_owned(), bytes: metadata.len(), limit });
    }
    File::open(path).map(Some).map_err(io_error("read", path))
}
