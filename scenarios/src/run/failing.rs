//! The subject's repeatedly refused writes, by object, if the control plane records requests.
//!
//! A client that was refused many times in a row waits long before its next attempt, and must not count as a client
//! that gave up. If the limit of objects is reached, further objects are not recorded.

use std::collections::BTreeMap;

use reports::record::{Refusals, RequestRow, Verb};

/// Maximum number of objects with refused writes that are kept, about 150 bytes each. A successful write removes its
/// object from this list.
const OBJECTS_MAX: usize = 10_000;

/// Refused writes since the last successful write, by namespace, name and resource.
#[derive(Debug, Default)]
pub(super) struct Failing {
    rows: BTreeMap<(String, String, String), Refusals>,
}

impl Failing {
    /// Records a request of the subject. Skips requests for collections or with generated names, which name no object.
    pub(super) fn note(&mut self, row: &RequestRow) {
        if !matches!(row.verb, Verb::Update | Verb::Patch) || row.name.is_empty() {
            return;
        }
        let key = (row.namespace.clone(), row.name.clone(), row.resource.clone());
        if row.succeeded() {
            self.rows.remove(&key);
        } else if row.status >= 400 && (self.rows.len() < OBJECTS_MAX || self.rows.contains_key(&key)) {
            let refusals = self.rows.entry(key).or_default();
            refusals.times += 1;
            refusals.last_ms = row.ended_ms.unwrap_or(row.t_ms);
            refusals.status = row.status;
        }
    }

    /// The refusals of an object whose last write was refused. Includes objects of other kinds with the same name,
    /// because a controller that fails at a child waits as long as after a failure at the parent.
    pub(super) fn of(&self, resource: &str, namespace: &str, name: &str) -> Option<Refusals> {
        let key = |resource: &str| (namespace.to_owned(), name.to_owned(), resource.to_owned());
        let own = self.rows.get(&key(resource))?;
        let named = self.rows.range(key("")..).take_while(|((of, it, _), _)| of == namespace && it == name);
        Some(Refusals { times: named.map(|(_, refusals)| refusals.times).sum(), ..own.clone() })
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
        assert_eq!(failing.of("caches", "n", "a"), Some(Refusals { times: 4, last_ms: 8, status: 503 }));
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
}
