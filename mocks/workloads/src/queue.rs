//! The queue of objects to process. Each object is in the queue at most once, in order of arrival, so a kind with many
//! changes does not delay another kind.

use std::collections::{BTreeSet, VecDeque};

use super::kind::Key;

#[derive(Debug, Default)]
pub(crate) struct Queue {
    order: VecDeque<Key>,
    there: BTreeSet<Key>,
}

impl Queue {
    /// Adds an object at the end, unless it is in the queue already.
    pub(crate) fn insert(&mut self, key: Key) {
        if self.there.insert(key.clone()) {
            self.order.push_back(key);
        }
    }

    pub(crate) fn extend(&mut self, keys: impl IntoIterator<Item = Key>) {
        keys.into_iter().for_each(|key| self.insert(key));
    }

    pub(crate) fn pop(&mut self) -> Option<Key> {
        let key = self.order.pop_front()?;
        self.there.remove(&key);
        Some(key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::Kind;
    use super::*;

    #[test]
    fn an_object_is_there_once_and_keeps_its_place() {
        let key = |kind| Key::new(kind, "n", "x");
        let mut queue = Queue::default();
        queue.extend([key(Kind::Pod), key(Kind::Deployment), key(Kind::Pod)]);
        assert_eq!(queue.pop(), Some(key(Kind::Pod)));
        queue.insert(key(Kind::Pod));
        assert_eq!((queue.pop(), queue.pop()), (Some(key(Kind::Deployment)), Some(key(Kind::Pod))));
        assert!(queue.is_empty() && queue.pop().is_none());
    }
}
