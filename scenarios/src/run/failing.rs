//! The subject's repeatedly refused writes, by object, if the control plane records requests.
//!
//! A client that was refused many times in a row waits long before its next attempt, and must not count as a client
//! that gave up. The same holds for a client whose pauses between its writes of an object doubled: it fails at each
//! try. If the limit of objects is reached, further objects are not recorded.

use std::collections::BTreeMap;

use reports::record::{Refusals, RequestRow, Verb};

/// Maximum number of written objects that are kept, about 250 bytes each.
const OBJECTS_MAX: usize = 10_000;
/// If all places are taken, objects without a write for so long make room, in milliseconds. Shorter waits are the
/// common ones.
const OLD_MS: u64 = 60_000;

/// Writes that are less than this apart belong to one try of a controller, in milliseconds.
const ONE_TRY_MS: u64 = 100;
/// Number of tries after a row of doubled pauses that may have other reasons, such as a change or a deletion.
const OTHER_TRIES_MAX: u32 = 2;

/// An object of the subject's writes: namespace, name and resource.
type Key = (String, String, String);

/// Refused writes since the last successful write, and the pauses between writes, by object.
#[derive(Debug, Default)]
pub(super) struct Failing {
    rows: BTreeMap<Key, Row>,
    swept_ms: u64,
}

#[derive(Debug, Default)]
struct Row {
    /// Without refused writes if the last write succeeded.
    refusals: Refusals,
    tries: Tries,
}

impl Failing {
    /// Records a request of the subject. Skips requests for collections or with generated names, which name no object.
    pub(super) fn note(&mut self, row: &RequestRow) {
        if !matches!(row.verb, Verb::Update | Verb::Patch) || row.name.is_empty() {
            return;
        }
        let ended_ms = row.ended_ms.unwrap_or(row.t_ms);
        let key = (row.namespace.clone(), row.name.clone(), row.resource.clone());
        if !self.rows.contains_key(&key) && !self.has_room(ended_ms) {
            return;
        }
        let Row { refusals, tries } = self.rows.entry(key).or_default();
        tries.note(ended_ms);
        if row.succeeded() {
            *refusals = Refusals::default();
        } else if row.status >= 400 {
            refusals.times += 1;
            refusals.last_ms = ended_ms;
            refusals.status = row.status;
        }
    }

    /// Whether a further object can be kept. Removes old objects at most once in [`OLD_MS`].
    fn has_room(&mut self, now_ms: u64) -> bool {
        if self.rows.len() >= OBJECTS_MAX && now_ms.saturating_sub(self.swept_ms) >= OLD_MS {
            self.swept_ms = now_ms;
            self.rows.retain(|_, row| now_ms.saturating_sub(row.tries.last_ms) < OLD_MS);
        }
        self.rows.len() < OBJECTS_MAX
    }

    /// The refusals of an object whose last write was refused. Includes objects of other kinds with the same name,
    /// because a controller that fails at a child waits as long as after a failure at the parent.
    pub(super) fn of(&self, resource: &str, namespace: &str, name: &str) -> Option<Refusals> {
        let key = |resource: &str| (namespace.to_owned(), name.to_owned(), resource.to_owned());
        let own = self.rows.get(&key(resource)).filter(|row| row.refusals.times > 0)?;
        let named = self.rows.range(key("")..).take_while(|((of, it, _), _)| of == namespace && it == name);
        Some(Refusals {
            times: named.map(|(_, row)| row.refusals.times).sum(),
            wait_ms: own.tries.wait_ms(),
            ..own.refusals.clone()
        })
    }
}

/// The pauses between the tries of a controller for one object, in milliseconds.
///
/// A controller that fails at each try doubles its pauses. Such a controller need not have a refused write: it may also
/// fail before it writes, or write its failure into the status.
#[derive(Debug, Default)]
struct Tries {
    last_ms: u64,
    /// The last two pauses, the newer one last.
    pauses: [u64; 2],
    /// The newest pause that ended a row of three doubled pauses; 0 for none.
    doubled: u64,
    /// Number of tries since then.
    others: u32,
}

