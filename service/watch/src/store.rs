//! The store: every object that is known to exist, by namespace and name.
//!
//! Shared between the watch (the only writer) and its readers. The lock is held for single map operations only.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;
use sha2::{Digest as _, Sha256};

use super::object::{Key, Object, Package};

/// A handle to the objects; clones share them.
#[derive(Debug)]
pub struct Store<K = Package> {
    objects: Arc<RwLock<BTreeMap<Key, Arc<Object<K>>>>>,
    /// What a planted bug tells in place of what is known.
    #[cfg(feature = "planted-bugs")]
    stale: Arc<RwLock<BTreeMap<Key, Arc<Object<K>>>>>,
}

/// So many objects stay as they were: a store that kept all would be a leak, which is another bug.
#[cfg(feature = "planted-bugs")]
const STALE_MAX: usize = 8;

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self {
            objects: Arc::clone(&self.objects),
            #[cfg(feature = "planted-bugs")]
            stale: Arc::clone(&self.stale),
        }
    }
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self {
            objects: Arc::default(),
            #[cfg(feature = "planted-bugs")]
            stale: Arc::default(),
        }
    }
}

impl<K> Store<K> {
    /// The object at `key`.
    pub fn object(&self, key: &Key) -> Option<Arc<Object<K>>> {
        self.objects.read().get(key).cloned()
    }

    /// How many objects there are.
    #[cfg(not(feature = "planted-bugs"))]
    #[expect(clippy::len_without_is_empty, reason = "a figure for a page, nobody asks for emptiness")]
    pub fn len(&self) -> usize {
        self.objects.read().len()
    }

    /// At most `max` objects whose keys are after `after`, in the order of the keys.
    pub fn after(&self, after: Option<&Key>, max: usize) -> Vec<Arc<Object<K>>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let objects = self.objects.read();
        objects.range::<Key, _>((from, Bound::Unbounded)).take(max).map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Everything, in the order of the keys.
    pub fn snapshot(&self) -> Vec<Arc<Object<K>>> {
        self.objects.read().values().cloned().collect()
    }

    /// The first few of what it says of itself, in the order of the keys.
    pub(super) fn first(&self, max: usize) -> Vec<Arc<Object<K>>> {
        let mut told = self.told();
        told.truncate(max);
        told
    }

    pub(super) fn put(&self, object: Arc<Object<K>>) {
        self.objects.write().insert(object.key.clone(), object);
    }

    pub(super) fn remove(&self, key: &Key) -> Option<Arc<Object<K>>> {
        self.objects.write().remove(key)
    }

    /// SHA-256 over the lines `uid resourceVersion`, sorted, each ended by a newline; hexadecimal.
    ///
    /// Whoever lists the resource can compute the same from `metadata` alone and compare.
    pub fn checksum(&self) -> String {
        let mut lines: Vec<String> =
            self.told().iter().map(|object| format!("{} {}\n", object.uid, object.version)).collect();
        lines.sort_unstable();
        let digest = lines.iter().fold(Sha256::new(), Sha256::chain_update).finalize();
        hex::encode(digest)
    }

    /// What it says of itself.
    #[cfg(not(feature = "planted-bugs"))]
    fn told(&self) -> Vec<Arc<Object<K>>> {
        self.snapshot()
    }
}

/// The store that goes stale.
#[cfg(feature = "planted-bugs")]
impl<K> Store<K> {
    /// Stays as it is now for whoever has the answer; the watch goes on with the store itself.
    pub(super) fn as_it_is(&self) -> Self {
        Self { objects: Arc::new(RwLock::new(self.objects.read().clone())), stale: Arc::default() }
    }

    /// The object at `key` stays as it is now in all that the store says of itself; the watch goes on with what is known.
    pub(super) fn freeze(&self, key: &Key) {
        let Some(object) = self.object(key) else { return };
        let mut stale = self.stale.write();
        if stale.len() < STALE_MAX {
            stale.entry(key.clone()).or_insert(object);
        }
    }

    /// How many objects it says that there are.
    #[expect(clippy::len_without_is_empty, reason = "a figure for a page, nobody asks for emptiness")]
    pub fn len(&self) -> usize {
        let objects = self.objects.read();
        let gone = self.stale.read().keys().filter(|key| !objects.contains_key(key)).count();
        objects.len() + gone
    }

    fn told(&self) -> Vec<Arc<Object<K>>> {
        let mut told = self.objects.read().clone();
        told.extend(self.stale.read().iter().map(|(key, object)| (key.clone(), Arc::clone(object))));
        told.into_values().collect()
    }
}
