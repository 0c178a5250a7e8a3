//! Unfinished uploads, with limits of their number, size and age.
//!
//! Owns the bytes of unfinished blobs and the rules for ranges. Pure: the time is an argument. A chunk is opened, gets
//! bytes and is closed. A chunk whose length differs from its `Content-Range` is removed, so that the client can send
//! the chunk again.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::digest::{Digest, Running};

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) count: usize,
    pub(super) bytes_each: u64,
    /// An upload that is idle for this long is removed.
    pub(super) idle: Duration,
}

pub(super) struct Uploads {
    limits: Limits,
    bytes: u64,
    sessions: BTreeMap<String, Session>,
}

/// Why an upload cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The repository has no such upload.
    Unknown,
    /// The limit of simultaneous uploads is reached.
    TooMany,
    /// The upload is larger than this limit in bytes.
    TooLarge(u64),
    /// The chunk does not start where the last chunk ended, or another request is writing; the value is the offset at
    /// which the next chunk must start.
    OutOfOrder(u64),
    /// The body is not as long as its `Content-Range`.
    WrongLength { promised: u64, got: u64 },
    /// The content does not have the digest that the client states.
    WrongDigest,
}

/// `Content-Range` of a chunk: the positions of its first and last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u64,
    pub(super) last: u64,
}

struct Session {
    repository: String,
    data: Vec<u8>,
    hash: Running,
    /// Start and required length of the open chunk, so that a chunk of another length can be removed.
    open: Option<Chunk>,
    touched: Duration,
}

struct Chunk {
    start: usize,
    hash: Running,
    promised: Option<u64>,
}

impl Range {
    /// Parses `0-1023` or `bytes 0-1023`; clients write both.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().strip_prefix("bytes").map_or(text, |rest| rest.trim_start_matches([' ', '='])).trim();
        let (first, last) = text.split_once('-')?;
        let last = last.split('/').next()?;
        let range = Self { first: number(first)?, last: number(last)? };
        (range.first <= range.last).then_some(range)
    }

    const fn len(self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }
}

impl Uploads {
    pub(super) const fn new(limits: Limits) -> Self {
        Self { limits, bytes: 0, sessions: BTreeMap::new() }
    }

    /// Bytes held by unfinished uploads, including their spare capacity.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes idle uploads and starts an upload with this id.
    pub(super) fn start(&mut self, id: String, repository: &str, now: Duration) -> Result<(), Trouble> {
        self.forget_idle(now);
        if self.sessions.len() >= self.limits.count {
            return Err(Trouble::TooMany);
        }
        let session = Session {
            repository: repository.to_owned(),
            data: Vec::new(),
            hash: Running::default(),
            open: None,
            touched: now,
        };
        self.sessions.insert(id, session);
        Ok(())
    }

    /// The number of received bytes of an upload.
    pub(super) fn offset(&self, id: &str, repository: &str) -> Result<u64, Trouble> {
        let session = self.sessions.get(id).filter(|session| session.repository == repository);
        session.map(|session| session.data.len() as u64).ok_or(Trouble::Unknown)
    }

    /// Opens a chunk, which must start where the last chunk ended.
    pub(super) fn open(
        &mut self,
        id: &str,
        repository: &str,
        range: Option<Range>,
        now: Duration,
    ) -> Result<(), Trouble> {
        let session = self.session(id, repository)?;
        let offset = session.data.len() as u64;
        if session.open.is_some() || range.is_some_and(|range| range.first != offset) {
            return Err(Trouble::OutOfOrder(offset));
        }
        session.touched = now;
        session.open =
            Some(Chunk { start: session.data.len(), hash: session.hash.clone(), promised: range.map(Range::len) });
        Ok(())
    }

    /// Number of bytes by which the memory of an upload grows if `more` bytes are appended.
    pub(super) fn growth(&self, id: &str, repository: &str, more: usize) -> Result<u64, Trouble> {
        let session = self.sessions.get(id).filter(|session| session.repository == repository);
        let data = &session.ok_or(Trouble::Unknown)?.data;
        Ok(room(data, more).saturating_sub(data.capacity()) as u64)
    }

