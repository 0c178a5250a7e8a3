//! The record of requests: counters since the start, and the latest requests.
//!
//! The record's memory is bounded: one counter for each kind and status class, a ring buffer of fixed length, and texts
//! of limited length.

use std::collections::{BTreeMap, VecDeque};

use super::route::Kind;

/// Longest stored text of a path or a user agent, in characters.
const TEXT_CHARS_MAX: usize = 300;

/// Maximum number of tags whose requests are counted separately. Requests for further tags count only in the totals.
const TAGS_MAX: usize = 10_000;

/// Counters since the registry started.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Requests {
    pub by_kind: BTreeMap<Kind, u64>,
    /// Responses by the first digit of their status: 2 means 200 to 299, and 0 means a request without an answer.
    pub by_status_class: BTreeMap<u16, u64>,
    /// Distinct tags whose manifest was requested.
    pub tags: u64,
    /// The largest number of requests for the manifest of one tag.
    pub most_of_one_tag: u64,
    /// Bytes of request bodies that the registry read.
    pub received_bytes: u64,
    /// Bytes of response bodies that were handed to connections.
    pub sent_bytes: u64,
}

#[derive(Debug, Clone, serde::Serialize)]
pub struct Request {
    /// The time at which the request's head arrived, in microseconds since the run's epoch.
    pub at_us: u64,
    /// The time from the request's arrival until the headers of the answer were ready, in microseconds.
    pub took_us: u64,
    pub kind: Kind,
    pub method: String,
    /// Path and query of the request, cut to a printable length.
    pub path: String,
    /// Status of the answer; 0 if the request got no answer.
    pub status: u16,
    pub user: Option<String>,
    /// The `User-Agent` header, cut to a printable length.
    pub user_agent: String,
    /// The name of the fault that changed the answer; `None` if no fault did.
    pub fault: Option<String>,
}

/// The counters and the ring buffer of the latest requests.
#[derive(Debug)]
pub(super) struct Log {
    counters: Requests,
    by_tag: BTreeMap<String, u64>,
    ring: VecDeque<Request>,
    ring_max: usize,
}

impl Requests {
    pub fn count(&self, kind: Kind) -> u64 {
        self.by_kind.get(&kind).copied().unwrap_or(0)
    }

    pub fn total(&self) -> u64 {
        self.by_kind.values().sum()
    }
}

impl Log {
    pub(super) fn new(ring_max: usize) -> Self {
        Self { counters: Requests::default(), by_tag: BTreeMap::new(), ring: VecDeque::new(), ring_max }
    }

    pub(super) fn received(&mut self, bytes: usize) {
        self.counters.received_bytes += bytes as u64;
    }

    /// Counts a request for the manifest of a tag.
    pub(super) fn tag(&mut self, repository: &str, tag: &str) {
        let tag = format!("{repository}:{tag}");
        if self.by_tag.len() >= TAGS_MAX && !self.by_tag.contains_key(&tag) {
            return;
        }
        let count = self.by_tag.entry(tag).or_default();
        *count += 1;
        self.counters.most_of_one_tag = self.counters.most_of_one_tag.max(*count);
        self.counters.tags = self.by_tag.len() as u64;
    }

    pub(super) fn push(&mut self, mut request: Request, sent_bytes: u64) {
        *self.counters.by_kind.entry(request.kind).or_default() += 1;
        *self.counters.by_status_class.entry(request.status / 100).or_default() += 1;
        self.counters.sent_bytes += sent_bytes;
        if self.ring_max == 0 {
            return;
        }
        if self.ring.len() == self.ring_max {
            self.ring.pop_front();
        }
        cut(&mut request.path);
        cut(&mut request.user_agent);
        self.ring.push_back(request);
    }

    pub(super) fn counters(&self) -> Requests {
        self.counters.clone()
    }

    pub(super) fn recent(&self) -> Vec<Request> {
        self.ring.iter().cloned().collect()
    }
}

fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(TEXT_CHARS_MAX) {
        text.truncate(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_bounded_and_the_counters_are_not() {
        let mut log = Log::new(3);
        for n in 0..10_u16 {
            let request = Request {
                at_us: u64::from(n),
                took_us: 0,
                kind: Kind::Ping,
                method: "GET".into(),
                path: "ä".repeat(1000),
                status: 200,
                user: None,
                user_agent: String::new(),
                fault: None,
            };
            log.push(request, 2);
        }
        let recent = log.recent();
        assert_eq!(recent.iter().map(|request| request.at_us).collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(recent[0].path.chars().count(), TEXT_CHARS_MAX);
        assert_eq!(log.counters().count(Kind::Ping), 10);
        assert_eq!(log.counters().by_status_class[&2], 10);
        assert_eq!(log.counters().sent_bytes, 20);
    }
}
