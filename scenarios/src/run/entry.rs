//! One version that was written.

use std::time::Instant;

use facts::{Commit, Progress};

/// One version that was written, from any source of commits.
pub(super) struct Entry {
    pub(super) at: Instant,
    pub(super) commit: Commit,
    pub(super) progress: Progress,
    /// Whether it was not written but came back, because the control plane was restored from an older state.
    pub(super) restored: bool,
}
