//! Makes archives whose bytes depend only on their contents, and the list of the archives' checksums.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};

/// The name of the list of checksums, in the format of `sha256sum --check`.
pub(crate) const SUMS: &str = "SHA256SUMS";

/// A file or a folder in an archive.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The path below the archive's root, without a leading slash.
    pub(crate) path: String,
    /// The contents of the file; `None` for a folder.
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) mode: u32,
    /// The numeric user id and group id of the file or folder.
    pub(crate) owner: u64,
    /// Whether the file is executable.
    pub(crate) executable: bool,
}

impl Entry {
    pub(crate) fn program(path: &str, bytes: Vec<u8>) -> Self {
        Self { executable: true, mode: 0o755, ..Self::file(path, bytes) }
    }

    pub(crate) fn file(path: &str, bytes: Vec<u8>) -> Self {
        Self { path: path.to_owned(), bytes: Some(bytes), mode: 0o644, owner: 0, executable: false }
    }

    pub(crate) fn folder(path: &str, mode: u32, owner: u64) -> Self {
        Self { path: path.to_owned(), bytes: None, mode, owner, executable: false }
    }
}

/// A tar archive of the entries, sorted by name, with one time for all files and only numeric users.
pub(crate) fn tar(mut entries: Vec<Entry>, seconds: u64) -> Result<Vec<u8>> {
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let mut archive = tar::Builder::new(Vec::new());
    for entry in entries {
        let mut header = tar::Header::new_ustar();
        let bytes = entry.bytes.as_deref().unwrap_or_default();
        header.set_entry_type(if entry.bytes.is_some() { tar::EntryType::Regular } else { tar::EntryType::Directory });
        header.set_size(bytes.len() as u64);
        header.set_mode(entry.mode);
        header.set_mtime(seconds);
        header.set_uid(entry.owner);
        header.set_gid(entry.owner);
        archive
            .append_data(&mut header, &entry.path, bytes)
            .with_context(|| format!("failed to pack {}", entry.path))?;
    }
    archive.into_inner().context("failed to finish an archive")
}

/// Compresses bytes as gzip; the gzip header contains neither a name nor a time.
pub(crate) fn gzip(bytes: &[u8], level: Compression) -> Result<Vec<u8>> {
    let mut writer = GzBuilder::new().mtime(0).write(Vec::new(), level);
    writer.write_all(bytes).and_then(|()| writer.finish()).context("failed to compress")
}

/// A compressed archive that contains one folder with all entries.
pub(crate) fn tarball(folder: &str, entries: Vec<Entry>, seconds: u64, level: Compression) -> Result<Vec<u8>> {
    let below = |entry: Entry| Entry { path: format!("{folder}/{}", entry.path), ..entry };
    gzip(&tar(entries.into_iter().map(below).collect(), seconds)?, level)
}

/// The SHA-256 of bytes in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The files that were written, with their checksums and sizes.
#[derive(Debug, Default)]
pub(crate) struct Sums(Vec<(String, String, usize)>);

impl Sums {
    /// Writes a file and remembers its checksum.
    pub(crate) fn add(&mut self, folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
        std::fs::write(folder.join(name), bytes).with_context(|| format!("failed to write {name}"))?;
        self.0.push((name.to_owned(), sha256(bytes), bytes.len()));
        Ok(())
    }

    /// The checksum of a written file.
    pub(crate) fn of(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(written, ..)| written == name).map(|(_, sum, _)| sum.as_str())
    }

    pub(crate) fn write(&mut self, folder: &Path) -> Result<()> {
        self.0.sort();
        let lines: Vec<String> = self.0.iter().map(|(name, sum, _)| format!("{sum}  {name}")).collect();
        let list = lines.join("\n") + "\n";
        std::fs::write(folder.join(SUMS), list).with_context(|| format!("failed to write {SUMS}"))
    }

    /// Prints the names, sizes and checksums of the written files.
    pub(crate) fn show(&self, folder: &Path) {
        println!("dist: {}", folder.display());
        for (name, sum, bytes) in &self.0 {
            println!("  {:>7.2} MiB  {}…  {name}", *bytes as f64 / f64::from(1 << 20), &sum[..12]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_entries_does_not_change_the_bytes() {
        let entries = || vec![Entry::program("b", b"run".to_vec()), Entry::file("a/c", b"text".to_vec())];
        let one = tarball("x", entries(), 7, Compression::best()).unwrap();
        let other = tarball("x", entries().into_iter().rev().collect(), 7, Compression::best()).unwrap();
        assert_eq!(one, other);
    }

    #[test]
    fn nothing_of_this_machine_is_in_an_archive() {
        let bytes = tar(vec![Entry::folder("tmp/", 0o1777, 0), Entry::program("p", b"run".to_vec())], 7).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let heads: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!(header.username().unwrap(), Some(""));
                (entry.path().unwrap().display().to_string(), header.mode().unwrap(), header.mtime().unwrap())
            })
            .collect();
        assert_eq!(heads, [("p".to_owned(), 0o755, 7), ("tmp/".to_owned(), 0o1777, 7)]);
    }
}
