//! Unpacks the decompressed archive into the folder that will be served.
//!
//! Only files with names that a payload may contain are written, each name once, into a folder that this process has
//! made. So no file is written outside the folder, and no link is made. The index limits sizes and counts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use ruzstd::decoding::StreamingDecoder;

use crate::catalog::{CATALOG_BYTES_MAX, Catalog};
use crate::digest::Digest;
use crate::failure::Failure;
use crate::tar::{self, Entry};

/// Number of bytes that are copied from the decompressor to a file at one time.
const CARRIED_BYTES: usize = 64 << 10;
/// Maximum number of zero bytes after the end of the archive: some hundred times as many as `tar` writes with its
/// largest usual record. Without a limit, a few kilobytes of a compressed archive could unpack to gigabytes of zeros.
const ZEROS_BYTES_MAX: u64 = 4 << 20;
/// Maximum number of entries for folders: a payload has four folders, and some archivers repeat their entries.
const FOLDERS_MAX: u32 = 64;
pub const CATALOG: &str = "catalog";
pub const BLOBS: &str = "blobs/sha256";
/// The folder with lists of referrers: one file for each image.
pub const REFERRERS: &str = "referrers/sha256";
/// Folders that exist before the archive is unpacked; an archive may contain entries for them.
const FOLDERS: [&str; 4] = ["blobs", BLOBS, "referrers", REFERRERS];
/// Files of a payload other than blobs and lists of referrers. `index.json` and `oci-layout` make the payload an OCI
/// layout, which other tools can read.
const FILES: [&str; 3] = [CATALOG, "index.json", "oci-layout"];

#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Maximum number of bytes of all unpacked files together.
    pub bytes: u64,
    pub files: u32,
    /// Size of the window that the decompressor may use, in bytes.
    pub window_bytes: u32,
}

/// Decompresses `source` and unpacks it into `folder`, which this process has just made. Returns the catalog of the
/// payload.
pub fn unpack(source: impl Read, folder: &Path, bounds: Bounds) -> Result<Catalog, Failure> {
    for name in FOLDERS {
        let path = folder.join(name);
        fs::create_dir(&path).map_err(|error| Failure::file(path, error))?;
    }
    let window = u64::from(bounds.window_bytes);
    let decoder = StreamingDecoder::new_with_max_window_size(source, window).map_err(|error| {
        Failure::Payload(format!("not a zstd frame with a window of at most {window} bytes: {error}"))
    })?;
    let mut archive =
        Archive { source: decoder, folder, left: bounds, folders: FOLDERS_MAX, buffer: vec![0; CARRIED_BYTES] };
    while archive.entry()? {}
    archive.end()?;
    archive.catalog()
}

struct Archive<'f, R: Read> {
    source: StreamingDecoder<R, ruzstd::decoding::FrameDecoder>,
    folder: &'f Path,
    /// The limits minus the bytes and files that were already unpacked.
    left: Bounds,
    /// The number of folder entries that the archive may still contain.
    folders: u32,
    buffer: Vec<u8>,
}

impl<R: Read> Archive<'_, R> {
    /// Unpacks the next entry of the archive; returns `false` at the end of the archive.
    fn entry(&mut self) -> Result<bool, Failure> {
        let mut block = [0; tar::BLOCK];
        self.source.read_exact(&mut block).map_err(|error| cut(&error))?;
        match tar::entry(&block).map_err(|error| Failure::Payload(error.to_string()))? {
            Entry::End => return Ok(false),
            Entry::Folder(name) if FOLDERS.contains(&name.trim_end_matches('/')) => {
                self.folders = self.folders.checked_sub(1).ok_or_else(|| refused(&name, "is named too often"))?;
            }
            Entry::File(name, bytes) => self.file(&name, bytes)?,
            Entry::Link(name) => return Err(refused(&name, "is a link")),
            Entry::Folder(name) => return Err(refused(&name, "is a folder that a payload does not have")),
        }
        Ok(true)
    }

    fn file(&mut self, name: &str, bytes: u64) -> Result<(), Failure> {
        let path = self.folder.join(place(name).ok_or_else(|| refused(name, "is no name that a payload has"))?);
        self.left.files =
            self.left.files.checked_sub(1).ok_or_else(|| refused(name, "is one file more than the index says"))?;
        self.left.bytes =
            self.left.bytes.checked_sub(bytes).ok_or_else(|| refused(name, "is larger than the index says"))?;
        // Never through a link and never over a file: each name comes once.
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        let mut file = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => refused(name, "comes twice"),
            _ => Failure::file(&path, error),
        })?;
        let mut left = bytes + tar::padding(bytes);
        let mut content = bytes;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(self.buffer.len());
            let read = self.source.read(&mut self.buffer[..most]).map_err(|error| cut(&error))?;
            if read == 0 {
                return Err(Failure::Payload(format!("it ends within `{}`", shown(name))));
            }
            left -= read as u64;
            let written = usize::try_from(content).unwrap_or(usize::MAX).min(read);
            content -= written as u64;
            file.write_all(&self.buffer[..written]).map_err(|error| Failure::file(&path, error))?;
        }
        Ok(())
    }

    /// Checks that only zeros follow the end of the archive, so that every byte of the payload is checked.
    fn end(&mut self) -> Result<(), Failure> {
        let mut left = ZEROS_BYTES_MAX;
        loop {
            let read = self.source.read(&mut self.buffer).map_err(|error| cut(&error))?;
            if read == 0 {
                break;
            }
            left = left.checked_sub(read as u64).ok_or_else(|| {
                Failure::Payload(format!("there are more than {ZEROS_BYTES_MAX} zeros behind the end of the archive"))
            })?;
            if self.buffer[..read].iter().any(|byte| *byte != 0) {
                return Err(Failure::Payload("there is something behind the end of the archive".to_owned()));
            }
        }
        let mut one = [0];
        match self.source.get_mut().read(&mut one).map_err(|error| cut(&error))? {
            0 => Ok(()),
            _ => Err(Failure::Payload("there is something behind the compressed archive".to_owned())),
        }
    }

    fn catalog(&self) -> Result<Catalog, Failure> {
        let path = self.folder.join(CATALOG);
        let file = File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::Payload("it has no catalog".to_owned()),
            _ => Failure::file(&path, error),
        })?;
        let mut text = String::new();
        file.take(CATALOG_BYTES_MAX as u64 + 1)
            .read_to_string(&mut text)
            .map_err(|error| Failure::file(&path, error))?;
        if text.len() > CATALOG_BYTES_MAX {
            return Err(Failure::Payload(format!("its catalog has more than {CATALOG_BYTES_MAX} bytes")));
        }
        Catalog::parse(&text)
    }
}

/// The path for a file of the archive; `None` unless the file's name is in [`FILES`] or has a digest of 64 hex digits.
fn place(name: &str) -> Option<PathBuf> {
    if FILES.contains(&name) {
        return Some(name.into());
    }
    let (folder, file) = name.rsplit_once('/')?;
    let known = folder == BLOBS || folder == REFERRERS;
    (known && Digest::from_hex(file).is_some()).then(|| name.into())
}

/// The failure after an error of reading or decompressing the source. The thread that reads the source reports the
/// cause.
fn cut(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Failure::Payload("it ends too early".to_owned()),
        _ => Failure::Payload(error.to_string()),
    }
}

fn refused(name: &str, what: &str) -> Failure {
    Failure::Payload(format!("`{}` {what}", shown(name)))
}

/// A name from the archive, without characters that could move a cursor.
fn shown(name: &str) -> String {
    name.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

#[cfg(test)]
mod tests;
