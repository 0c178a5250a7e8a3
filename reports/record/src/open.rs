//! Opens the files of a record, which may come from an untrusted source. No other module opens a file of a record.
//!
//! Owns the checks of a file before its first byte is read. A link is refused, because it could lead to any file of
//! this machine. A pipe, a device or another special file is refused: a reader of a pipe waits for ever, and a device
//! has no end. A file larger than any run writes is refused, and so is a record whose files are together too large.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::Error;
use super::files::io_error;

/// Maximum number of bytes read of one record: one and a half times the 200 MB of all files of a run of 100 hours.
pub(super) const RECORD_BYTES_MAX: u64 = 300 << 20;
/// Maximum length, in bytes, of a file that is read as a whole. The largest such file is a manifest with a scenario
/// whose script has a few thousand steps.
const WHOLE_BYTES_MAX: u64 = 16 << 20;

/// A record's folder, and the number of bytes that may still be read from it.
pub(super) struct Folder<'a> {
    dir: &'a Path,
    left: u64,
}

impl<'a> Folder<'a> {
    /// The record's folder that the caller names. A path to the folder may contain links; the folder's files may not be
    /// links.
    pub(super) fn at(dir: &'a Path) -> Self {
        Self { dir, left: RECORD_BYTES_MAX }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Whether the folder has an entry of that name, of any kind.
    pub(super) fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    pub(super) fn has_file(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok_and(|about| about.is_file())
    }

    /// Opens a regular file for reading line by line; none if the folder has no entry of that name.
    pub(super) fn open(&mut self, name: &str) -> Result<Option<File>, Error> {
        self.take(name, self.left)
    }

    /// Reads a small file of the record; none if no entry of that name exists.
    pub(super) fn whole(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(file) = self.take(name, self.left.min(WHOLE_BYTES_MAX))? else { return Ok(None) };
        to_end(file, WHOLE_BYTES_MAX, &self.path(name)).map(Some)
    }

    fn take(&mut self, name: &str, limit: u64) -> Result<Option<File>, Error> {
        let Some((file, bytes)) = checked(&self.path(name), limit)? else { return Ok(None) };
        self.left = self.left.saturating_sub(bytes);
        Ok(Some(file))
    }
}

/// Reads a file of a record as a whole, to show it without changes; none if no entry of that name exists.
pub fn file_of(dir: &Path, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    let path = dir.join(name);
    let Some((file, _)) = checked(&path, limit)? else { return Ok(None) };
    to_end(file, limit, &path).map(Some)
}

/// Reads at most `limit` bytes of a file, which may have grown since its length was checked.
fn to_end(file: File, limit: u64, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(io_error("read", path))?;
    Ok(bytes)
}

/// Opens a file and checks it afterwards, so that the checked file is the one that is read. Returns the file and its
/// length.
fn checked(path: &Path, limit: u64) -> Result<Option<(File, u64)>, Error> {
    let not_a_file = || Error::NotAFile { path: path.to_owned() };
    // Opening a pipe does not wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        // A link or a socket.
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NXIO) => return Err(not_a_file()),
        Err(error) => return Err(io_error("read", path)(io::Error::from(error))),
    };
    let metadata = file.metadata().map_err(io_error("read", path))?;
    if !metadata.is_file() {
        return Err(not_a_file());
    }
    if metadata.len() > limit {
        return Err(Error::TooLarge { path: path.to_owned(), bytes: metadata.len(), limit });
    }
    Ok(Some((file, metadata.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of all files of a record together has a limit, however small each file is.
    #[test]
    fn what_is_left_to_read_gets_less() {
        let dir = tempfile::tempdir().unwrap();
        // Sparse files take no room on the disk.
        for name in ["a", "b"] {
            File::create(dir.path().join(name)).unwrap().set_len(RECORD_BYTES_MAX - 100).unwrap();
        }
        let mut folder = Folder::at(dir.path());
        assert!(folder.open("a").unwrap().is_some());
        assert!(matches!(folder.open("b"), Err(Error::TooLarge { limit: 100, .. })));
        assert!(folder.open("c").unwrap().is_none());
    }
}
