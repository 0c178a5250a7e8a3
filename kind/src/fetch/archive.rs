//! One program out of a `.tar.gz`. Reads only that entry, up to its limit.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;

use super::{Error, Partial, failed};

/// The most entries that are read; etcd's archive has about twenty.
const ENTRIES_MAX: usize = 10_000;
const CHUNK_BYTES: usize = 64 << 10;

/// Writes the entry `path` of an archive to `program`.
pub(super) fn unpack(archive: &Partial, file: &str, path: &str, program: &mut Partial, most: u64) -> Result<(), Error> {
    let bad = |problem: String| Error::Archive { file: file.to_owned(), problem };
    let opened = File::open(&archive.path).map_err(failed(&archive.path))?;
    let mut archive = tar::Archive::new(GzDecoder::new(opened));
    let entries = archive.entries().map_err(|error| bad(error.to_string()))?;
    for entry in entries.take(ENTRIES_MAX) {
        let mut entry = entry.map_err(|error| bad(error.to_string()))?;
        let wanted = entry.path().is_ok_and(|name| name == Path::new(path));
        if !wanted || !entry.header().entry_type().is_file() {
            continue;
        }
        let size = entry.size();
        if size > most {
            return Err(bad(format!("`{path}` in it has {size} bytes, more than {most}")));
        }
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match entry.read(&mut chunk).map_err(|error| bad(error.to_string()))? {
                0 => return Ok(()),
                count => program.write(&chunk[..count])?,
            }
        }
    }
    Err(bad(format!("there is no `{path}` in it")))
}
