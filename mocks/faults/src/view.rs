//! The state that one endpoint shows in a control plane with several API servers.
//!
//! Owns the newest revision that a lagging endpoint shows. As in a real server with a watch cache, a lagging endpoint
//! still writes to the store and does consistent reads from it. Lists with `resourceVersion=0` and all watches show the
//! endpoint's own old state.

use std::sync::atomic::{AtomicU64, Ordering};

/// The value for an endpoint that shows all revisions; no revision is this large.
const LIVE: u64 = u64::MAX;

/// The newest revision that an endpoint shows.
#[derive(Debug)]
pub struct View(AtomicU64);

impl View {
    /// An endpoint that shows all revisions.
    pub fn live() -> Self {
        Self(AtomicU64::new(LIVE))
    }

    /// From now on the endpoint shows no revision after `revision`.
    pub fn freeze(&self, revision: u64) {
        self.0.store(revision, Ordering::Release);
    }

    /// From now on the endpoint shows all revisions again.
    pub fn thaw(&self) {
        self.0.store(LIVE, Ordering::Release);
    }

    /// The revision that this endpoint shows when the store is at `current`.
    #[inline]
    pub fn revision(&self, current: u64) -> u64 {
        self.0.load(Ordering::Acquire).min(current)
    }
}
