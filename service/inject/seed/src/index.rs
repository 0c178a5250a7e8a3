//! The index: the chunks of the payload, their order and their digests.
//!
//! The injector writes the index, and the injected program reads it. The index is text, so that people can read it with
//! `kubectl get configmap`:
//!
//! ```text
//! longhaul-seed-index 1
//! run 5f0c…            id of payload and chunk sizes: 16 hex digits
//! payload BYTES SHA256 the chunks in order, joined
//! unpacked BYTES FILES limits of the unpacked content
//! window BYTES         memory of the decompressor
//! group N              chunks in one folder: chunk at place p is in folder p / N
//! chunks N
//! 00000 BYTES SHA256   one line a chunk; the order of the lines is the order of the payload
//! ```
//!
//! A chunk's number is part of its name and has at least five digits; chunks are never sorted by name.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::digest::Digest;
use crate::failure::Failure;

const HEADER: &str = "longhaul-seed-index 1";
/// Largest index, in bytes: the size limit of a `ConfigMap`.
pub const INDEX_BYTES_MAX: usize = 1_048_576;
/// Maximum number of chunks: with 81 bytes per line, they fill the largest index. A Pod that mounts as many chunks
/// stays below etcd's limit of 1.5 MiB.
pub const CHUNKS_MAX: usize = CHUNKS_COUNT_MAX as usize;
const CHUNKS_COUNT_MAX: u32 = 12_000;
/// Largest chunk, in bytes: the size limit of a `ConfigMap`.
pub const CHUNK_BYTES_MAX: u32 = 1_048_576;
/// Largest window of the decompressor, in bytes: with it and two of the largest chunks, the injected program uses less
/// than 6 MB.
pub const WINDOW_BYTES_MAX: u32 = 1 << 20;
/// Maximum number of unpacked bytes: four times the largest payload.
pub const UNPACKED_BYTES_MAX: u64 = 4 * CHUNKS_MAX as u64 * CHUNK_BYTES_MAX as u64;
/// Maximum number of unpacked files: enough for the blobs of some hundred images.
pub const FILES_MAX: u32 = 10_000;
/// Number of hex digits of [`Index::run`].
pub const RUN_DIGITS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// The run: 16 hex digits that identify payload and chunk sizes, in the index and as a label of all objects.
    pub run: String,
    pub payload_bytes: u64,
    pub payload_digest: Digest,
    /// Maximum number of bytes of all unpacked files.
    pub unpacked_bytes: u64,
    /// Maximum number of unpacked files.
    pub files: u32,
    /// Size of the window that the decompressor needs, in bytes.
    pub window_bytes: u32,
    /// Number of chunks in one folder.
    pub group: u32,
    /// The chunks in the order in which they form the payload.
    pub chunks: Vec<Chunk>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// The number in the chunk's name.
    pub number: u32,
    pub bytes: u32,
    pub digest: Digest,
}

impl Chunk {
    /// The chunk's name: its number with at least five digits.
    pub fn name(&self) -> String {
        name(self.number)
    }
}

pub fn name(number: u32) -> String {
    format!("{number:05}")
}

impl Index {
    /// The folder of the chunk at position `place`, counted from 0.
    pub fn folder(&self, place: usize) -> String {
        format!("{:05}", place / self.group as usize)
    }

    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{HEADER}\nrun {}\npayload {} {}\nunpacked {} {}\nwindow {}\ngroup {}\nchunks {}\n",
            self.run,
            self.payload_bytes,
            self.payload_digest,
            self.unpacked_bytes,
            self.files,
            self.window_bytes,
            self.group,
            self.chunks.len()
        );
        for chunk in &self.chunks {
            let _ = writeln!(text, "{:05} {} {}", chunk.number, chunk.bytes, chunk.digest);
        }
        text
    }

    /// Parses an index. Values above a limit are refused, and every sum is checked.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let mut lines = Lines { rest: text, line: 0 };
        if lines.next()? != HEADER {
            return Err(lines.wrong("not an index: the first line is not `longhaul-seed-index 1`"));
        }
        let [run] = lines.fields("run")?;
        if run.len() != RUN_DIGITS || !run.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(lines.wrong("a run has 16 lower-case hex digits"));
        }
        let run = run.to_owned();
        let [bytes, digest] = lines.fields("payload")?;
        let payload_bytes = lines.number(bytes, 1, CHUNKS_MAX as u64 * u64::from(CHUNK_BYTES_MAX))?;
        let payload_digest = lines.digest(digest)?;
        let [bytes, files] = lines.fields("unpacked")?;
        let unpacked_bytes = lines.number(bytes, 0, UNPACKED_BYTES_MAX)?;
        let files = lines.small(files, 0, FILES_MAX)?;
        let [window] = lines.fields("window")?;
        let window_bytes = lines.small(window, 1, WINDOW_BYTES_MAX)?;
        let [group] = lines.fields("group")?;
        // At most the largest number of chunks, so that it has a limit.
        let group = lines.small(group, 1, CHUNKS_COUNT_MAX)?;
        let [count] = lines.fields("chunks")?;
        let count = lines.small(count, 1, CHUNKS_COUNT_MAX)?;
        let chunks = lines.chunks(count as usize, payload_bytes)?;
        if !lines.rest.is_empty() {
            lines.line += 1;
            return Err(lines.wrong("more lines than chunks"));
        }
        Ok(Self { run, payload_bytes, payload_digest, unpacked_bytes, files, window_bytes, group, chunks })
    }
}

