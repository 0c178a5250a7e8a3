//! How many images of one namespace are asked about at one time: what one tenant's registry does not answer is not to take the places
//! that all the others' images need.
//!
//! Owns one queue for each namespace that has reviews in work.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::share::IMAGES_AT_ONCE;

/// The table is swept of namespaces without reviews when it has so many, and then at each doubling.
const SWEEP_MIN: usize = 64;

/// The queues.
#[derive(Debug)]
pub struct Tenants {
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    queues: HashMap<String, Weak<Semaphore>>,
    sweep_at: usize,
}

impl Tenants {
    /// Nobody has reviews in work.
    pub fn new() -> Self {
        Self { table: Mutex::new(Table { queues: HashMap::new(), sweep_at: SWEEP_MIN }) }
    }

    /// The queue of `namespace`; what is in none has one together. It is kept as long as somebody holds it.
    pub fn queue(&self, namespace: Option<&str>) -> Arc<Semaphore> {
        let namespace = namespace.unwrap_or_default();
        let mut table = self.table.lock();
        if let Some(queue) = table.queues.get(namespace).and_then(Weak::upgrade) {
            return queue;
        }
        if table.queues.len() >= table.sweep_at {
            table.queues.retain(|_, queue| queue.strong_count() > 0);
            table.sweep_at = SWEEP_MIN.max(2 * table.queues.len());
        }
        let queue = Arc::new(Semaphore::new(IMAGES_AT_ONCE));
        table.queues.insert(namespace.to_owned(), Arc::downgrade(&queue));
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_one_queue_while_somebody_is_in_it_and_the_table_stays_small() {
        let tenants = Tenants::new();
        let (first, again) = (tenants.queue(Some("a")), tenants.queue(Some("a")));
        assert!(Arc::ptr_eq(&first, &again));
        assert!(!Arc::ptr_eq(&first, &tenants.queue(None)));
        for number in 0..10_000 {
            tenants.queue(Some(&number.to_string()));
        }
        let table = tenants.table.lock();
        assert!(table.queues.len() <= 2 * SWEEP_MIN, "{}", table.queues.len());
        assert!(table.queues["a"].strong_count() > 0);
    }
}
