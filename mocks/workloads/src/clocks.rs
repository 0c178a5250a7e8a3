//! Times at which objects began to wait, for example to become ready. Objects do not contain these times: Pods become
//! ready in less than a second, and times in the API are whole seconds.

use std::collections::HashMap;

use jiff::Timestamp;

/// Times of one object that the object itself does not contain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    /// Each transition that waits (`bound`, `ready`), and the time at which its wait began.
    since: Vec<(&'static str, Timestamp)>,
    /// Faults that keep the object from being ready now and whose hit is already counted.
    pub(crate) told: Vec<(u64, Timestamp)>,
}

/// The times of all objects, by uid; an object's entry is removed with the object.
#[derive(Debug, Default)]
pub(crate) struct Clocks(HashMap<Box<str>, Clock>);

impl Clocks {
    /// The time at which the wait of a transition began; starts the wait if it is not running.
    pub(crate) fn since(&mut self, uid: &str, step: &'static str, now: Timestamp) -> Timestamp {
        let clock = self.of(uid);
        if let Some((_, since)) = clock.since.iter().find(|(known, _)| *known == step) {
            return *since;
        }
        clock.since.push((step, now));
        now
    }

    /// Ends the wait of a transition, so that the next wait starts anew.
    pub(crate) fn restart(&mut self, uid: &str, step: &'static str) {
        self.ends(uid, step);
    }

    /// Ends the wait of a transition; returns whether the wait was running.
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
