//! The end of objects: deletions of groups, which wait until no operation on the group's objects is running, and what
//! remains to be done after a deletion.

use std::time::{Duration, Instant};

use super::super::interval::Effect;
use super::super::operate::Rest;
use super::super::operations::Operation;
use super::Worker;
use crate::churn::api::IN_FLIGHT_MAX;
use crate::failure::Failure;

/// Maximum number of objects that wait for their end: half a minute at 300 deletions a second. The finalizers of
/// objects beyond this number are removed at once.
const ENDINGS_MAX: usize = 10_000;

impl Worker {
    /// Lets the deletion of a group wait for the current operations on its objects, which no later operation changes.
    pub(super) fn collect(&mut self, planned: Option<Instant>, operation: Operation) {
        if self.collections.len() >= IN_FLIGHT_MAX {
            let text = format!("{IN_FLIGHT_MAX} collections wait: the API is slower than the planned rate");
            self.shared.recorder.lock().failed("not begun", || text);
            let objects = self.members(operation);
            self.doomed.extend(objects);
            return;
        }
        self.collections.push_back((planned, operation));
        self.begin_collections();
    }

    /// Starts the deletions of groups on whose objects no operation is running.
    pub(super) fn begin_collections(&mut self) {
        for _ in 0..self.collections.len() {
            let Some((planned, operation)) = self.collections.pop_front() else { return };
            let members = self.members(operation);
            if members.is_empty() {
                // Each of its objects was deleted by itself meanwhile.
                self.shared.recorder.lock().done(Effect::Deleted);
                continue;
            }
            let busy = members.iter().any(|object| self.slots.get(object).is_some_and(|slot| slot.busy));
            if busy || self.tasks.len() >= IN_FLIGHT_MAX {
                self.collections.push_back((planned, operation));
                continue;
            }
            for object in members {
                self.slots.entry(object).or_default().busy = true;
            }
            self.spawn(planned, operation);
        }
    }

    /// Handles the end of a group's deletion. If the deletion of a group failed, each of its objects is deleted
    /// separately later.
    pub(super) fn collected(&mut self, operation: Operation, done: bool) {
        for object in self.members(operation) {
            let Some(slot) = self.slots.get_mut(&object) else { continue };
            slot.busy = false;
            if done {
                self.begin_end(operation, object);
            } else {
                self.doomed.insert(object);
            }
        }
    }

    /// The objects of a group, except those that are being deleted separately.
    fn members(&self, operation: Operation) -> Vec<u64> {
        let group = self.operator.plan.groups().of(operation.object);
        self.slots.range(group).filter(|(_, slot)| !slot.ends).map(|(object, _)| *object).collect()
    }

    /// Handles a deleted object, which is forgotten when nothing remains to be done for it.
    pub(super) fn begin_end(&mut self, operation: Operation, object: u64) {
        let mut rest = self.operator.rest(operation, object);
        if rest.is_none() {
            return self.forget(object);
        }
        if self.endings.len() >= ENDINGS_MAX {
            rest = Rest { held: rest.held.map(|_| Duration::ZERO), ..rest };
        }
        if let Some(slot) = self.slots.get_mut(&object) {
            (slot.busy, slot.ends) = (true, true);
        }
        let operator = self.operator.clone();
        self.endings.spawn(async move { (object, operator.end(object, rest).await) });
    }

    /// Handles the end of what remained to be done for a deleted object. If that failed, the object is deleted again.
    pub(super) fn rested(&mut self, ended: Result<(u64, Result<(), Failure>), tokio::task::JoinError>) {
        match ended {
            Ok((object, Ok(()))) => self.forget(object),
            Ok((object, Err(failure))) => {
                self.shared.recorder.lock().example(failure.class.text(), || failure.text);
                if let Some(slot) = self.slots.get_mut(&object) {
                    (slot.busy, slot.ends) = (false, false);
                }
                self.doomed.insert(object);
            }
            Err(error) => tracing::error!(%error, "the end of an object panicked"),
        }
    }

    fn forget(&mut self, object: u64) {
        self.slots.remove(&object);
        self.doomed.remove(&object);
        self.retire(self.operator.plan.namespace_of(object));
    }
}
