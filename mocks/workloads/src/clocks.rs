//! The times at which objects were first seen: times in the API are whole seconds, and Pods become ready faster than
//! that.

use std::collections::HashMap;

use jiff::Timestamp;

/// The times of one object beside those in the object itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    /// Since when each step waits for its time: `bound`, `ready`.
    since: Vec<(&'static str, Timestamp)>,
    /// The faults that keep it from being ready now and whose hits were counted.
    pub(crate) told: Vec<(u64, Timestamp)>,
}

/// By uid; an entry is removed with its object.
#[derive(Debug, Default)]
pub(crate) struct Clocks(HashMap<Box<str>, Clock>);

impl Clocks {
    /// Since when the step waits; starts the wait if it did not run.
    pub(crate) fn since(&mut self, uid: &str, step: &'static str, now: Timestamp) -> Timestamp {
        let clock = self.of(uid);
        if let Some((_, since)) = clock.since.iter().find(|(known, _)| *known == step) {
            return *since;
        }
        clock.since.push((step, now));
        now
    }

    /// Ends the wait of a step, which starts anew when the step comes again.
    pub(crate) fn restart(&mut self, uid: &str, step: &'static str) {
        self.ends(uid, step);
    }

    /// Ends the wait of a step; returns whether it waited.
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
