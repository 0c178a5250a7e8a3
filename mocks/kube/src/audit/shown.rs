//! The part of the store that each cache has been shown, and when. It determines the state on which a client acted.
//!
//! Owns the bounded log between the watches of caches and its one reader. A reader that falls behind gets the number of
//! lost entries. The log is empty until it is followed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mock_faults::Stream;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Entries that wait for their reader, which takes them several times a second.
const SHOWN_MAX: usize = 65_536;
/// The query parameter by which watches of caches are recognised.
const CACHE: &str = "allowWatchBookmarks=true";
/// A watch with one of these selectors is shown a part of the kind, so missing versions prove nothing.
const SELECTORS: [&str; 2] = ["labelSelector=", "fieldSelector="];

/// One step in the state of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// In microseconds since the epoch.
    pub at_us: u64,
    pub user: Arc<str>,
    pub user_agent: Arc<str>,
    pub watch: u64,
    /// Full resource name.
    pub resource: Arc<str>,
    /// The watched namespace; `None` means all.
    pub namespace: Option<String>,
    /// Everything up to this revision was shown.
    pub through: u64,
    pub by: ShownBy,
}

/// The event that changed a cache's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShownBy {
    /// A watch began there: the client claims to know everything up to that revision, and nothing after it.
    Begun,
    /// A snapshot replaced the cache's content.
    Snapshot,
    /// An event, or a bookmark.
    Event,
    /// The server ended the watch.
    Ended,
    /// The client ended the watch and stops using the cache.
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

    /// Entries since the last call, and the number of lost ones.
    pub fn take(&self) -> (Vec<Shown>, u64) {
        let mut inner = self.inner.lock();
        let (shown, lost) = &mut *inner;
        (shown.drain(..).collect(), std::mem::take(lost))
    }

    /// Notes an event of a watch, if the watch belongs to a cache of all objects of its kind.
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