    /// Appends bytes to the open chunk.
    pub(super) fn append(&mut self, id: &str, repository: &str, bytes: &[u8], now: Duration) -> Result<(), Trouble> {
        let limit = self.limits.bytes_each;
        let session = self.session(id, repository)?;
        if session.data.len() as u64 + bytes.len() as u64 > limit {
            return Err(Trouble::TooLarge(limit));
        }
        session.touched = now;
        let before = session.data.capacity();
        session.data.reserve_exact(room(&session.data, bytes.len()) - session.data.len());
        session.data.extend_from_slice(bytes);
        session.hash.update(bytes);
        self.bytes += (session.data.capacity() - before) as u64;
        Ok(())
    }

    /// Closes the open chunk and returns the number of received bytes; removes the chunk if its length differs from its
    /// `Content-Range`.
    pub(super) fn close(&mut self, id: &str, repository: &str) -> Result<u64, Trouble> {
        let session = self.session(id, repository)?;
        let Some(chunk) = session.open.take() else { return Ok(session.data.len() as u64) };
        let got = (session.data.len() - chunk.start) as u64;
        match chunk.promised {
            Some(promised) if promised != got => {
                let before = session.data.capacity();
                session.data.truncate(chunk.start);
                session.data.shrink_to_fit();
                session.hash = chunk.hash;
                self.bytes -= (before - session.data.capacity()) as u64;
                Err(Trouble::WrongLength { promised, got })
            }
            _ => Ok(session.data.len() as u64),
        }
    }

    /// Ends an upload and returns its content if the digest is right. A wrong digest also ends the upload.
    pub(super) fn finish(&mut self, id: &str, repository: &str, digest: &Digest) -> Result<Bytes, Trouble> {
        let offset = self.offset(id, repository)?;
        if self.session(id, repository)?.open.is_some() {
            return Err(Trouble::OutOfOrder(offset));
        }
        let session = self.remove(id).ok_or(Trouble::Unknown)?;
        let right = if digest.is_sha256() { session.hash.finish() == *digest } else { digest.matches(&session.data) };
        // Without the spare capacity.
        if right { Ok(Bytes::from(session.data.into_boxed_slice())) } else { Err(Trouble::WrongDigest) }
    }

    pub(super) fn cancel(&mut self, id: &str, repository: &str) -> Result<(), Trouble> {
        self.offset(id, repository)?;
        self.remove(id).map(drop).ok_or(Trouble::Unknown)
    }

    fn session(&mut self, id: &str, repository: &str) -> Result<&mut Session, Trouble> {
        self.sessions.get_mut(id).filter(|session| session.repository == repository).ok_or(Trouble::Unknown)
    }

    fn remove(&mut self, id: &str) -> Option<Session> {
        let session = self.sessions.remove(id)?;
        self.bytes -= session.data.capacity() as u64;
        Some(session)
    }

    fn forget_idle(&mut self, now: Duration) {
        let idle = self.limits.idle;
        let gone = |session: &Session| now.saturating_sub(session.touched) > idle;
        let ids: Vec<String> =
            self.sessions.iter().filter(|(_, session)| gone(session)).map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.remove(&id);
        }
    }
}

/// The new capacity of an upload's buffer for `more` bytes. The capacity grows by a quarter, so that data is rarely
/// moved and little memory is unused.
fn room(data: &Vec<u8>, more: usize) -> usize {
    let needed = data.len() + more;
    if needed <= data.capacity() { data.capacity() } else { needed.max(data.len() + data.len() / 4) }
}

