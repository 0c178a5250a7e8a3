//! One version that was written.

use std::time::Instant;

use facts::{Commit, Progress};

/// One version that was written, whoever told it.
pub(super) struct Entry {
    pub(super) at: Instant,
    pub(super) commit: Commit,
    pub(super) progress: Progress,
    /// Nobody wrote it: the control plane was restored from an older state.
    pub(super) restored: bool,
}
