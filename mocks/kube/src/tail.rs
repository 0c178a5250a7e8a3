//! The commits of a server, for the harness's ledger.
//!
//! Owns a reader's position in the bounded ring of commits. A reader that is too slow gets the number of lost commits.

use std::sync::Arc;

use facts::{Commit, Order, Progress, Revision};
use mock_store::RawCommit;
use tokio::sync::watch;

use super::cluster::Cluster;

/// One commit, with values that only the mock knows. `order` is the number of the commit, from 0, among all commits of
/// the server. Unlike the revision, `order` never goes back, even after a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The time of the commit in microseconds since the epoch.
    pub at_us: u64,
    pub commit: Commit,
    pub revision: u64,
    /// Number of restores of the store before this commit. Only revision and timeline together identify a version: see
    /// [`super::Server::rewinds`].
    pub timeline: u32,
    /// The uids of the owners, if the commit creates the object; otherwise empty.
    pub owners: Box<[Arc<str>]>,
    /// The progress of the object's controller: see [`super::Config::looks`].
    pub progress: Progress,
}

/// Error: the reader was too slow, and commits were dropped before the reader read them. The next read continues after
/// the lost commits.
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

    /// Waits for commits and returns up to `max` of them, oldest first. The result is never empty (unless `max` is 0).
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

    /// The newest restores of the store, oldest first: see [`super::Server::rewinds`]. If a restore is listed, all
    /// commits before the restore can be read.
    pub fn rewinds(&self) -> Vec<super::Rewound> {
        self.cluster.rewinds()
    }

    /// The commits that are available now, at most `max`, oldest first.
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
        let RawCommit { at_us, revision, timeline, owners, progress, .. } = raw;
        Self { at_us, commit, revision, timeline, owners, progress }
    }
}
