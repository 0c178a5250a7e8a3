//! Gaps in the subject's stream that a relist closed.
//!
//! Owns the bounds of these gaps in the order of commits, for a bounded number of gaps of each resource. The module
//! `objects` has the rule that excuses versions in a gap.

use facts::Order;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
pub(super) struct Gaps {
    by_resource: BTreeMap<Box<str>, VecDeque<(Order, Order)>>,
    capacity: usize,
}

impl Gaps {
    pub fn new(capacity: usize) -> Self {
        Self { by_resource: BTreeMap::new(), capacity }
    }

    pub fn len(&self) -> usize {
        self.by_resource.values().map(VecDeque::len).sum()
    }

    pub fn push(&mut self, resource: &str, after_order: Order, through_order: Order) {
        if through_order <= after_order {
            return;
        }
        let gaps = self.by_resource.entry(resource.into()).or_default();
        gaps.push_back((after_order, through_order));
        if gaps.len() > self.capacity {
            gaps.pop_front();
        }
    }

    /// Whether one gap contains both the creation and the deletion of an object.
    pub fn hold(&self, resource: &str, created: Order, deleted: Order) -> bool {
        let inside = |&(after, through): &(Order, Order)| after < created && deleted <= through;
        self.by_resource.get(resource).is_some_and(|gaps| gaps.iter().any(inside))
    }
}
