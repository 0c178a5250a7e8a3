//! Whether the server has gone back in time, for example because its store was restored from a backup.
//!
//! Owns what counts as proof. A list without a version is a consistent read, so by the API's own promise it is never older than
//! what anybody has seen; a cache or a member that lags behind can break that promise for a while, and a view that follows it
//! lives through the past twice. So one such list proves nothing, several of them over a time do. Pure: time is an argument.

use std::time::{Duration, Instant};

/// How long lists must be older than what is known. A member that lags catches up within seconds (kube-apiserver itself waits 3 s
/// for its cache and then says so), and what was lost in a rewind should not be believed for longer than that.
pub const PATIENCE: Duration = Duration::from_secs(8);
/// So many lists must have said so: a single answer may have been under way for long.
pub const LISTS_MIN: u32 = 3;

/// The signs so far.
#[derive(Debug, Default)]
pub(super) struct Signs {
    first: Option<Instant>,
    lists: u32,
}

impl Signs {
    /// One more list was older than what is known. Answers whether that is proof by now.
    pub fn older_list(&mut self, now: Instant) -> bool {
        let first = *self.first.get_or_insert(now);
        self.lists += 1;
        self.lists >= LISTS_MIN && now.saturating_duration_since(first) >= PATIENCE
    }

    /// The server showed that it has what we know: whatever was older came from somebody who lags.
    pub fn refuted(&mut self) {
        *self = Self::default();
    }
}
