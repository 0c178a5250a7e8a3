//! What one endpoint of a control plane with several servers sees.
//!
//! Owns a revision that an endpoint may be stuck at. As in a real server with a watch cache, a lagging endpoint still
//! writes and reads consistently (those go to the store), but lists with `resourceVersion=0`, and all watches, come
//! from its own old view.

use std::sync::atomic::{AtomicU64, Ordering};

/// No revision is this large.
const LIVE: u64 = u64::MAX;

/// How much of the store an endpoint sees.
#[derive(Debug)]
pub struct View(AtomicU64);

impl View {
    /// Everything.
    pub fn live() -> Self {
        Self(AtomicU64::new(LIVE))
    }

    /// Nothing after `revision`.
    pub fn freeze(&self, revision: u64) {
        self.0.store(revision, Ordering::Release);
    }

    /// Everything again.
    pub fn thaw(&self) {
        self.0.store(LIVE, Ordering::Release);
    }

    /// What this endpoint has seen when the store is at `current`.
    #[inline]
    pub fn revision(&self, current: u64) -> u64 {
        self.0.load(Ordering::Acquire).min(current)
    }
}
