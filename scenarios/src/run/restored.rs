//! Commits of a store that is restored from an older state. Computes the effect of a restore on each object.
//!
//! Owns an order of commits that keeps rising although revisions are used a second time. Adds the commits that a
//! restore implies: an object that the older state did not have is deleted, and an object that the older state had in
//! another version has that version again. Does no I/O. Used only for scenarios with `rewind`, because the versions of
//! every object are kept in memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use facts::{Change, Commit, Order, Progress, Revision, Uid};

use super::entry::Entry;

/// Maximum number of versions kept; a scenario with restores has a few hundred versions.
const VERSIONS_MAX: usize = 200_000;

/// All commits so far, by the uid of the object.
#[derive(Debug, Default)]
pub(super) struct Past {
    order: Order,
    timeline: u32,
    versions: usize,
    objects: BTreeMap<Uid, Vec<Known>>,
}

/// One version, with the data to commit the version again.
#[derive(Debug, Clone)]
struct Known {
    number: u64,
    commit: Commit,
}

impl Past {
    /// Gives commits their order, and adds the commits that restores imply.
    pub(super) fn enter(
        &mut self,
        batch: Vec<Entry>,
        timelines: &[u32],
        rewinds: &[mock_kube::Rewound],
        epoch: Instant,
    ) -> Result<Vec<Entry>> {
        let mut all = Vec::with_capacity(batch.len());
        for (mut entry, timeline) in batch.into_iter().zip(timelines) {
            self.catch_up(rewinds, *timeline, epoch, &mut all)?;
            self.order = self.order.next();
            entry.commit.order = self.order;
            self.remember(&entry.commit)?;
            all.push(entry);
        }
        Ok(all)
    }

    /// Adds the commits that the restores up to `timeline` imply.
    pub(super) fn catch_up(
        &mut self,
        rewinds: &[mock_kube::Rewound],
        timeline: u32,
        epoch: Instant,
        all: &mut Vec<Entry>,
    ) -> Result<()> {
        let begun = self.timeline;
        for rewound in rewinds.iter().filter(|rewound| rewound.timeline > begun && rewound.timeline <= timeline) {
            self.timeline = rewound.timeline;
            let at = epoch + Duration::from_micros(rewound.at_us);
            for versions in self.objects.values_mut() {
                let Some(newest) = versions.last().cloned().filter(|newest| newest.number > rewound.to) else {
                    continue;
                };
                versions.retain(|version| version.number <= rewound.to);
                let change = match (versions.last(), newest.commit.change) {
                    // It was created and deleted meanwhile.
                    (None, Change::Deleted) => continue,
                    (None, _) => Change::Deleted,
                    (Some(_), Change::Deleted) => {
                        bail!(
                            "the restore brought back {}, which had been deleted: no ledger can follow that",
                            newest.commit.name
                        )
                    }
                    (Some(_), _) => Change::Modified,
                };
                let revision = versions
                    .last()
                    .map_or_else(|| Revision::of_number(rewound.to), |last| last.commit.revision.clone());
                self.order = self.order.next();
                let commit = Commit { order: self.order, revision, change, ..newest.commit };
                all.push(Entry { at, commit, progress: Progress::default(), restored: true });
            }
        }
        Ok(())
    }

    fn remember(&mut self, commit: &Commit) -> Result<()> {
        self.versions += 1;
        if self.versions > VERSIONS_MAX {
            bail!("more than {VERSIONS_MAX} versions in a scenario that restores an older state: write less");
        }
        // This is only used with the mock, whose revisions are numbers.
        let known = Known { number: commit.revision.number().unwrap_or_default(), commit: commit.clone() };
        self.objects.entry(commit.uid.clone()).or_default().push(known);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(name: &str, revision: u64, change: Change) -> Entry {
        let commit = Commit {
            order: Order::default(),
            resource: "packages".into(),
            namespace: "n".into(),
            name: name.into(),
            uid: format!("uid-{name}").into(),
            revision: Revision::of_number(revision),
            change,
        };
        Entry { at: Instant::now(), commit, progress: Progress::default(), restored: false }
    }

    fn shown(entries: &[Entry]) -> Vec<String> {
        let text = |Entry { commit, restored, .. }: &Entry| {
            let restored = if *restored { "restored " } else { "" };
            format!("{restored}{} {:?} {}", commit.name, commit.change, commit.revision)
        };
        entries.iter().map(text).collect()
    }

    #[test]
    fn a_restore_takes_back_what_was_committed_after_it_and_order_goes_on_rising() {
        let mut past = Past::default();
        let batch = vec![
            commit("a", 2, Change::Added),
            commit("b", 3, Change::Added),
            commit("a", 4, Change::Modified),
            commit("c", 5, Change::Added),
            commit("d", 6, Change::Added),
            commit("d", 7, Change::Deleted),
            commit("b", 4, Change::Modified),
        ];
        let rewound = mock_kube::Rewound { at_us: 1, from: 7, to: 3, undone: 4, timeline: 1 };
        let all = past.enter(batch, &[0, 0, 0, 0, 0, 0, 1], &[rewound], Instant::now()).unwrap();
        let restored = ["restored a Modified 2", "restored c Deleted 3"];
        assert_eq!(shown(&all)[6..8], restored);
        assert_eq!(shown(&all)[8], "b Modified 4");
        let orders: Vec<Order> = all.iter().map(|entry| entry.commit.order).collect();
        assert!(orders.windows(2).all(|pair| pair[0] < pair[1]), "{orders:?}");
        let mut none = Vec::new();
        past.catch_up(&[rewound], 1, Instant::now(), &mut none).unwrap();
        assert!(none.is_empty(), "each restore once");
    }

    #[test]
    fn a_deleted_object_that_comes_back_is_refused() {
        let mut past = Past::default();
        past.enter(vec![commit("a", 2, Change::Added), commit("a", 4, Change::Deleted)], &[0, 0], &[], Instant::now())
            .unwrap();
        let rewound = mock_kube::Rewound { at_us: 1, from: 4, to: 3, undone: 1, timeline: 1 };
        assert!(past.catch_up(&[rewound], 1, Instant::now(), &mut Vec::new()).is_err());
    }
}