/// The lines of an index that were not read yet.
struct Lines<'t> {
    rest: &'t str,
    /// The number of the last read line, from 1.
    line: usize,
}

impl<'t> Lines<'t> {
    fn wrong(&self, what: &'static str) -> Failure {
        Failure::Index { line: self.line, what }
    }

    /// The next line of the index. Every line ends with a line feed, even the last, so that a truncated index is
    /// noticed.
    fn next(&mut self) -> Result<&'t str, Failure> {
        self.line += 1;
        let (line, rest) = self.rest.split_once('\n').ok_or_else(|| self.wrong("the index ends too early"))?;
        self.rest = rest;
        Ok(line)
    }

    /// The fields of the next line, which must start with `key`.
    fn fields<const N: usize>(&mut self, key: &str) -> Result<[&'t str; N], Failure> {
        let mut words = self.next()?.split(' ');
        if words.next() != Some(key) {
            return Err(self.wrong("not the key that belongs here"));
        }
        self.exactly(words)
    }

    fn exactly<const N: usize>(&self, mut words: impl Iterator<Item = &'t str>) -> Result<[&'t str; N], Failure> {
        let mut fields = [""; N];
        for field in &mut fields {
            *field = words.next().ok_or_else(|| self.wrong("too few words"))?;
        }
        if words.next().is_some() { Err(self.wrong("too many words")) } else { Ok(fields) }
    }

    fn chunks(&mut self, count: usize, payload_bytes: u64) -> Result<Vec<Chunk>, Failure> {
        // The announced number is at most `CHUNKS_MAX`, and each needs its line: no memory is reserved for missing
        // ones.
        let mut chunks = Vec::with_capacity(count.min(self.rest.len() / 64));
        let (mut numbers, mut sum) = (BTreeSet::new(), 0);
        for _ in 0..count {
            let [number, bytes, digest] = {
                let words = self.next()?.split(' ');
                self.exactly(words)?
            };
            if number.len() < 5 || (number.len() > 5 && number.starts_with('0')) {
                return Err(self.wrong("a chunk's number has five digits, or more without zeros in front"));
            }
            let number = self.digits(number, u64::from(u32::MAX))?;
            let number = u32::try_from(number).map_err(|_| self.wrong("a number out of range"))?;
            if !numbers.insert(number) {
                return Err(self.wrong("a chunk's number comes twice"));
            }
            let bytes = self.small(bytes, 1, CHUNK_BYTES_MAX)?;
            sum += u64::from(bytes);
            chunks.push(Chunk { number, bytes, digest: self.digest(digest)? });
        }
        if sum == payload_bytes { Ok(chunks) } else { Err(self.wrong("the chunks do not add up to the payload")) }
    }

    fn digest(&self, text: &str) -> Result<Digest, Failure> {
        Digest::from_hex(text).ok_or_else(|| self.wrong("a digest has 64 lower-case hex digits"))
    }

    fn small(&self, text: &str, least: u32, most: u32) -> Result<u32, Failure> {
        let number = self.number(text, u64::from(least), u64::from(most))?;
        u32::try_from(number).map_err(|_| self.wrong("a number out of range"))
    }

    /// Parses a number from `least` to `most`, without sign and leading zeros.
    fn number(&self, text: &str, least: u64, most: u64) -> Result<u64, Failure> {
        if text.len() > 1 && text.starts_with('0') {
            return Err(self.wrong("a number with zeros in front"));
        }
        let number = self.digits(text, most)?;
        if number < least { Err(self.wrong("a number out of range")) } else { Ok(number) }
    }

    fn digits(&self, text: &str, most: u64) -> Result<u64, Failure> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.wrong("not a number"));
        }
        text.parse().ok().filter(|number| *number <= most).ok_or_else(|| self.wrong("a number out of range"))
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "small numbers of the tests")]
mod tests;
