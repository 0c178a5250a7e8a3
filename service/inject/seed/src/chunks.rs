//! Reads chunks of the payload from files and verifies them.
//!
//! The files may be links, as a kubelet makes them, because the program unpacks the same buffer that it has hashed: a
//! changed link has no effect.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::failure::{Failure, Wrong};
use crate::index::{Chunk, Index};

pub struct Chunks<'i> {
    index: &'i Index,
    folder: &'i Path,
}

impl<'i> Chunks<'i> {
    pub fn new(index: &'i Index, folder: &'i Path) -> Self {
        Self { index, folder }
    }

    pub fn count(&self) -> usize {
        self.index.chunks.len()
    }

    /// Reads the chunk at position `place` into `buffer`. On success, the buffer has the size that the index states;
    /// [`Self::verify`] checks the content.
    pub fn read(&self, place: usize, buffer: &mut Vec<u8>) -> Result<(), Failure> {
        let chunk = &self.index.chunks[place];
        let path = self.path(place, chunk);
        let wrong = match Self::fill(&path, chunk, buffer) {
            Ok(None) => return Ok(()),
            Ok(Some(wrong)) => wrong,
            Err(error) if error.kind() == ErrorKind::NotFound => Wrong::Missing,
            Err(error) => return Err(Failure::file(path, error)),
        };
        Err(self.failure(place, wrong))
    }

    /// Checks that `bytes` are the chunk that the index lists at `place`.
    pub fn verify(&self, place: usize, bytes: &[u8]) -> Result<(), Failure> {
        let expected = self.index.chunks[place].digest;
        let found = Digest::of(bytes);
        if found == expected { Ok(()) } else { Err(self.failure(place, Wrong::Corrupt { expected, found })) }
    }

    fn failure(&self, place: usize, wrong: Wrong) -> Failure {
        let what = self.told_apart(place, wrong);
        Failure::Chunk { number: self.index.chunks[place].number, place: place + 1, count: self.count(), what }
    }

    fn path(&self, place: usize, chunk: &Chunk) -> PathBuf {
        self.folder.join(self.index.folder(place)).join(chunk.name())
    }

    /// Reads at most one byte more than the chunk should have; returns the fault if the size is wrong.
    fn fill(path: &Path, chunk: &Chunk, buffer: &mut Vec<u8>) -> std::io::Result<Option<Wrong>> {
        buffer.clear();
        // Exact, so that the buffer does not grow in steps: a chunk has at most `CHUNK_BYTES_MAX`.
        buffer.reserve_exact(chunk.bytes as usize + 1);
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        file.take(u64::from(chunk.bytes) + 1).read_to_end(buffer)?;
        let (expected, found) = (chunk.bytes, buffer.len());
        if found < expected as usize {
            return Ok(Some(Wrong::Truncated { expected, found: length.min(found as u64) }));
        }
        if found > expected as usize {
            return Ok(Some(Wrong::TooLong { expected }));
        }
        Ok(None)
    }

    /// Finds out whether the wrong bytes of a chunk belong to another chunk. A file of a wrong length may be another
    /// chunk too, because the last chunk is often shorter.
    fn told_apart(&self, place: usize, wrong: Wrong) -> Wrong {
        if wrong == Wrong::Missing {
            return wrong;
        }
        let here = self.index.chunks[place];
        let Ok(held) = self.digest_of(place) else { return wrong };
        let others = self.index.chunks.iter().enumerate();
        let Some((other, chunk)) = others.into_iter().find(|(at, chunk)| *at != place && chunk.digest == held) else {
            return wrong;
        };
        match self.digest_of(other) {
            Ok(there) if there == here.digest => Wrong::Swapped(chunk.number),
            _ => Wrong::Doubled(chunk.number),
        }
    }

    /// The digest of the file for the chunk at `place`, read up to the size of the largest chunk.
    fn digest_of(&self, place: usize) -> std::io::Result<Digest> {
        let mut bytes = Vec::new();
        let file = File::open(self.path(place, &self.index.chunks[place]))?;
        file.take(u64::from(crate::index::CHUNK_BYTES_MAX)).read_to_end(&mut bytes)?;
        Ok(Digest::of(&bytes))
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "the test's own small numbers")]
mod tests {
    use super::*;

