//! A bounded ring of commits, without the objects, for the harness's ledger.
//!
//! Owns identities and revisions only, so that it can be far longer than the history of objects.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Identity, Progress};
use facts::Change;

/// One commit, without the object.
#[derive(Debug, Clone)]
pub struct RawCommit {
    /// In microseconds since the epoch.
    pub at_us: u64,
    /// The object's identity.
    pub identity: Arc<Identity>,
    pub revision: u64,
    /// How often the store had been restored by then.
    pub timeline: u32,
    pub change: Change,
    /// The progress of the object's controller.
    pub progress: Progress,
}

/// A reader fell so far behind that unread commits were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overrun {
    pub lost: u64,
}

/// The newest commits, in order, with sequence numbers from 0.
#[derive(Debug)]
pub struct Commits {
    ring: VecDeque<RawCommit>,
    dropped: u64,
    max: usize,
}

impl Commits {
    /// Keeps the newest `max`, at least one.
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

    /// The sequence number of the next commit.
    pub fn next(&self) -> u64 {
        self.dropped + self.ring.len() as u64
    }

    /// The kept commits, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &RawCommit> {
        self.ring.iter().rev()
    }

    /// The number of kept commits.
    pub fn count(&self) -> usize {
        self.ring.len()
    }

    /// Appends up to `max` commits from sequence number `from` on.
    pub fn read(&self, from: u64, max: usize, out: &mut Vec<RawCommit>) -> Result<(), Overrun> {
        let Some(index) = from.checked_sub(self.dropped) else {
            return Err(Overrun { lost: self.dropped - from });
        };
        let index = usize::try_from(index).unwrap_or(usize::MAX).min(self.ring.len());
        out.extend(self.ring.range(index..).take(max).cloned());
        Ok(())
    }
}
