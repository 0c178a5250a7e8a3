//! Writing whole files, and the errors of a failed write.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::Error;

pub(super) fn chain(error: &Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

pub(super) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}

/// Writes a file so that a reader sees either the old file or the complete new one.
pub fn write_whole(path: &Path, fill: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>) -> Result<(), Error> {
    let mut bytes = Vec::new();
    fill(&mut bytes).map_err(|source| Error::Encode { path: path.to_owned(), source })?;
    write_bytes(path, &bytes)
}

pub(super) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let part = path.with_extension("part");
    // The rest of an earlier try, or a link placed there to redirect the write, is not opened.
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error("write", &part)(error)),
        _ => {}
    }
    let mut out = OpenOptions::new().write(true).create_new(true).open(&part).map_err(io_error("create", &part))?;
    out.write_all(bytes).map_err(io_error("write", &part))?;
    fs::rename(&part, path).map_err(io_error("write", path))
}
