//! A cache bounded in bytes, whose entries expire.
//!
//! Pure: `now` is passed in. Eviction is first in, first out: with lifetimes of seconds the order of arrival is the order
//! of expiry, and a hit needs no write.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Bytes that an entry costs beside its text: map node, queue slot, allocations. Measured on 64-bit, rounded up.
const ENTRY_OVERHEAD_BYTES: usize = 160;
/// How long an entry lives whose time to live is beyond what a clock can say.
const LONGEST_TTL: Duration = Duration::from_hours(24);

/// The remembered value of a key.
#[derive(Debug, Clone)]
pub struct Entry<V> {
    /// The value.
    pub value: V,
    expires: Instant,
    serial: u64,
    cost_bytes: usize,
}

/// Values by text key.
#[derive(Debug)]
pub struct Cache<V> {
    entries: BTreeMap<String, Entry<V>>,
    order: VecDeque<(u64, String)>,
    serial: u64,
    used_bytes: usize,
    limit_bytes: usize,
}

impl<V: Clone> Cache<V> {
    /// An empty cache that never holds more than `limit_bytes`; zero keeps nothing.
    pub fn new(limit_bytes: usize) -> Self {
        Self { entries: BTreeMap::new(), order: VecDeque::new(), serial: 0, used_bytes: 0, limit_bytes }
    }

    /// The value of `key` unless it has expired.
    pub fn value(&self, key: &str, now: Instant) -> Option<V> {
        self.entries.get(key).filter(|entry| entry.expires > now).map(|entry| entry.value.clone())
    }

    /// Remembers `value`, which holds `value_bytes` outside the entry, for `ttl`.
    pub fn insert(&mut self, key: &str, value: V, value_bytes: usize, ttl: Duration, now: Instant) {
        let cost_bytes = 2 * key.len() + value_bytes + size_of::<V>() + ENTRY_OVERHEAD_BYTES;
        if cost_bytes > self.limit_bytes || ttl.is_zero() {
            return;
        }
        self.serial += 1;
        // The time may come from a registry: what is too long for a clock is as good as a day.
        let expires = now.checked_add(ttl).unwrap_or_else(|| now + LONGEST_TTL);
        let entry = Entry { value, expires, serial: self.serial, cost_bytes };
        self.used_bytes += cost_bytes;
        self.order.push_back((self.serial, key.to_owned()));
        if let Some(old) = self.entries.insert(key.to_owned(), entry) {
            self.used_bytes -= old.cost_bytes;
        }
        self.shrink(now);
    }

    /// Forgets `key`. Its slot in the order goes when its turn comes.
    pub fn remove(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.used_bytes -= entry.cost_bytes;
        }
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// Entries held, expired ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drops what has expired at the front, then what does not fit.
    fn shrink(&mut self, now: Instant) {
        while let Some((serial, key)) = self.order.front() {
            let entry = self.entries.get(key).filter(|entry| entry.serial == *serial);
            let stale = entry.is_none_or(|entry| entry.expires <= now);
            // A slot of a replaced entry costs as well, so replaced slots count against the limit through the queue's length.
            if !stale && self.used_bytes <= self.limit_bytes {
                break;
            }
            if let Some(cost_bytes) = entry.map(|entry| entry.cost_bytes) {
                self.used_bytes -= cost_bytes;
                self.entries.remove(key);
            }
            self.order.pop_front();
        }
        if self.order.len() > 2 * self.entries.len() + 16 {
            let entries = &self.entries;
            self.order.retain(|(serial, key)| entries.get(key).is_some_and(|entry| entry.serial == *serial));
        }
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
        /// Whatever is inserted, the bytes in use stay under the limit, equal the sum of the entries, and the queue stays
        /// in proportion to the entries.
        #[test]
        fn bounded(keys in prop::collection::vec((0u8..40, 0usize..3000, 0u64..40), 0..300)) {
            let start = Instant::now();
            let mut cache = Cache::new(8_000);
            for (step, (key, bytes, ttl)) in keys.into_iter().enumerate() {
                let now = start + Duration::from_secs(step as u64);
                cache.insert(&format!("key-{key}"), key, bytes, Duration::from_secs(ttl), now);
                prop_assert!(cache.used_bytes() <= 8_000);
                prop_assert_eq!(cache.used_bytes(), cache.entries.values().map(|entry| entry.cost_bytes).sum::<usize>());
                prop_assert!(cache.order.len() <= 2 * cache.entries.len() + 17);
            }
        }
    }
}
