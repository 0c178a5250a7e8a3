//! The newest requests, for verdicts about what a subject asked and for reports.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

/// One request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// When it arrived, in microseconds since the epoch.
    pub at_us: u64,
    /// `GET`, `POST`, …
    pub method: String,
    /// The path, at most 512 bytes.
    pub path: String,
    /// The query, at most 1024 bytes.
    pub query: String,
    /// Who asked; `system:anonymous` when nobody knows.
    pub user: Arc<str>,
    /// The `User-Agent`, at most 256 bytes.
    pub user_agent: Arc<str>,
    /// The number of the connection.
    pub connection: u64,
    /// 1 or 2.
    pub http_version: u8,
    /// The status of the answer.
    pub status: u16,
}

/// The newest requests; the oldest is dropped when it is full.
#[derive(Debug)]
pub(crate) struct RequestRing {
    ring: Mutex<VecDeque<RequestRecord>>,
    max: usize,
}

impl RequestRing {
    pub fn new(max: usize) -> Self {
        Self { ring: Mutex::new(VecDeque::new()), max: max.max(1) }
    }

    pub fn push(&self, record: RequestRecord) {
        let mut ring = self.ring.lock();
        if ring.len() == self.max {
            ring.pop_front();
        }
        ring.push_back(record);
    }

    /// The newest `max` requests that `keep` accepts, newest first.
    pub fn newest_first(&self, max: usize, keep: impl Fn(&RequestRecord) -> bool) -> Vec<RequestRecord> {
        self.ring.lock().iter().rev().filter(|record| keep(record)).take(max).cloned().collect()
    }

    pub fn snapshot(&self) -> Vec<RequestRecord> {
        self.ring.lock().iter().cloned().collect()
    }
}

/// At most `max` bytes of `text`, cut at a character.
pub(crate) fn cut(text: &str, max: usize) -> String {
    text[..text.floor_char_boundary(max)].to_owned()
}