    /// Three chunks of 4, 4 and 2 bytes, of which the last has its own folder.
    fn sample() -> (Index, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let contents: [&[u8]; 3] = [b"aaaa", b"bbbb", b"cc"];
        let chunk = |number: usize| Chunk {
            number: number as u32,
            bytes: contents[number].len() as u32,
            digest: Digest::of(contents[number]),
        };
        let index = Index {
            run: "0".repeat(16),
            payload_bytes: 10,
            payload_digest: Digest::of(b"aaaabbbbcc"),
            unpacked_bytes: 0,
            files: 0,
            window_bytes: 1,
            group: 2,
            chunks: (0..3).map(chunk).collect(),
        };
        for (place, content) in contents.iter().enumerate() {
            std::fs::create_dir_all(folder.path().join(index.folder(place))).unwrap();
            put(folder.path(), &index, place, content);
        }
        (index, folder)
    }

    fn put(folder: &Path, index: &Index, place: usize, content: &[u8]) {
        std::fs::write(folder.join(index.folder(place)).join(index.chunks[place].name()), content).unwrap();
    }

    fn refusal(changes: &[(usize, &[u8])], place: usize) -> String {
        let (index, folder) = sample();
        for (place, content) in changes {
            put(folder.path(), &index, *place, content);
        }
        let (chunks, mut buffer) = (Chunks::new(&index, folder.path()), Vec::new());
        let failure = chunks.read(place, &mut buffer).and_then(|()| chunks.verify(place, &buffer)).unwrap_err();
        failure.to_string()
    }

    #[test]
    fn a_chunk_as_it_should_be_is_read() {
        let (index, folder) = sample();
        let mut buffer = Vec::new();
        for (place, content) in [&b"aaaa"[..], b"bbbb", b"cc"].into_iter().enumerate() {
            let chunks = Chunks::new(&index, folder.path());
            chunks.read(place, &mut buffer).unwrap();
            assert_eq!(buffer, content);
            chunks.verify(place, &buffer).unwrap();
        }
    }

    #[test]
    fn what_is_wrong_with_a_chunk_is_said_exactly() {
        let corrupt =
            format!("corrupt: its digest is {}, and the index says {}", Digest::of(b"bxbb"), Digest::of(b"bbbb"));
        assert_eq!(refusal(&[(1, b"bxbb")], 1), format!("chunk 00001 (2 of 3): {corrupt}"));
        assert_eq!(refusal(&[(1, b"bbb")], 1), "chunk 00001 (2 of 3): truncated: 3 of 4 bytes");
        assert_eq!(refusal(&[(1, b"")], 1), "chunk 00001 (2 of 3): truncated: 0 of 4 bytes");
        assert_eq!(refusal(&[(1, b"bbbbb")], 1), "chunk 00001 (2 of 3): too long: more than 4 bytes");
        assert_eq!(refusal(&[(1, b"aaaa")], 1), "chunk 00001 (2 of 3): doubled: it holds the bytes of chunk 00000");
        assert_eq!(refusal(&[(1, b"aaaa"), (0, b"bbbb")], 1), "chunk 00001 (2 of 3): swapped with chunk 00000");
        assert_eq!(refusal(&[(2, b"aaaa"), (0, b"cc")], 0), "chunk 00000 (1 of 3): swapped with chunk 00002");
    }

    #[test]
    fn a_missing_chunk_has_an_exit_code_of_its_own() {
        let (index, folder) = sample();
        std::fs::remove_file(folder.path().join("00001/00002")).unwrap();
        let failure = Chunks::new(&index, folder.path()).read(2, &mut Vec::new()).unwrap_err();
        assert_eq!(failure.to_string(), "chunk 00002 (3 of 3): missing");
        assert_eq!(failure.exit_code(), crate::failure::EXIT_NO_INPUT);
    }
}
