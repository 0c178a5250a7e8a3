//! The commits of a server for the harness's ledger.
//!
//! Owns a reader's position. The ring behind it is bounded, so a reader that is too slow gets the number of lost
//! commits.

use std::sync::Arc;

use facts::{Commit, Order, Progress, Revision};
use mock_store::RawCommit;
use tokio::sync::watch;

use super::cluster::Cluster;

/// One written object version, with facts that only the mock knows. Its order is its place among all commits of the
/// server, from 0: unlike the revision it never goes back, also not after a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// In microseconds since the epoch.
    pub at_us: u64,
    pub commit: Commit,
    /// The store's revision.
    pub revision: u64,
    /// How often the store had been restored before this commit. A revision identifies a version only together with its
    /// timeline: see [`super::Server::rewinds`].
    pub timeline: u32,
    /// The progress of the object's controller: see [`super::Config::looks`].
    pub progress: Progress,
}

/// The reader was too slow: commits were dropped before it read them. Reading goes on after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("failed to keep up with the commits: {lost} were dropped unread")]
pub struct Overrun {
    /// Number of dropped commits.
    pub lost: u64,
}

/// A cursor over all commits.
#[derive(Debug)]
pub struct Tail {
    cluster: Arc<Cluster>,
    next: u64,
    committed: watch::Receiver<u64>,
}

impl Tail {
    pub(super) fn new(cluster: Arc<Cluster>) -> Self {
        let committed = cluster.committed();
        let next = cluster.read(|store| store.commits().next());
        Self { cluster, next, committed }
    }

    /// Waits for commits and returns up to `max` of them, oldest first; never an empty batch (unless `max` is 0).
    /// Cancel-safe.
    pub async fn next_batch(&mut self, max: usize) -> Result<Vec<Entry>, Overrun> {
        loop {
            self.committed.borrow_and_update();
            let batch = self.try_batch(max)?;
            if !batch.is_empty() || max == 0 {
                return Ok(batch);
            }
            // The sender lives in the cluster, which this tail keeps alive.
            let _ = self.committed.changed().await;
        }
    }

    /// The newest restores, oldest first: see [`super::Server::rewinds`]. Commits from before a listed restore can
    /// already be read.
    pub fn rewinds(&self) -> Vec<super::Rewound> {
        self.cluster.rewinds()
    }

    /// The commits that are available now, up to `max`, oldest first.
    pub fn try_batch(&mut self, max: usize) -> Result<Vec<Entry>, Overrun> {
        let mut raw = Vec::new();
        let read = self.cluster.read(|store| {
            let commits = store.commits();
            commits.read(self.next, max, &mut raw).map_err(|overrun| (overrun, commits.oldest()))
        });
        if let Err((overrun, oldest)) = read {
            self.next = oldest;
            return Err(Overrun { lost: overrun.lost });
        }
        let first = self.next;
        self.next += raw.len() as u64;
        Ok((first..).zip(raw).map(|(order, raw)| Entry::new(Order::of_numbered(order), raw)).collect())
    }
}

impl Entry {
    fn new(order: Order, raw: RawCommit) -> Self {
        let identity = raw.identity;
        let commit = Commit {
            order,
            resource: identity.resource_name.clone(),
            namespace: identity.namespace.clone(),
            name: identity.name.clone(),
            uid: identity.uid.clone().into(),
            revision: Revision::of_number(raw.revision),
            change: raw.change,
        };
        let RawCommit { at_us, revision, timeline, progress, .. } = raw;
        Self { at_us, commit, revision, timeline, progress }
    }
}
