//! Detection of a server that has gone back in time, for example because its store was restored from a backup.
//!
//! This module defines the proof. A list without a version is a consistent read, so the API promises that it
//! is never older than any earlier observation. A lagging cache or member can break that promise for a while, and a
//! view that follows it sees the past twice. So one such list proves nothing, but several of them over a time do. Pure:
//! time is an argument.

use std::time::{Duration, Instant};

/// How long lists must be older than the view. A lagging member catches up within seconds (kube-apiserver itself waits
/// 3 s for its cache and then reports it), and objects lost in a rewind should not be believed for longer than that.
pub const PATIENCE: Duration = Duration::from_secs(8);
/// Least number of older lists: a single answer may have been under way for long.
pub const LISTS_MIN: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct Signs {
    first: Option<Instant>,
    lists: u32,
}

impl Signs {
    /// Records one more list that was older than the view. Returns whether the proof is complete.
    pub fn older_list(&mut self, now: Instant) -> bool {
        let first = *self.first.get_or_insert(now);
        self.lists += 1;
        self.lists >= LISTS_MIN && now.saturating_duration_since(first) >= PATIENCE
    }

    /// The server showed that it has our state: older answers came from a lagging member.
    pub fn refuted(&mut self) {
        *self = Self::default();
    }
}