impl Tries {
    fn note(&mut self, now_ms: u64) {
        let pause = now_ms.saturating_sub(std::mem::replace(&mut self.last_ms, now_ms));
        if pause < ONE_TRY_MS {
            return;
        }
        let [older, newer] = self.pauses;
        let is_doubled = |a: u64, b: u64| a > 0 && 2 * b >= 3 * a && b <= 3 * a;
        if is_doubled(older, newer) && is_doubled(newer, pause) {
            (self.doubled, self.others) = (pause, 0);
        } else {
            self.others = self.others.saturating_add(1);
        }
        self.pauses = [newer, pause];
    }

    /// The wait that follows the last try, if the pauses doubled before. Each failed try doubles the wait, also a try
    /// that a change of the object caused.
    fn wait_ms(&self) -> Option<u64> {
        (self.doubled > 0 && self.others <= OTHER_TRIES_MAX).then(|| self.doubled.saturating_mul(2 << self.others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(t_ms: u64, resource: &str, name: &str, status: u16) -> RequestRow {
        let (resource, name) = (resource.to_owned(), name.to_owned());
        RequestRow { t_ms, verb: Verb::Update, resource, namespace: "n".into(), name, status, ..RequestRow::default() }
    }

    #[test]
    fn refusals_in_a_row_are_counted_until_a_write_succeeds() {
        let mut failing = Failing::default();
        for (t_ms, resource, name, status) in [
            (1, "caches", "a", 409),
            (2, "caches", "a", 200),
            (3, "deployments", "a", 409),
            (4, "configmaps", "a", 200),
            (5, "deployments", "a", 409),
            (6, "deployments", "ab", 409),
        ] {
            failing.note(&row(t_ms, resource, name, status));
        }
        assert_eq!(failing.of("caches", "n", "a"), None, "its own last write succeeded");
        failing.note(&row(7, "caches", "a", 409));
        failing.note(&row(8, "caches", "a", 503));
        assert_eq!(failing.of("caches", "n", "a"), Some(Refusals { times: 4, last_ms: 8, status: 503, wait_ms: None }));
        assert_eq!(failing.of("caches", "n", "b"), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut failing = Failing::default();
        for number in 0..=OBJECTS_MAX {
            failing.note(&row(1, "caches", &number.to_string(), 500));
        }
        assert_eq!(failing.rows.len(), OBJECTS_MAX);
    }

    /// Tries after 0.2, 0.4, 0.8 and 1.6 s with successful writes of a status. A deletion then causes a try at once,
    /// whose write is refused.
    #[test]
    fn doubled_pauses_say_how_long_a_client_may_wait() {
        let mut failing = Failing::default();
        let wait = |failing: &Failing| failing.of("caches", "n", "a").and_then(|refusals| refusals.wait_ms);
        for t_ms in [1000, 1200, 1210, 1600, 2400, 4000] {
            failing.note(&row(t_ms, "caches", "a", 200));
        }
        assert_eq!(wait(&failing), None, "no write was refused");
        failing.note(&row(4500, "caches", "a", 409));
        assert_eq!(wait(&failing), Some(6400));
        for t_ms in [5000, 5500] {
            failing.note(&row(t_ms, "caches", "a", 409));
        }
        assert_eq!(wait(&failing), None, "too many tries with other reasons");
    }

    #[test]
    fn equal_pauses_say_nothing() {
        let mut failing = Failing::default();
        for t_ms in [1000, 2000, 3000, 4000, 5000, 6000] {
            failing.note(&row(t_ms, "caches", "a", 409));
        }
        assert_eq!(failing.of("caches", "n", "a").map(|refusals| refusals.wait_ms), Some(None));
    }

    #[test]
    fn old_objects_make_room() {
        let mut failing = Failing::default();
        for number in 0..OBJECTS_MAX {
            failing.note(&row(1, "caches", &number.to_string(), 500));
        }
        failing.note(&row(OLD_MS + 1, "caches", "new", 500));
        assert!(failing.of("caches", "n", "new").is_some());
        assert_eq!(failing.rows.len(), 1);
    }
}
