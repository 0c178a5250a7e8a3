//! Hashes of dropped versions and objects of the ledger, in a bounded ring.
//!
//! The hashes distinguish versions that were committed once from those that were never committed, without keeping the
//! texts of uids and versions.

use facts::{Order, Revision, Uid};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forgotten {
    /// The version's or object's number in the order of commits.
    pub order: Order,
}

/// A ring of hashes of 64 bits. With some ten thousand entries, the chance that two versions have the same hash is one
/// in a billion.
#[derive(Debug)]
pub(super) struct Memory {
    by_hash: HashMap<u64, Forgotten>,
    ring: VecDeque<u64>,
    capacity: usize,
}

impl Memory {
    pub fn new(capacity: usize) -> Self {
        Self { by_hash: HashMap::new(), ring: VecDeque::new(), capacity }
    }

    pub fn len(&self) -> usize {
        self.ring.len()
    }

    pub fn keep(&mut self, uid: &Uid, revision: &Revision, order: Order) {
        self.insert(hash(uid, Some(revision)), order);
    }

    /// Remembers a deleted and settled object.
    pub fn keep_dead(&mut self, uid: &Uid, order: Order) {
        self.insert(hash(uid, None), order);
    }

    pub fn recall(&self, uid: &Uid, revision: &Revision) -> Option<Forgotten> {
        if self.by_hash.is_empty() { None } else { self.by_hash.get(&hash(uid, Some(revision))).copied() }
    }

    /// The remembered deletion of an object; none if it is not remembered.
    pub fn recall_dead(&self, uid: &Uid) -> Option<Forgotten> {
        self.by_hash.get(&hash(uid, None)).copied()
    }

    fn insert(&mut self, hash: u64, order: Order) {
        if self.by_hash.insert(hash, Forgotten { order }).is_some() {
            return;
        }
        self.ring.push_back(hash);
        if self.ring.len() > self.capacity
            && let Some(oldest) = self.ring.pop_front()
        {
            self.by_hash.remove(&oldest);
        }
    }
}

/// A hash that is the same in every run: `DefaultHasher::new` has fixed keys.
fn hash(uid: &Uid, revision: Option<&Revision>) -> u64 {
    let mut hasher = DefaultHasher::new();
    uid.as_str().hash(&mut hasher);
    revision.map(Revision::as_str).hash(&mut hasher);
    hasher.finish()
}
