//! One written version of an object, from any source of commits.

use std::time::Instant;

use facts::{Commit, Progress};

pub(super) struct Entry {
    pub(super) at: Instant,
    pub(super) commit: Commit,
    pub(super) progress: Progress,
    /// Whether the version came back because the control plane was restored from an older state, without a new write.
    pub(super) restored: bool,
}
