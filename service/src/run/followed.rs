//! The files of a configuration, and whether one of them has changed.
//!
//! Only the system's facts about files are compared: time, size and inode. A mounted `ConfigMap` or Secret is replaced
//! by a link to a new folder, so its files get other inodes.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::config::Config;

/// Most files that are compared; changes of further ones are seen when the file itself is read again.
const FILES_MAX: usize = 256;

/// The state of the files at the last check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Followed {
    files: Vec<PathBuf>,
    seen: Vec<Option<Look>>,
}

/// Facts of a file; if they are equal, file and content count as the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Followed {
    /// The present state of the files of `config`, which is at `path`.
    pub fn of(path: &Path, config: &Config) -> Self {
        let mut files = vec![path.to_owned()];
        files.extend(config.files());
        files.truncate(FILES_MAX);
        let seen = files.iter().map(|file| look(file)).collect();
        Self { files, seen }
    }

    /// Whether both have the same files.
    pub fn is_of_the_same_files(&self, other: &Self) -> bool {
        self.files == other.files
    }

    /// Whether a file has changed.
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
