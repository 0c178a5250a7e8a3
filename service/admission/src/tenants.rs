//! The limit of image lookups per namespace: an unresponsive registry of one tenant does not block images of other
//! tenants.
//!
//! This module owns one queue for each namespace with active reviews, and the set of images that are being looked up. A
//! further request for an image that is being looked up shares the lookup and does not wait in the queue.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use service_core::share::IMAGES_AT_ONCE;

/// Number of queues at which idle queues are first removed; the next removal follows when the number has doubled.
const SWEEP_MIN: usize = 64;

#[derive(Debug)]
pub struct Tenants {
    table: Mutex<Table>,
    /// The number of lookups under way for each image.
    asked: Mutex<HashMap<String, usize>>,
}

/// A lookup of an image; it ends on drop.
#[derive(Debug)]
pub struct Turn<'t> {
    tenants: &'t Tenants,
    image: String,
}

#[derive(Debug)]
struct Table {
    queues: HashMap<String, Weak<Semaphore>>,
    sweep_at: usize,
}

impl Tenants {
    /// The limits of image lookups, with no queue yet.
    pub fn new() -> Self {
        let table = Table { queues: HashMap::new(), sweep_at: SWEEP_MIN };
        Self { table: Mutex::new(table), asked: Mutex::default() }
    }

    pub fn is_asked(&self, image: &str) -> bool {
        self.asked.lock().contains_key(image)
    }

    pub fn turn(&self, image: String) -> Turn<'_> {
        *self.asked.lock().entry(image.clone()).or_default() += 1;
        Turn { tenants: self, image }
    }

    /// The queue for image lookups of `namespace`; objects without a namespace share one queue. The queue exists while
    /// it has users.
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

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut asked = self.tenants.asked.lock();
        if let Some(turns) = asked.get_mut(&self.image) {
            *turns -= 1;
            if *turns == 0 {
                asked.remove(&self.image);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_asked_about_as_long_as_anybody_has_a_turn_for_it() {
        let tenants = Tenants::new();
        let (first, second) = (tenants.turn("a".into()), tenants.turn("a".into()));
        drop(first);
        assert!(tenants.is_asked("a") && !tenants.is_asked("b"));
        drop(second);
        assert!(!tenants.is_asked("a"));
    }

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
