//! Detects a rewind: the server was reset to an older state, for example because its store was restored from a backup.
//!
//! A list request without a version is a consistent read: the API promises that its answer is never older than an
//! earlier observation. A lagging cache or member can break that promise for a while. So one older list proves nothing,
//! but several older lists over a time prove a rewind. Functions get the present time as an argument.

use std::time::{Duration, Instant};

/// Time over which lists must be older than the view before a rewind is proven. A lagging member catches up within
/// seconds (kube-apiserver itself waits 3 s for its cache, then reports an error). A longer wait would keep objects
/// that no longer exist.
pub const PATIENCE: Duration = Duration::from_secs(8);
/// Minimum number of older lists that prove a rewind: a single answer may have been delayed for long.
pub const LISTS_MIN: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct Signs {
    first: Option<Instant>,
    lists: u32,
}

impl Signs {
    /// Records a further list that was older than the view. Returns whether a rewind is proven.
    pub fn older_list(&mut self, now: Instant) -> bool {
        let first = *self.first.get_or_insert(now);
        self.lists += 1;
        self.lists >= LISTS_MIN && now.saturating_duration_since(first) >= PATIENCE
    }

    /// Records that the server is not behind the view: the older answers came from a lagging member.
    pub fn refuted(&mut self) {
        *self = Self::default();
    }
}
