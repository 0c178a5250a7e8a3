//! The state that the server has shown to each client cache, and when. A client acts on the state in its cache.
//!
//! Owns the bounded log of the states that watches showed to caches. The harness takes the entries out of the log. If
//! the harness is too slow, entries are lost, and the harness gets the number of lost entries. The log stays empty
//! until a harness follows the log.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mock_faults::Stream;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Maximum number of entries in the log that wait for the reader, which takes them several times a second.
const SHOWN_MAX: usize = 65_536;
/// The query parameter by which the server recognises watches that fill caches.
const CACHE: &str = "allowWatchBookmarks=true";
/// Query parameters with which a watch shows only some objects of a kind, so that missing versions prove nothing.
const SELECTORS: [&str; 2] = ["labelSelector=", "fieldSelector="];

/// One change of the state that the server has shown to a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The time of the change, in microseconds since the epoch.
    pub at_us: u64,
    pub user: Arc<str>,
    pub user_agent: Arc<str>,
    pub watch: u64,
    pub resource: Arc<str>,
    /// The watched namespace; `None` means all namespaces.
    pub namespace: Option<String>,
    /// The revision up to which the cache was shown all versions.
    pub through: u64,
    pub by: ShownBy,
}

/// The reason why the state of a cache changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShownBy {
    /// A watch began at this revision: the client claims to know all versions up to it.
    Begun,
    /// A snapshot replaced the content of the cache.
    Snapshot,
    /// The watch sent an event or a bookmark.
    Event,
    /// The server ended the watch.
    Ended,
    /// The client ended the watch and no longer uses the cache.
    Left,
}

#[derive(Debug, Default)]
pub(crate) struct ShownLog {
    on: AtomicBool,
    inner: Mutex<(VecDeque<Shown>, u64)>,
}

impl ShownLog {
    pub fn follow(&self) {
        self.on.store(true, Ordering::Release);
    }

    /// The entries of the log since the last call, and the number of lost entries.
    pub fn take(&self) -> (Vec<Shown>, u64) {
        let mut inner = self.inner.lock();
        let (shown, lost) = &mut *inner;
        (shown.drain(..).collect(), std::mem::take(lost))
    }

    /// Adds an entry for a watch, if the watch fills a cache with all objects of its kind.
    #[inline]
    pub fn note(&self, stream: &Stream, namespace: Option<&str>, by: ShownBy, through: u64, at_us: u64) {
        if self.on.load(Ordering::Acquire) && is_of_a_whole_cache(&stream.query) {
            self.push(stream, namespace, by, through, at_us);
        }
    }

    fn push(&self, stream: &Stream, namespace: Option<&str>, by: ShownBy, through: u64, at_us: u64) {
        let mut inner = self.inner.lock();
        let (shown, lost) = &mut *inner;
        if shown.len() == SHOWN_MAX {
            shown.pop_front();
            *lost += 1;
        }
        shown.push_back(Shown {
            at_us,
            user: stream.user.clone(),
            user_agent: stream.user_agent.clone(),
            watch: stream.id,
            resource: stream.resource.clone(),
            namespace: namespace.map(str::to_owned),
            through,
            by,
        });
    }
}

fn is_of_a_whole_cache(query: &str) -> bool {
    query.contains(CACHE) && !SELECTORS.iter().any(|selector| query.contains(selector))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_follows_all_of_its_kind() {
        assert!(is_of_a_whole_cache("allowWatchBookmarks=true&resourceVersion=3&watch=true"));
        assert!(!is_of_a_whole_cache("watch=true"));
        assert!(!is_of_a_whole_cache("allowWatchBookmarks=true&labelSelector=a%3Db&watch=true"));
    }
}
