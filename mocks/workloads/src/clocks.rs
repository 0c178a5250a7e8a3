//! When objects were seen first: times in the API are whole seconds, and Pods become ready faster than that.

use std::collections::HashMap;

use jiff::Timestamp;

/// What is known of one object besides what it says itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    /// Since when each step waits for its time: `bound`, `ready`.
    since: Vec<(&'static str, Timestamp)>,
    /// The faults that hold it down now, which were told.
    pub(crate) told: Vec<(u64, Timestamp)>,
}

/// By uid; an entry goes with its object.
#[derive(Debug, Default)]
pub(crate) struct Clocks(HashMap<Box<str>, Clock>);

impl Clocks {
    /// Since when the step waits; from now on if it did not yet.
    pub(crate) fn since(&mut self, uid: &str, step: &'static str, now: Timestamp) -> Timestamp {
        let clock = self.of(uid);
        if let Some((_, since)) = clock.since.iter().find(|(known, _)| *known == step) {
            return *since;
        }
        clock.since.push((step, now));
        now
    }

    /// The step waits anew when it comes again.
    pub(crate) fn restart(&mut self, uid: &str, step: &'static str) {
        self.ends(uid, step);
    }

    /// Whether a step waits that does not any more.
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
