//! Opening the files of a record, which may come from an untrusted source: no other module opens one.
//!
//! Owns the refusals before a byte is read. It refuses a link, which could lead to any file of this machine. It
//! refuses anything but a regular file: a reader of a pipe waits for ever, and a device has no end. It refuses files
//! larger than any run writes, one by one and together.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::Error;
use super::files::io_error;

/// Bytes read of one record: one and a half times the 200 MB that all files of a run of 100 hours have together.
pub(super) const RECORD_BYTES_MAX: u64 = 300 << 20;
/// Bytes of a file that is read as a whole. A manifest holds the scenario, whose longest part is a script of a few
/// thousand steps.
const WHOLE_BYTES_MAX: u64 = 16 << 20;

/// A record's folder, and the number of bytes that may still be read from it.
pub(super) struct Folder<'a> {
    dir: &'a Path,
    left: u64,
}

impl<'a> Folder<'a> {
    /// The folder that the caller names. The folder may be reached through a link; its files may not.
    pub(super) fn at(dir: &'a Path) -> Self {
        Self { dir, left: RECORD_BYTES_MAX }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Whether an entry of that name exists, of any kind.
    pub(super) fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// Whether a regular file of that name exists.
    pub(super) fn has_file(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok_and(|about| about.is_file())
    }

    /// Opens a regular file that is read line by line; none if no entry of that name exists.
    pub(super) fn open(&mut self, name: &str) -> Result<Option<File>, Error> {
        self.take(name, self.left)
    }

    /// Reads a small file; none if no entry of that name exists.
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

/// Reads a file of a record as a whole, to show it unchanged; none if no entry of that name exists.
pub fn file_of(dir: &Path, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    let path = dir.join(name);
    let Some((file, _)) = checked(&path, limit)? else { return Ok(None) };
    to_end(file, limit, &path).map(Some)
}

/// Reads no more than the limit, although the file may have grown since its length was checked.
fn to_end(file: File, limit: u64, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(io_error("read", path))?;
    Ok(bytes)
}

/// The opened file and its length. The check follows the opening, so that the checked file is the one that is read.
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

    /// All files together have a bound, however small each one is.
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
