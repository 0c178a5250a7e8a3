//! The highest numbers of a play of a watch client: memory, threads, descriptors, watches and connections.
//!
//! Owns how these numbers are read from a run record.

use std::io::{BufRead as _, Read as _};
use std::path::Path;

use reports::record::file;
use serde_json::Value;

/// Largest part of a file that is read, in bytes. A trial takes seconds and writes much less.
const FILE_MAX: u64 = 16 << 20;

/// The highest numbers of a play.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Peaks {
    /// Resident memory; 0 if it was not measured.
    pub(crate) rss_bytes: u64,
    pub(crate) threads: u64,
    pub(crate) descriptors: u64,
    /// Watches that were open at once, of all resources.
    pub(crate) open_watches: u64,
    pub(crate) open_connections: u64,
    /// Whether no resource had more than one watch open at once.
    pub(crate) is_one_watch_each: bool,
}

impl Peaks {
    /// Reads the record of a play by a client that watches so many resources. A file that cannot be read counts as empty:
    /// then nothing is limited.
    pub(crate) fn read(record: &Path, watched: usize) -> Self {
        let mut peaks = Self::default();
        for line in lines(&record.join(file::SAMPLES)) {
            let subject = &line["subject"];
            let number = |value: &Value| value.as_u64().unwrap_or(0);
            let fds: u64 = subject["fds"].as_object().into_iter().flatten().map(|(_, count)| number(count)).sum();
            peaks.rss_bytes = peaks.rss_bytes.max(number(&subject["rssBytes"]));
            peaks.threads = peaks.threads.max(number(&subject["threads"]));
            peaks.descriptors = peaks.descriptors.max(fds);
        }
        for line in lines(&record.join(file::INTERVALS)) {
            let of = |key: &str| line["api"][key].as_u64().unwrap_or(0);
            peaks.open_watches = peaks.open_watches.max(of("subjectOpenWatches"));
            peaks.open_connections = peaks.open_connections.max(of("subjectOpenConnections"));
        }
        peaks.is_one_watch_each = peaks.open_watches <= watched as u64;
        peaks
    }

    /// The higher numbers of both.
    pub(crate) fn or_more(self, other: &Self) -> Self {
        Self {
            rss_bytes: self.rss_bytes.max(other.rss_bytes),
            threads: self.threads.max(other.threads),
            descriptors: self.descriptors.max(other.descriptors),
            open_watches: self.open_watches.max(other.open_watches),
            open_connections: self.open_connections.max(other.open_connections),
            is_one_watch_each: self.is_one_watch_each && other.is_one_watch_each,
        }
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let Ok(file) = std::fs::File::open(path) else { return Vec::new() };
    let lines = std::io::BufReader::new(file.take(FILE_MAX)).lines().map_while(Result::ok);
    lines.filter_map(|line| serde_json::from_str(&line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_numbers_are_kept() {
        let record = tempfile::tempdir().unwrap();
        let samples = "{\"subject\":{\"rssBytes\":5,\"threads\":2,\"fds\":{\"socket\":3,\"file\":1}}}\n{\"subject\":{\"rssBytes\":4}}\n";
        std::fs::write(record.path().join(file::SAMPLES), samples).unwrap();
        let intervals = "{\"api\":{\"subjectOpenWatches\":2,\"subjectOpenConnections\":1}}\nnot JSON\n";
        std::fs::write(record.path().join(file::INTERVALS), intervals).unwrap();
        let peaks = Peaks::read(record.path(), 1);
        let wanted = Peaks {
            rss_bytes: 5,
            threads: 2,
            descriptors: 4,
            open_watches: 2,
            open_connections: 1,
            is_one_watch_each: false,
        };
        assert_eq!(peaks, wanted);
        assert_eq!(Peaks::default().or_more(&peaks), wanted);
        assert_eq!(Peaks::read(&record.path().join("absent"), 1).rss_bytes, 0);
    }
}
