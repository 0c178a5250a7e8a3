//! The store of all known objects, by namespace and name.
//!
//! Only the watch writes to the store; other tasks read it. The lock of the store is held only for single map
//! operations.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;
use sha2::{Digest as _, Sha256};

use super::object::{Key, Kind, Object, Package, RawObject};

/// A function that reads the needed fields of an object.
type Read<K> = dyn Fn(&RawObject<'_>) -> K + Send + Sync;

/// A handle to the store; clones share the objects.
pub struct Store<K = Package> {
    objects: Arc<RwLock<BTreeMap<Key, Arc<Object<K>>>>>,
    read: Arc<Read<K>>,
}

impl<K> fmt::Debug for Store<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a store of {} objects", self.len())
    }
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self { objects: Arc::clone(&self.objects), read: Arc::clone(&self.read) }
    }
}

impl<K: Kind> Default for Store<K> {
    fn default() -> Self {
        Self::keeping(K::read)
    }
}

impl<K> Store<K> {
    /// A store whose function `read` chooses at run time which fields of each object are kept.
    pub fn keeping(read: impl Fn(&RawObject<'_>) -> K + Send + Sync + 'static) -> Self {
        Self { objects: Arc::default(), read: Arc::new(read) }
    }

    pub(super) fn read(&self, raw: RawObject<'_>) -> Object<K> {
        raw.into_object_by(&*self.read)
    }

    pub fn object(&self, key: &Key) -> Option<Arc<Object<K>>> {
        self.objects.read().get(key).cloned()
    }

    #[expect(clippy::len_without_is_empty, reason = "a figure for a page, nobody asks for emptiness")]
    pub fn len(&self) -> usize {
        self.objects.read().len()
    }

    /// At most `max` objects with keys after `after`, in the order of keys.
    pub fn after(&self, after: Option<&Key>, max: usize) -> Vec<Arc<Object<K>>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let objects = self.objects.read();
        objects.range::<Key, _>((from, Bound::Unbounded)).take(max).map(|(_, object)| Arc::clone(object)).collect()
    }

    pub fn snapshot(&self) -> Vec<Arc<Object<K>>> {
        self.objects.read().values().cloned().collect()
    }

    pub(super) fn put(&self, object: Arc<Object<K>>) {
        self.objects.write().insert(object.key.clone(), object);
    }

    pub(super) fn remove(&self, key: &Key) -> Option<Arc<Object<K>>> {
        self.objects.write().remove(key)
    }

    /// SHA-256 of the sorted lines `uid resourceVersion`, each with a newline; in hexadecimal.
    ///
    /// Any client can list the resource's metadata and compute the same checksum.
    pub fn checksum(&self) -> String {
        let mut lines: Vec<String> =
            self.snapshot().iter().map(|object| format!("{} {}\n", object.uid, object.version)).collect();
        lines.sort_unstable();
        let digest = lines.iter().fold(Sha256::new(), Sha256::chain_update).finalize();
        hex::encode(digest)
    }
}