/// Parses a number of digits only: `str::parse` would accept a sign as well.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn uploads() -> Uploads {
        Uploads::new(Limits { count: 2, bytes_each: 1000, idle: Duration::from_mins(1) })
    }

    fn send(uploads: &mut Uploads, id: &str, range: Option<Range>, bytes: &[u8]) -> Result<u64, Trouble> {
        uploads.open(id, "r", range, NOW)?;
        uploads.append(id, "r", bytes, NOW)?;
        uploads.close(id, "r")
    }

    proptest! {
        /// Chunks sent in order, with retries and refused chunks in between, give the content and its digest.
        #[test]
        fn chunks_add_up(
            parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..60), 0..4_u8), 0..12),
        ) {
            let mut uploads = uploads();
            uploads.start("u".into(), "r", NOW).unwrap();
            let mut whole = Vec::new();
            for (part, way) in &parts {
                let first = whole.len() as u64;
                let range = Range { first, last: first + part.len() as u64 - 1 };
                match way {
                    0 => {
                        let skip = Range { first: first + 1, last: range.last + 1 };
                        prop_assert_eq!(send(&mut uploads, "u", Some(skip), part), Err(Trouble::OutOfOrder(first)));
                    }
                    1 => {
                        let longer = Range { first, last: range.last + 1 };
                        let refused = send(&mut uploads, "u", Some(longer), part);
                        prop_assert_eq!(refused, Err(Trouble::WrongLength { promised: longer.len(), got: range.len() }));
                    }
                    _ => {}
                }
                let range = (*way < 3).then_some(range);
                whole.extend_from_slice(part);
                prop_assert_eq!(send(&mut uploads, "u", range, part), Ok(whole.len() as u64));
                prop_assert_eq!(uploads.offset("u", "r"), Ok(whole.len() as u64));
                let (held, whole) = (uploads.bytes(), whole.len() as u64);
                prop_assert!(whole <= held && held <= whole * 5 / 4 + 60, "{held} for {whole}");
            }
            let got = uploads.finish("u", "r", &Digest::sha256(&whole)).unwrap();
            prop_assert_eq!(got, whole);
            prop_assert_eq!(uploads.bytes(), 0);
        }

        /// Any text of `Content-Range` is a range whose end is not before its start, or is refused. A range that is
        /// written as text parses to the same range.
        #[test]
        fn any_range_is_read(text in "(bytes[ =]?)?[-0-9+ /*]{0,14}", first in any::<u64>(), len in 0..u64::from(u32::MAX)) {
            if let Some(range) = Range::parse(&text) {
                prop_assert!(range.first <= range.last);
            }
            let last = first.saturating_add(len);
            prop_assert_eq!(Range::parse(&format!("{first}-{last}")), Some(Range { first, last }));
        }
    }

    #[test]
    fn a_wrong_digest_ends_the_upload_and_frees_it() {
        let mut uploads = uploads();
        uploads.start("u".into(), "r", NOW).unwrap();
        send(&mut uploads, "u", None, b"abc").unwrap();
        assert_eq!(uploads.finish("u", "r", &Digest::sha256(b"x")), Err(Trouble::WrongDigest));
        assert_eq!(uploads.offset("u", "r"), Err(Trouble::Unknown));
        assert_eq!(uploads.bytes(), 0);
    }

    #[test]
    fn number_size_and_age_are_bounded() {
        let mut uploads = uploads();
        uploads.start("a".into(), "r", NOW).unwrap();
        uploads.start("b".into(), "r", Duration::from_secs(50)).unwrap();
        assert_eq!(uploads.start("c".into(), "r", Duration::from_mins(1)), Err(Trouble::TooMany));
        assert_eq!(send(&mut uploads, "a", None, &[0; 1001]), Err(Trouble::TooLarge(1000)));
        uploads.start("c".into(), "r", Duration::from_secs(61)).unwrap();
        assert_eq!(uploads.offset("a", "r"), Err(Trouble::Unknown));
        assert_eq!(uploads.offset("b", "r"), Ok(0));
    }

    #[test]
    fn an_upload_belongs_to_its_repository_and_to_one_writer() {
        let mut uploads = uploads();
        uploads.start("u".into(), "r", NOW).unwrap();
        assert_eq!(uploads.cancel("u", "other"), Err(Trouble::Unknown));
        uploads.open("u", "r", None, NOW).unwrap();
        assert_eq!(uploads.open("u", "r", None, NOW), Err(Trouble::OutOfOrder(0)));
        assert_eq!(uploads.finish("u", "r", &Digest::sha256(b"")), Err(Trouble::OutOfOrder(0)));
        uploads.close("u", "r").unwrap();
        uploads.finish("u", "r", &Digest::sha256(b"")).unwrap();
    }
}
