//! A bounded ring of the newest commits without their objects, for the harness's ledger.
//!
//! The ring stores only identities and revisions, so it can contain far more commits than the store's history.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Identity, Progress};
use facts::Change;

#[derive(Debug, Clone)]
pub struct RawCommit {
    /// The time of the commit, in microseconds since the epoch.
    pub at_us: u64,
    pub identity: Arc<Identity>,
    pub revision: u64,
    /// Number of restores of the store before this commit.
    pub timeline: u32,
    pub change: Change,
    /// The uids of the owners, if the commit creates the object; otherwise empty.
    pub owners: Box<[Arc<str>]>,
    /// Whether the object has an owner that it did not have before.
    pub is_adopted: bool,
    /// The progress of the object's controller.
    pub progress: Progress,
}

/// Error: a reader fell so far behind that commits were dropped before it read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overrun {
    pub lost: u64,
}

/// The newest commits in order; their sequence numbers start at 0.
#[derive(Debug)]
pub struct Commits {
    ring: VecDeque<RawCommit>,
    dropped: u64,
    max: usize,
}

impl Commits {
    /// A ring that keeps the newest `max` commits; 0 counts as 1.
    pub fn new(max: usize) -> Self {
        Self { ring: VecDeque::new(), dropped: 0, max: max.max(1) }
    }

    /// Appends a commit; if the ring is full, the oldest is dropped.
    pub fn push(&mut self, commit: RawCommit) {
        if self.ring.len() == self.max {
            self.ring.pop_front();
            self.dropped += 1;
        }
        self.ring.push_back(commit);
    }

    /// The sequence number of the oldest kept commit.
    pub fn oldest(&self) -> u64 {
        self.dropped
    }

    pub fn next(&self) -> u64 {
        self.dropped + self.ring.len() as u64
    }

    pub fn newest_first(&self) -> impl Iterator<Item = &RawCommit> {
        self.ring.iter().rev()
    }

    pub fn count(&self) -> usize {
        self.ring.len()
    }

    /// Appends to `out` up to `max` commits, beginning with sequence number `from`.
    pub fn read(&self, from: u64, max: usize, out: &mut Vec<RawCommit>) -> Result<(), Overrun> {
        let Some(index) = from.checked_sub(self.dropped) else {
            return Err(Overrun { lost: self.dropped - from });
        };
        let index = usize::try_from(index).unwrap_or(usize::MAX).min(self.ring.len());
        out.extend(self.ring.range(index..).take(max).cloned());
        Ok(())
    }
}
