//! Times at which the steps of objects began. Objects do not contain them: Pods become ready within less than a second,
//! and times in the API are whole seconds.

use std::collections::HashMap;

use jiff::Timestamp;

/// Times of one object that the object itself does not contain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    /// For each step that waits, its name (`bound`, `ready`) and the begin of the wait.
    since: Vec<(&'static str, Timestamp)>,
    /// Faults that keep the object from being ready now and whose hits are already counted.
    pub(crate) told: Vec<(u64, Timestamp)>,
}

/// The times of all objects, by uid; an object's entry is removed with the object.
#[derive(Debug, Default)]
pub(crate) struct Clocks(HashMap<Box<str>, Clock>);

impl Clocks {
    /// The begin of a step's wait; starts the wait if it is not running.
    pub(crate) fn since(&mut self, uid: &str, step: &'static str, now: Timestamp) -> Timestamp {
        let clock = self.of(uid);
        if let Some((_, since)) = clock.since.iter().find(|(known, _)| *known == step) {
            return *since;
        }
        clock.since.push((step, now));
        now
    }

    /// Ends the wait of a step, so that the next wait starts anew.
    pub(crate) fn restart(&mut self, uid: &str, step: &'static str) {
        self.ends(uid, step);
    }

    /// Ends the wait of a step; returns whether the step was waiting.
    pub(crate) fn ends(&mut self, uid: &str, step: &'static str) -> bool {
        let Some(clock) = self.0.get_mut(uid) else { return false };
        let known = clock.since.len();
        clock.since.retain(|(of, _)| *of != step);
        clock.since.len() < known
    }

    pub(crate) fn of(&mut self, uid: &str) -> &mut Clock {
        self.0.entry(uid.into()).or_default()
    }

    pub(crate) fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}
