//! The files that a configuration names, and whether one of them has changed.
//!
//! A file counts as changed if its time, size or inode differs. If a mounted `ConfigMap` or Secret changes, a link
//! points to a new folder, so the mounted files get other inodes.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::config::Config;

/// Maximum number of files whose metadata is compared. Changes of files beyond this number are noticed at the next
/// regular reload.
const FILES_MAX: usize = 256;

/// The metadata of the files at the last check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Followed {
    files: Vec<PathBuf>,
    seen: Vec<Option<Look>>,
}

/// The metadata of a file. If the metadata is unchanged, the content counts as unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Followed {
    /// The present metadata of the configuration file at `path` and of all files that `config` names.
    pub fn of(path: &Path, config: &Config) -> Self {
        let mut files = vec![path.to_owned()];
        files.extend(config.files());
        files.truncate(FILES_MAX);
        let seen = files.iter().map(|file| look(file)).collect();
        Self { files, seen }
    }

    pub fn is_of_the_same_files(&self, other: &Self) -> bool {
        self.files == other.files
    }

    /// Whether one of the files has changed since the metadata was read.
    pub fn changed(&self) -> bool {
        self.files.iter().zip(&self.seen).any(|(file, seen)| look(file) != *seen)
    }
}

fn look(file: &Path) -> Option<Look> {
    let metadata = std::fs::metadata(file).ok()?;
    Some(Look { inode: metadata.ino(), bytes: metadata.len(), changed: (metadata.ctime(), metadata.ctime_nsec()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_replaced_or_gone_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.yaml");
        std::fs::write(&path, "").unwrap();
        let config = crate::config::load(&path).unwrap();
        let before = Followed::of(&path, &config);
        assert!(!before.changed());
        std::fs::write(&path, "log: {level: debug}").unwrap();
        assert!(before.changed());
        let before = Followed::of(&path, &config);
        let other = folder.path().join("other");
        std::fs::write(&other, "log: {level: debug}").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(before.changed(), "the same text in another file");
        let before = Followed::of(&path, &config);
        std::fs::remove_file(&path).unwrap();
        assert!(before.changed());
    }
}
