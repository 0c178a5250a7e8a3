//! How much of the store each cache was shown, and when. From it follows the state on which a client acted.
//!
//! Owns the bounded log between the watches of caches and its one reader. A reader that falls behind learns how much it lost.
//! Nothing is kept until the log is followed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mock_faults::Stream;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Entries that wait for their reader, which takes them several times a second.
const SHOWN_MAX: usize = 65_536;
/// The watches of caches carry this.
const CACHE: &str = "allowWatchBookmarks=true";
/// A watch with one of these is shown a part: what it was not shown may be none of its business.
const SELECTORS: [&str; 2] = ["labelSelector=", "fieldSelector="];

/// What a cache was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// When, in microseconds since the epoch.
    pub at_us: u64,
    /// Whose cache it is.
    pub user: Arc<str>,
    /// Of which program.
    pub user_agent: Arc<str>,
    /// The number of the watch.
    pub watch: u64,
    /// Full resource name.
    pub resource: Arc<str>,
    /// The namespace that it follows; `None` where it follows all.
    pub namespace: Option<String>,
    /// Everything up to this revision was shown.
    pub through: u64,
    /// How that came about.
    pub by: ShownBy,
}

/// How a cache came to know something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShownBy {
    /// A watch began there: the client says that it knows everything up to that revision, and nothing after it.
    Begun,
    /// A snapshot took the place of what the cache had.
    Snapshot,
    /// An event, or a bookmark.
    Event,
    /// The server ended the watch.
    Ended,
    /// The client ended the watch: nobody looks at the cache any more.
    Left,
}

/// The log.
#[derive(Debug, Default)]
pub(crate) struct ShownLog {
    on: AtomicBool,
    inner: Mutex<(VecDeque<Shown>, u64)>,
}

impl ShownLog {
    pub fn follow(&self) {
        self.on.store(true, Ordering::Release);
    }

    /// What came since the last call, and how much of it was lost.
    pub fn take(&self) -> (Vec<Shown>, u64) {
        let mut inner = self.inner.lock();
        let (shown, lost) = &mut *inner;
        (shown.drain(..).collect(), std::mem::take(lost))
    }

    /// Notes what a watch was shown, if it is that of a cache which follows all objects of its kind.
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
