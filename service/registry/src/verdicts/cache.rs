//! A cache with a limit in bytes, whose entries expire.
//!
//! The functions of this module get the present time as an argument. The oldest entry is removed first: entries live
//! only seconds and expire in the order of arrival, so a read does not move its entry.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use slab::Slab;

/// Number of bytes of an entry besides its text: map node, queue slot, value slot and allocations. The number is
/// rounded up and valid for 64-bit systems.
const ENTRY_OVERHEAD_BYTES: usize = 192;
/// Lifetime of an entry whose expiry time would exceed the range of the clock.
const LONGEST_TTL: Duration = Duration::from_hours(24);

#[derive(Debug)]
pub struct Cache<V> {
    book: Book,
    values: Slab<V>,
}

/// The keys and expiry times of the cache, without the values. The type has no parameter, so that its code is compiled
/// only once.
#[derive(Debug)]
struct Book {
    entries: BTreeMap<String, Entry>,
    order: VecDeque<(u64, String)>,
    serial: u64,
    used_bytes: usize,
    limit_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The index of the entry's value in the slab.
    at: usize,
    expires: Instant,
    serial: u64,
    cost_bytes: usize,
}

impl<V: Clone> Cache<V> {
    /// An empty cache that uses at most `limit_bytes`; with zero it stores nothing.
    pub fn new(limit_bytes: usize) -> Self {
        let book = Book { entries: BTreeMap::new(), order: VecDeque::new(), serial: 0, used_bytes: 0, limit_bytes };
        Self { book, values: Slab::new() }
    }

    /// The value of `key`; `None` if it is absent or has expired.
    pub fn value(&self, key: &str, now: Instant) -> Option<V> {
        self.values.get(self.book.find(key, now)?).cloned()
    }

    /// Stores `value` for `ttl`; the value uses `value_bytes` outside its entry.
    pub fn insert(&mut self, key: &str, value: V, value_bytes: usize, ttl: Duration, now: Instant) {
        let cost_bytes = 2 * key.len() + value_bytes + size_of::<V>() + ENTRY_OVERHEAD_BYTES;
        if cost_bytes > self.book.limit_bytes || ttl.is_zero() {
            return;
        }
        let at = self.values.insert(value);
        let mut gone = self.book.insert(key, at, cost_bytes, ttl, now);
        while let Some(at) = gone {
            self.values.try_remove(at);
            gone = self.book.shrink(now);
        }
    }

    /// Removes `key` and its value. The queue slot of the key is removed later, when the slot reaches the front of the
    /// queue.
    pub fn remove(&mut self, key: &str) {
        if let Some(at) = self.book.remove(key) {
            self.values.try_remove(at);
        }
    }

    pub fn used_bytes(&self) -> usize {
        self.book.used_bytes
    }

    /// Number of entries, including expired entries.
    pub fn len(&self) -> usize {
        self.book.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.book.entries.is_empty()
    }
}

impl Book {
    /// The slot of the value of `key`; `None` if it is absent or has expired.
    fn find(&self, key: &str, now: Instant) -> Option<usize> {
        self.entries.get(key).filter(|entry| entry.expires > now).map(|entry| entry.at)
    }

    /// Records that the value of `key` is in slot `at`. Returns a slot whose value must be removed; [`Self::shrink`]
    /// returns further slots.
    fn insert(&mut self, key: &str, at: usize, cost_bytes: usize, ttl: Duration, now: Instant) -> Option<usize> {
        self.serial += 1;
        // The time may come from a registry: a time too long for the clock counts as a day.
        let expires = now.checked_add(ttl).unwrap_or_else(|| now + LONGEST_TTL);
        let entry = Entry { at, expires, serial: self.serial, cost_bytes };
        self.used_bytes += cost_bytes;
        self.order.push_back((self.serial, key.to_owned()));
        match self.entries.insert(key.to_owned(), entry) {
            Some(old) => {
                self.used_bytes -= old.cost_bytes;
                Some(old.at)
            }
            None => self.shrink(now),
        }
    }

    /// Removes `key`; returns the slot of its value.
    fn remove(&mut self, key: &str) -> Option<usize> {
        let entry = self.entries.remove(key)?;
        self.used_bytes -= entry.cost_bytes;
        Some(entry.at)
    }

    /// The slot of the next value to remove: first expired entries, then the oldest entries above the limit.
    fn shrink(&mut self, now: Instant) -> Option<usize> {
        while let Some((serial, key)) = self.order.front() {
            let entry = self.entries.get(key).filter(|entry| entry.serial == *serial).copied();
            let stale = entry.is_none_or(|entry| entry.expires <= now);
            // A slot of a replaced entry costs as well, so replaced slots count against the limit through the queue's
            // length.
            if !stale && self.used_bytes <= self.limit_bytes {
                break;
            }
            if let Some(Entry { at, cost_bytes, .. }) = entry {
                self.used_bytes -= cost_bytes;
                self.entries.remove(key);
                self.order.pop_front();
                return Some(at);
            }
            self.order.pop_front();
        }
        if self.order.len() > 2 * self.entries.len() + 16 {
            let entries = &self.entries;
            self.order.retain(|(serial, key)| entries.get(key).is_some_and(|entry| entry.serial == *serial));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_entry_lives_for_its_ttl_and_no_longer() {
        let start = Instant::now();
        let mut cache = Cache::new(10_000);
        cache.insert("a", 1, 0, Duration::from_secs(10), start);
        assert_eq!(cache.value("a", start + Duration::from_secs(9)), Some(1));
        assert_eq!(cache.value("a", start + Duration::from_secs(10)), None);
        cache.insert("b", 2, 0, Duration::from_secs(10), start + Duration::from_secs(11));
        assert_eq!(cache.len(), 1, "the expired entry is dropped at the next insertion");
        cache.remove("b");
        assert_eq!((cache.value("b", start), cache.used_bytes()), (None, 0));
    }

    #[test]
    fn a_time_to_live_beyond_every_clock_is_no_panic() {
        let start = Instant::now();
        let mut cache = Cache::new(10_000);
        cache.insert("a", 1, 0, Duration::MAX, start);
        assert_eq!(cache.value("a", start + Duration::from_hours(1)), Some(1));
    }

    proptest! {
        /// After any insertions, the cache uses no more bytes than its limit, and its byte count equals the sum of all
        /// entries. The queue's length stays in proportion to the number of entries.
        #[test]
        fn bounded(keys in prop::collection::vec((0u8..40, 0usize..3000, 0u64..40), 0..300)) {
            let start = Instant::now();
            let mut cache = Cache::new(8_000);
            for (step, (key, bytes, ttl)) in keys.into_iter().enumerate() {
                let now = start + Duration::from_secs(step as u64);
                cache.insert(&format!("key-{key}"), key, bytes, Duration::from_secs(ttl), now);
                prop_assert!(cache.used_bytes() <= 8_000);
                prop_assert_eq!(cache.used_bytes(), cache.book.entries.values().map(|entry| entry.cost_bytes).sum::<usize>());
                prop_assert_eq!(cache.values.len(), cache.len(), "no value outlives its entry");
                prop_assert!(cache.book.order.len() <= 2 * cache.len() + 17);
            }
        }
    }
}
