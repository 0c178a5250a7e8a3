//! The uids of recently deleted objects: with them, a replayed older event cannot restore a deleted object.
//!
//! The number of remembered uids is limited; beyond the limit, the oldest uid is dropped.

use std::collections::{BTreeMap, VecDeque};

use crate::version::older;

/// Maximum number of remembered uids, with about 150 bytes each. So few uids are enough, because a replay repeats only
/// events of the last moments.
const TOMBS_MAX: usize = 2048;

/// Uids of deleted objects, each with a version at which the object is known to be absent.
#[derive(Debug, Default)]
pub struct Tombs {
    versions: BTreeMap<Box<str>, Box<str>>,
    order: VecDeque<Box<str>>,
}

impl Tombs {
    /// Records that the object `uid` was absent at `version`.
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

    /// Whether an event for `uid` at `version` is older than the deletion of the object.
    pub fn refuses(&self, uid: &str, version: &str) -> bool {
        // Versions without order: an event may be news, and a wrong "no" would lose it. The next list repairs the other
        // error.
        self.versions.get(uid).is_some_and(|gone| older(version, gone))
    }

    /// Removes `uid`, because a list proved that the object exists.
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
