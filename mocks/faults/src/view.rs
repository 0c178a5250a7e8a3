//! The state that one endpoint shows in a control plane with several servers.
//!
//! Owns the revision at which an endpoint may be stuck. As in a real server with a watch cache, a lagging endpoint
//! still writes and reads consistently (those go to the store), but lists with `resourceVersion=0`, and all watches,
//! come from its own old view.

use std::sync::atomic::{AtomicU64, Ordering};

/// No revision is this large.
const LIVE: u64 = u64::MAX;

/// The newest revision that an endpoint shows.
#[derive(Debug)]
pub struct View(AtomicU64);

impl View {
    /// Shows everything.
    pub fn live() -> Self {
        Self(AtomicU64::new(LIVE))
    }

    /// Shows nothing after `revision`.
    pub fn freeze(&self, revision: u64) {
        self.0.store(revision, Ordering::Release);
    }

    /// Shows everything again.
    pub fn thaw(&self) {
        self.0.store(LIVE, Ordering::Release);
    }

    /// The revision that this endpoint shows when the store is at `current`.
    #[inline]
    pub fn revision(&self, current: u64) -> u64 {
        self.0.load(Ordering::Acquire).min(current)
    }
}
