//! A bounded ring of what was committed, without the objects, for the harness's ledger.
//!
//! Owns identities and revisions only, so that it can be far longer than the history of objects.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Change, Identity, Progress};

#[derive(Debug, Clone)]
pub(crate) struct RawCommit {
    pub at_us: u64,
    pub identity: Arc<Identity>,
    pub revision: u64,
    pub timeline: u32,
    pub change: Change,
    pub progress: Progress,
}

/// A reader fell so far behind that commits were dropped which it has not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overrun {
    pub lost: u64,
}

#[derive(Debug)]
pub(crate) struct Commits {
    ring: VecDeque<RawCommit>,
    dropped: u64,
    max: usize,
}

impl Commits {
    pub fn new(max: usize) -> Self {
        Self { ring: VecDeque::new(), dropped: 0, max: max.max(1) }
    }

    pub fn push(&mut self, commit: RawCommit) {
        if self.ring.len() == self.max {
            self.ring.pop_front();
            self.dropped += 1;
        }
        self.ring.push_back(commit);
    }

    /// The sequence number of the oldest commit that is still here.
    pub fn oldest(&self) -> u64 {
        self.dropped
    }

    /// The sequence number that the next commit will get.
    pub fn next(&self) -> u64 {
        self.dropped + self.ring.len() as u64
    }

    /// The commits that are still here, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &RawCommit> {
        self.ring.iter().rev()
    }

    pub fn len(&self) -> usize {
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
