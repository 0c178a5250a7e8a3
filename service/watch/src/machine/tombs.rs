//! The uids of recently deleted objects, so that a replayed older event does not bring one back.
//!
//! Bounded: the oldest is forgotten. Pure.

use std::collections::{BTreeMap, VecDeque};

use crate::version::older;

/// Uids remembered, at about 150 bytes each. A replay concerns events sent moments ago.
const TOMBS_MAX: usize = 2048;

/// Deleted uids with the version at which they were known to be gone.
#[derive(Debug, Default)]
pub struct Tombs {
    versions: BTreeMap<Box<str>, Box<str>>,
    order: VecDeque<Box<str>>,
}

impl Tombs {
    /// Remembers that `uid` was gone at `version`.
    pub fn add(&mut self, uid: &str, version: &str) {
        if self.versions.insert(uid.into(), version.into()).is_none() {
            self.order.push_back(uid.into());
        }
        while self.order.len() > TOMBS_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.versions.remove(&oldest);
            }
        }
    }

    /// Whether an event for `uid` at `version` is a replay from before its deletion.
    pub fn refuses(&self, uid: &str, version: &str) -> bool {
        // Versions without order: an event may be news, and a wrong "no" would lose it. The next list repairs the other
        // error.
        self.versions.get(uid).is_some_and(|gone| older(version, gone))
    }

    /// Forgets `uid`: a list proved that it exists.
    pub fn remove(&mut self, uid: &str) {
        if self.versions.remove(uid).is_some() {
            self.order.retain(|known| &**known != uid);
        }
    }

    pub fn clear(&mut self) {
        self.versions.clear();
        self.order.clear();
    }
}
