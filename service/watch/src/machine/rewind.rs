//! Detects a rewind: the server was reset to an older state, for example because its store was restored from a backup.
//!
//! A list request without a version is a consistent read: the API promises that its answer is never older than an
//! earlier observation. A lagging cache or etcd member can break that promise for a while. So one older list proves
//! nothing, but several older lists over some seconds prove a rewind. The functions of this module get the present time
//! as an argument.

use std::time::{Duration, Instant};

/// Time during which all lists must be older than the view before a rewind is proven. A lagging etcd member catches up
/// within seconds (kube-apiserver itself waits 3 s for its cache, then reports an error). A longer wait would keep
/// deleted objects in the view.
pub const PATIENCE: Duration = Duration::from_secs(8);
/// Minimum number of older lists that prove a rewind, because a single answer may have been delayed for long.
pub const LISTS_MIN: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct Signs {
    first: Option<Instant>,
    lists: u32,
}

impl Signs {
    /// Records one more list that was older than the view. Returns whether the lists prove a rewind.
    pub fn older_list(&mut self, now: Instant) -> bool {
        let first = *self.first.get_or_insert(now);
        self.lists += 1;
        self.lists >= LISTS_MIN && now.saturating_duration_since(first) >= PATIENCE
    }

    /// Records that the server is not behind the view, because a lagging etcd member sent the older lists.
    pub fn refuted(&mut self) {
        *self = Self::default();
    }
}
