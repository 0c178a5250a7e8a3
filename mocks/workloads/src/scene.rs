//! The state, the active faults and the writes while the machine processes one object.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Config;
use super::clocks::Clocks;
use super::fields::{name, namespace, uid};
use super::kind::{Key, Kind};
use super::objects::Objects;
use super::trouble::{Hit, Trouble};
use super::write::{Author, Verb, Write};

/// Maximum number of writes for one object in one call of `Machine::step`; the next call returns the rest. A real
/// `ReplicaSet` controller makes up to 500 Pods at a time.
pub(crate) const WRITES_MAX: usize = 64;

pub(crate) struct Scene<'m> {
    pub(crate) now: Timestamp,
    pub(crate) config: &'m Config,
    pub(crate) objects: &'m Objects,
    pub(crate) clocks: &'m mut Clocks,
    pub(crate) troubles: &'m [Trouble],
    /// Why the last write of this object's controller was refused; `None` after an accepted write.
    pub(crate) refused: Option<&'m str>,
    /// The number of the next address for a Pod or a load balancer.
    pub(crate) addresses: &'m mut u32,
    pub(crate) writes: Vec<Write>,
    pub(crate) hits: Vec<Hit>,
    again: Option<Timestamp>,
}

impl<'m> Scene<'m> {
    pub(crate) fn new(
        now: Timestamp,
        (config, objects, troubles): (&'m Config, &'m Objects, &'m [Trouble]),
        (clocks, addresses): (&'m mut Clocks, &'m mut u32),
        refused: Option<&'m str>,
    ) -> Self {
        let (writes, hits) = (Vec::new(), Vec::new());
        Self { now, config, objects, clocks, troubles, refused, addresses, writes, hits, again: None }
    }

    /// Requests that the machine processes the object again at `at`, if the object does not change earlier.
    pub(crate) fn again(&mut self, at: Timestamp) {
        self.again = Some(self.again.map_or(at, |known| known.min(at)));
    }

    pub(crate) fn due(&self) -> Option<Timestamp> {
        self.again
    }

    /// Number of further writes that may be added. In total one more than [`WRITES_MAX`] may be added, to show that
    /// writes remain.
    pub(crate) fn room(&self) -> usize {
        (WRITES_MAX + 1).saturating_sub(self.writes.len())
    }

    /// Whether the transition `step` of an object has waited for the time `after`; if not, the object is processed
    /// again when that time has passed.
    pub(crate) fn waited(&mut self, object: &Value, step: &'static str, after: SignedDuration) -> bool {
        let since = self.clocks.since(uid(object), step, self.now);
        let due = since.checked_add(after).unwrap_or(Timestamp::MAX);
        if due > self.now {
            self.again(due);
        }
        due <= self.now
    }

    /// Whether a fault keeps a workload from being ready now. `object` is about to become ready through the transition
    /// `step`; `of` is the affected workload. Each outage counts one hit, and only if the workload would be ready
    /// without the fault. After an outage, `step` waits for its full time again.
    pub(crate) fn is_down(&mut self, object: &Value, (of, of_uid): (&Key, &str), step: &'static str) -> bool {
        let would = self.waited(object, step, self.config.ready_after);
        let mut down = false;
        for trouble in self.troubles {
            if !trouble.strikes(of, of_uid, self.config.seed) {
                continue;
            }
            let (is_down, until) = trouble.is_down(self.now);
            if let Some(until) = until {
                self.again(until);
            }
            if is_down && would {
                self.tell(trouble, object, (of, of_uid), until);
            }
            down |= is_down;
        }
        if down {
            self.clocks.since(uid(object), "down", self.now);
        } else if self.clocks.ends(uid(object), "down") {
            self.clocks.restart(uid(object), step);
        }
        down
    }

    fn tell(&mut self, by: &Trouble, object: &Value, (of, of_uid): (&Key, &str), until: Option<Timestamp>) {
        let period = (by.id, until.unwrap_or(by.began));
        let told = &mut self.clocks.of(uid(object)).told;
        if told.contains(&period) {
            return;
        }
        // The earlier periods are over.
        told.retain(|(id, _)| *id != by.id);
        told.push(period);
        let what = if of_uid == uid(object) { String::new() } else { format!(" of {}", of.shown()) };
        let detail = format!("{}/{}{what} is not ready", namespace(object), name(object));
        self.hits.push(Hit { trouble: by.id, detail });
    }

    pub(crate) fn write(&mut self, by: Author, key: Key, verb: Verb, body: Value) {
        self.writes.push(Write { by, key, verb, body });
    }

    /// Creates an object; without a name, the server makes a name from `generateName`.
    pub(crate) fn create(&mut self, by: &'static str, kind: Kind, body: Value) {
        let key = Key::new(kind, namespace(&body), name(&body));
        self.write(Author::Controller(by), key, Verb::Create, body);
    }

    pub(crate) fn update(&mut self, by: &'static str, key: Key, body: Value) {
        self.write(Author::Controller(by), key, Verb::Update, body);
    }

    /// Writes the status of an object if it has changed.
    pub(crate) fn status(&mut self, by: &'static str, key: Key, object: &Value, status: Value) {
        if object["status"] != status {
            let mut body = object.clone();
            body["status"] = status;
            self.write(Author::Controller(by), key, Verb::UpdateStatus, body);
        }
    }

    /// Deletes an object if its uid is unchanged.
    pub(crate) fn delete(&mut self, by: &'static str, kind: Kind, object: &Value) {
        let key = Key::new(kind, namespace(object), name(object));
        let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid(object)}});
        self.write(Author::Controller(by), key, Verb::Delete, body);
    }
}
