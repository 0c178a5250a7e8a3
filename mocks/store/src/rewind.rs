//! Restores the store to an older revision, as from a backup of etcd.
//!
//! Owns the undoing of commits after a revision. After a restore, new commits get the undone revisions again; a
//! timeline number distinguishes them. This module must not decide how requests for undone revisions are answered.

use std::sync::Arc;

use super::{ResourceId, Store, Version};

/// The revision of the empty store.
const FIRST: u64 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rewound {
    /// The time of the restore, in microseconds since the epoch.
    pub at_us: u64,
    /// The newest revision before the restore.
    pub from: u64,
    /// The newest revision after the restore; the next write gets the following revision.
    pub to: u64,
    pub undone: usize,
    /// The new timeline number, which later commits carry.
    pub timeline: u32,
}

/// Why the store cannot be restored to a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RewindError {
    #[error("failed to go back to revision {to}: the history begins after {floor}")]
    Compacted {
        to: u64,
        /// The oldest revision to which the store can be restored.
        floor: u64,
    },
    #[error("failed to go back to revision {to}: the newest one is {current}")]
    NotYet { to: u64, current: u64 },
}

impl Store {
    /// Restores every object to its state at revision `to` and sets the revision counter to `to`.
    pub fn rewind(&mut self, to: u64, at_us: u64) -> Result<Rewound, RewindError> {
        let from = self.revision;
        if to > from {
            return Err(RewindError::NotYet { to, current: from });
        }
        let oldest = self.floor.max(FIRST);
        if to < oldest {
            return Err(RewindError::Compacted { to, floor: oldest });
        }
        for index in 0..self.shelves.len() {
            for ((namespace, name), before) in self.shelves[index].undone(None, to) {
                self.restore(index, &namespace, &name, before);
            }
            self.shelves[index].log.rewind(to, from);
        }
        let mut undone = 0;
        while let Some(kept) = self.order.back().filter(|kept| kept.revision > to).copied() {
            self.order.pop_back();
            self.history_bytes = self.history_bytes.saturating_sub(kept.bytes as usize);
            undone += 1;
        }
        while self.warm.back().is_some_and(|version| version.revision > to) {
            let version = self.warm.pop_back();
            self.warm_bytes = self.warm_bytes.saturating_sub(version.map_or(0, |version| version.frame_bytes()));
        }
        self.revision = to;
        self.timeline += 1;
        Ok(Rewound { at_us, from, to, undone, timeline: self.timeline })
    }

    /// The newest revision that existed at `at_us`, or the oldest restorable revision if that is newer.
    pub fn revision_at(&self, at_us: u64) -> u64 {
        let oldest = self.floor.max(FIRST);
        let known = self.order.partition_point(|kept| kept.at_us <= at_us);
        match known.checked_sub(1).and_then(|index| self.order.get(index)) {
            _ if known == self.order.len() => self.revision,
            // A compaction may have removed it while open watches still read it.
            Some(kept) => kept.revision.max(oldest),
            None => oldest,
        }
    }

    /// Restores one object to its state `before`; `None` means that the object did not exist.
    fn restore(&mut self, shelf: usize, namespace: &Arc<str>, name: &Arc<str>, before: Option<Arc<Version>>) {
        let id = ResourceId(u32::try_from(shelf).expect("fewer than four billion resources"));
        let now = self.read(id, namespace, name).cloned();
        self.index_owners(now.as_deref(), before.as_deref());
        let bytes = |version: &Option<Arc<Version>>| version.as_ref().map_or(0, |version| version.frame_bytes());
        self.object_bytes = self.object_bytes + bytes(&before) - bytes(&now);
        self.objects = self.objects + usize::from(before.is_some()) - usize::from(now.is_some());
        let objects = &mut self.shelves[shelf].objects;
        match before {
            Some(version) => {
                objects.entry(namespace.clone()).or_default().insert(name.clone(), version);
            }
            None => {
                if let Some(names) = objects.get_mut(namespace) {
                    names.remove(name);
                    if names.is_empty() {
                        objects.remove(namespace);
                    }
                }
            }
        }
    }
}
