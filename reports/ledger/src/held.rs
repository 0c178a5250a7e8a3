//! Observations that arrived before their commit was known.
//!
//! Owns the queues of these observations, one for each uid so that their order is kept, and the order in which their
//! grace times end. The ledger decides the outcome of each observation and bounds the number of queued ones.

use std::collections::{HashMap, VecDeque};

use facts::{Observation, Uid};

#[derive(Debug, Default)]
pub(super) struct HeldObservations {
    by_uid: HashMap<Uid, VecDeque<Numbered>>,
    /// One entry for each queued observation, in order of arrival. Entries of decided observations are skipped when
    /// they reach the front.
    arrivals: VecDeque<(u64, Uid)>,
    len: usize,
    next: u64,
}

#[derive(Debug)]
pub(super) struct Numbered {
    number: u64,
    pub observation: Observation,
}

impl HeldObservations {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn waits(&self, uid: &Uid) -> bool {
        self.len > 0 && self.by_uid.contains_key(uid)
    }

    pub fn push(&mut self, observation: &Observation) {
        self.trim();
        let number = self.next;
        self.next += 1;
        self.arrivals.push_back((number, observation.uid.clone()));
        let held = Numbered { number, observation: observation.clone() };
        self.by_uid.entry(observation.uid.clone()).or_default().push_back(held);
        self.len += 1;
    }

    pub fn take_first(&mut self, uid: &Uid) -> Option<Numbered> {
        let queue = self.by_uid.get_mut(uid)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.by_uid.remove(uid);
        }
        self.len -= usize::from(first.is_some());
        first
    }

    pub fn put_back(&mut self, held: Numbered) {
        self.by_uid.entry(held.observation.uid.clone()).or_default().push_front(held);
        self.len += 1;
    }

    /// Takes the oldest queued observation, if it was made at or before `at_or_before_ms`; without a time, takes the
    /// oldest in any case.
    pub fn take_expired(&mut self, at_or_before_ms: Option<u64>) -> Option<Numbered> {
        self.trim();
        let (_, uid) = self.arrivals.front()?;
        let first = self.by_uid.get(uid).and_then(VecDeque::front)?;
        if at_or_before_ms.is_some_and(|limit_ms| first.observation.t_ms > limit_ms) {
            return None;
        }
        let (_, uid) = self.arrivals.pop_front()?;
        self.take_first(&uid)
    }

    /// Drops queue entries of observations whose outcome is decided. The observations of an object leave its queue
    /// oldest first, so an observation that is not at the front of a queue is in no queue.
    fn trim(&mut self) {
        while let Some((number, uid)) = self.arrivals.front() {
            if self.by_uid.get(uid).and_then(VecDeque::front).is_some_and(|first| first.number == *number) {
                break;
            }
            self.arrivals.pop_front();
        }
    }
}
