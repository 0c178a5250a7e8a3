//! The newest requests of all users, for reports and for verdicts about a subject's requests.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;

/// Size of the table of texts that equal requests share: one entry for each value of one byte of a text's hash.
const TEXTS_MAX: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// The time of arrival in microseconds since the epoch.
    pub at_us: u64,
    /// The HTTP method: `GET`, `POST`, …
    pub method: String,
    /// The path, at most 512 bytes.
    pub path: String,
    /// The query, at most 1024 bytes.
    pub query: String,
    /// The name of the user; `system:anonymous` for an unknown client.
    pub user: Arc<str>,
    /// The header `User-Agent`, at most 256 bytes.
    pub user_agent: Arc<str>,
    pub connection: u64,
    /// The HTTP version, 1 or 2.
    pub http_version: u8,
    pub status: u16,
    /// The revision of the object or list in the answer.
    pub revision: Option<u64>,
}

/// A ring with the newest requests. If the ring is full, a new request replaces the oldest.
#[derive(Debug)]
pub(crate) struct RequestRing {
    inner: Mutex<Inner>,
    max: usize,
}

#[derive(Debug, Default)]
struct Inner {
    ring: VecDeque<Kept>,
    /// Number of requests that were ever added.
    pushed: u64,
    /// Texts of recent requests by hash, because most requests repeat the paths and user agents of others.
    texts: Vec<Option<Arc<str>>>,
}

/// A compact copy of a request, which needs a third of the memory of its record.
#[derive(Debug)]
struct Kept {
    at_us: u64,
    connection: u64,
    user: Arc<str>,
    user_agent: Arc<str>,
    method: Arc<str>,
    /// The path followed by the query.
    target: Arc<str>,
    /// The revision in the answer; 0 if the answer has no revision.
    revision: u64,
    status: u16,
    path_bytes: u16,
    http_version: u8,
}

impl RequestRing {
    pub fn new(max: usize) -> Self {
        Self { inner: Mutex::default(), max: max.max(1) }
    }

    pub fn push(&self, record: RequestRecord) {
        let mut inner = self.inner.lock();
        let path_bytes = u16::try_from(record.path.len()).expect("a path is cut to 512 bytes");
        let mut target = record.path;
        target.push_str(&record.query);
        let kept = Kept {
            at_us: record.at_us,
            connection: record.connection,
            user: record.user,
            user_agent: inner.shared(&record.user_agent),
            method: inner.shared(&record.method),
            target: inner.shared(&target),
            revision: record.revision.unwrap_or(0),
            status: record.status,
            path_bytes,
            http_version: record.http_version,
        };
        if inner.ring.len() == self.max {
            inner.ring.pop_front();
        }
        inner.ring.push_back(kept);
        inner.pushed += 1;
    }

    /// Returns the total number of requests so far; of the requests after the first `seen`, the number of dropped
    /// requests; and the other requests in the order of their answers.
    pub fn since(&self, seen: u64) -> (u64, u64, Vec<RequestRecord>) {
        let inner = self.inner.lock();
        let kept = inner.ring.len() as u64;
        let new = inner.pushed.saturating_sub(seen);
        let skip = usize::try_from(kept - new.min(kept)).unwrap_or(usize::MAX);
        (inner.pushed, new.saturating_sub(kept), inner.ring.iter().skip(skip).map(Kept::record).collect())
    }

    /// The newest requests that `keep` accepts, at most `max`, newest first.
    pub fn newest_first(&self, max: usize, keep: impl Fn(&RequestRecord) -> bool) -> Vec<RequestRecord> {
        self.inner.lock().ring.iter().rev().map(Kept::record).filter(keep).take(max).collect()
    }

    pub fn snapshot(&self) -> Vec<RequestRecord> {
        self.inner.lock().ring.iter().map(Kept::record).collect()
    }
}

impl Inner {
    /// Returns a text that is shared with a recent request with the same text, if there is one.
    fn shared(&mut self, text: &str) -> Arc<str> {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        self.texts.resize(TEXTS_MAX, None);
        let slot = &mut self.texts[usize::from(hasher.finish().to_le_bytes()[0])];
        match slot {
            Some(known) if **known == *text => known.clone(),
            _ => slot.insert(text.into()).clone(),
        }
    }
}

impl Kept {
    fn record(&self) -> RequestRecord {
        let (path, query) = self.target.split_at(usize::from(self.path_bytes));
        RequestRecord {
            at_us: self.at_us,
            method: self.method.as_ref().to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            user: self.user.clone(),
            user_agent: self.user_agent.clone(),
            connection: self.connection,
            http_version: self.http_version,
            status: self.status,
            revision: Some(self.revision).filter(|revision| *revision > 0),
        }
    }
}

/// The first `max` bytes of `text` or fewer, cut at a character boundary.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(index: u64) -> RequestRecord {
        RequestRecord {
            at_us: index,
            method: if index.is_multiple_of(2) { "GET" } else { "POST" }.to_owned(),
            path: format!("/api/v1/pods/{}", index % 290),
            query: if index.is_multiple_of(3) { String::new() } else { format!("watch={index}") },
            user: "subject".into(),
            user_agent: "test/1".into(),
            connection: index / 7,
            http_version: 2,
            status: 200,
            revision: index.is_multiple_of(5).then_some(index + 1),
        }
    }

    /// A request counts as new when it is answered, even if it arrived before others that were answered earlier.
    #[test]
    fn what_is_new_is_told_once_and_what_was_dropped_is_counted() {
        let ring = RequestRing::new(3);
        let push = |at_us: u64| ring.push(RequestRecord { at_us, ..record(at_us) });
        let times = |(all, lost, new): (u64, u64, Vec<RequestRecord>)| {
            (all, lost, new.into_iter().map(|request| request.at_us).collect::<Vec<_>>())
        };
        [5, 7].into_iter().for_each(push);
        assert_eq!(times(ring.since(0)), (2, 0, vec![5, 7]));
        push(6);
        assert_eq!(times(ring.since(2)), (3, 0, vec![6]));
        [8, 9, 10, 11].into_iter().for_each(push);
        assert_eq!(times(ring.since(3)), (7, 1, vec![9, 10, 11]));
        assert_eq!(times(ring.since(7)), (7, 0, vec![]));
    }

    #[test]
    fn a_kept_request_is_the_one_that_was_made() {
        let ring = RequestRing::new(300);
        for index in 0..1000 {
            ring.push(record(index));
        }
        assert_eq!(ring.snapshot(), (700..1000).map(record).collect::<Vec<_>>());
        let even = ring.newest_first(2, |record| record.method == "GET");
        assert_eq!(even, [record(998), record(996)]);
    }
}
