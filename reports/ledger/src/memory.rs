//! Hashes of dropped versions and objects, in a bounded ring.
//!
//! They distinguish "was committed once" from "was never committed" without keeping the texts. The ring must not hold
//! anything by name.

use facts::{Order, Revision, Uid};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forgotten {
    /// Its place in the order of commits.
    pub order: Order,
}

/// A ring of hashes. 64 bits over some ten thousand entries: a chance of one in a billion to take one for another.
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

    /// Remembers that an object was deleted and settled.
    pub fn keep_dead(&mut self, uid: &Uid, order: Order) {
        self.insert(hash(uid, None), order);
    }

    pub fn recall(&self, uid: &Uid, revision: &Revision) -> Option<Forgotten> {
        if self.by_hash.is_empty() { None } else { self.by_hash.get(&hash(uid, Some(revision))).copied() }
    }

    /// The remembered deletion of an object.
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

/// The same hash in every run: `DefaultHasher::new` has fixed keys.
fn hash(uid: &Uid, revision: Option<&Revision>) -> u64 {
    let mut hasher = DefaultHasher::new();
    uid.as_str().hash(&mut hasher);
    revision.map(Revision::as_str).hash(&mut hasher);
    hasher.finish()
}
