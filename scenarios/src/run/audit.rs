//! The audit of a run: the subject's writes, the numbers of objects that came and went, and the objects at the end.
//!
//! Owns how the audit is read from the mock control plane, and how it is compared with `budgets.ending`. Real control
//! planes are not audited, because their commits have no complete order here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use facts::{Change, Commit};
use mock_kube::{Server, Tail};
use reports::budgets::Expected;
use reports::record::Met;
use serde_json::Value;

use super::world::World;
use crate::clock::Clock;
use crate::hunt::audit::{Audit, Changes, Object, Write};
use crate::hunt::normal::{self, Leaves};
use crate::scenario::Scenario;

/// Maximum number of objects in an audit.
const OBJECTS_MAX: usize = 20_000;
/// Number of commits that are read at once.
const BATCH: usize = 4096;

/// An audit that is under way.
pub(super) struct Auditor {
    tail: Tail,
    /// The file for the audit, if the caller of the run wants it.
    out: Option<PathBuf>,
    expected: Vec<Expected>,
}

impl Auditor {
    /// Begins an audit, if the scenario or the caller needs it and the control plane is the mock.
    pub(super) fn begin(scenario: &Scenario, world: &World, out: Option<&Path>) -> Option<Self> {
        let ending = scenario.budgets.ending.clone().unwrap_or_default();
        let expected = ending.expected.unwrap_or_default();
        if out.is_none() && expected.is_empty() {
            return None;
        }
        let server = &world.plane.mock()?.server;
        if out.is_some() {
            server.note_writes();
        }
        Some(Self { tail: server.tail(), out: out.map(Path::to_owned), expected })
    }

    /// Ends the audit: writes its file, and compares it with the expectations.
    pub(super) fn end(mut self, world: &World, clock: &Clock, hits: Vec<u64>) -> Result<Option<Vec<Met>>> {
        let Some(mock) = world.plane.mock() else { return Ok(None) };
        let mut audit =
            read(&mock.server, world.plane.subject(), |at_us| clock.at_ms(world.epoch + Duration::from_micros(at_us)));
        audit.hits = hits;
        match changes(&mut self.tail) {
            Ok(changes) => audit.changes = changes,
            Err(why) => audit.lacks = Some(why),
        }
        if let Some(out) = &self.out {
            let text = serde_json::to_string(&audit).context("failed to write the audit as JSON")?;
            std::fs::write(out, text).with_context(|| format!("failed to write {}", out.display()))?;
        }
        let met = |expected: &Expected| compare(expected, &audit);
        let all: Vec<Met> = self.expected.iter().map(met).collect();
        Ok((!all.is_empty() && audit.lacks.is_none()).then_some(all))
    }
}

/// The subject's writes, and the objects in the store.
fn read(server: &Server, user: &str, at_ms: impl Fn(u64) -> u64) -> Audit {
    let (written, lost) = server.take_writes();
    let mut audit = Audit::default();
    if lost > 0 {
        audit.lacks = Some(format!("{lost} writes were lost"));
    }
    for write in written.into_iter().filter(|write| &*write.user == user) {
        let object =
            if write.namespace.is_empty() { write.name } else { format!("{}/{}", write.namespace, write.name) };
        audit.writes.push(Write {
            t_ms: at_ms(write.at_us),
            verb: write.verb.text(),
            resource: write.resource.to_string(),
            subresource: write.subresource,
            object,
            fields: write.fields,
            status: write.status,
        });
    }
    server.each_object(|resource, object| {
        if audit.objects.len() < OBJECTS_MAX {
            audit.objects.push(Object { resource: resource.to_owned(), object });
        } else {
            audit.lacks = Some(format!("there are more than {OBJECTS_MAX} objects"));
        }
    });
    let watches = server.permissions(user).into_iter().filter(|permission| permission.verb == "watch");
    audit.watched = watches.map(|one| full_name(&one.resource, &one.group)).collect();
    audit.watched.sort_unstable();
    audit.watched.dedup();
    audit
}

fn full_name(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

/// The numbers of objects by resource since the beginning of the tail.
fn changes(tail: &mut Tail) -> Result<BTreeMap<String, Changes>, String> {
    let mut count = Count::default();
    loop {
        let batch = tail.try_batch(BATCH).map_err(|overrun| overrun.to_string())?;
        if batch.is_empty() {
            return Ok(count.changes);
        }
        for entry in batch {
            let owners: Vec<&str> = entry.owners.iter().map(AsRef::as_ref).collect();
            let Commit { resource, namespace, name, uid, change, .. } = &entry.commit;
            count.add(resource, &format!("{namespace}/{name}"), uid.as_str(), *change, &owners);
        }
    }
}

/// The numbers of objects so far. An object whose owners are all gone when it is created does not count: the program had
/// read its owner before the owner was deleted, and the garbage collector deletes the object at once. The objects that
/// controllers make for such an object do not count either.
#[derive(Default)]
struct Count {
    changes: BTreeMap<String, Changes>,
    here: BTreeMap<String, i64>,
    /// The uids of deleted objects.
    gone: BTreeSet<String>,
    /// The uids of objects that do not count.
    late: BTreeSet<String>,
    /// The uids of Services by namespace and name: Endpoints have the name of their Service instead of an owner.
    services: BTreeMap<String, String>,
}

impl Count {
    fn add(&mut self, resource: &str, name: &str, uid: &str, change: Change, owners: &[&str]) {
        let service = self.services.get(name).filter(|_| resource == "endpoints" && owners.is_empty());
        let is_lost = |owner: &str| self.gone.contains(owner) || self.late.contains(owner);
        let is_late = match change {
            Change::Added => {
                let mut all = owners.iter().copied().chain(service.map(String::as_str)).peekable();
                all.peek().is_some() && all.all(is_lost)
            }
            _ => self.late.contains(uid),
        };
        if change == Change::Added && resource == "services" {
            self.services.insert(name.to_owned(), uid.to_owned());
        }
        if is_late {
            self.late.insert(uid.to_owned());
            return;
        }
        let changes = self.changes.entry(resource.to_owned()).or_default();
        let here = self.here.entry(resource.to_owned()).or_default();
        match change {
            Change::Added => {
                changes.created += 1;
                *here += 1;
            }
            Change::Deleted => {
                changes.deleted += 1;
                *here -= 1;
                self.gone.insert(uid.to_owned());
            }
            Change::Modified => {}
        }
        changes.most = changes.most.max(*here);
    }
}

/// Compares the end of a run with one expectation.
fn compare(expected: &Expected, audit: &Audit) -> Met {
    let changes = audit.changes.get(&expected.resource).copied().unwrap_or_default();
    let objects = normal::objects(&audit.objects);
    let named = |object: &str| {
        let key = format!("{} {object}", expected.resource);
        let is_it =
            move |known: &str| known == key || known.strip_prefix(&key).is_some_and(|rest| rest.starts_with('#'));
        objects.iter().filter(|(known, _)| is_it(known)).map(|(_, leaves)| leaves).collect::<Vec<&Leaves>>()
    };
    let resource = &expected.resource;
    let mut broken = Vec::new();
    let most = [
        (expected.created, changes.created, "were created"),
        (expected.deleted, changes.deleted, "were deleted"),
        (expected.most, u64::try_from(changes.most).unwrap_or(0), "were there at one moment, besides the first ones"),
    ];
    for (limit, number, words) in most {
        if let Some(limit) = limit.filter(|limit| number > *limit) {
            broken.push(format!("{number} {resource} {words}, at most {limit} are expected"));
        }
    }
    if let Some(object) = &expected.object {
        let here = named(object);
        if let Some(exists) = expected.exists.filter(|exists| *exists == here.is_empty()) {
            broken.push(format!("{resource} {object} is {}", if exists { "missing" } else { "there" }));
        }
        if let (Some(field), Some(value)) = (&expected.field, &expected.value) {
            let is = |leaves: &&Leaves| leaves.get(field).unwrap_or(&Value::Null) == value;
            if !here.iter().any(is) {
                let found = here.first().and_then(|leaves| leaves.get(field)).unwrap_or(&Value::Null);
                broken.push(format!("{resource} {object}: {field} is {found}, expected is {value}"));
            }
        }
    }
    if broken.is_empty() {
        return Met { is_met: true, text: format!("{resource} is as expected") };
    }
    Met { is_met: false, text: broken.join(", and ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn audit() -> Audit {
        let object = |resource: &str, object: Value| Object { resource: resource.to_owned(), object };
        Audit {
            changes: BTreeMap::from([("pods".to_owned(), Changes { created: 4, deleted: 1, most: 3 })]),
            objects: vec![
                object(
                    "caches.x",
                    json!({"metadata": {"name": "a", "namespace": "n"}, "status": {"at": "2026-01-01T00:00:00Z"}}),
                ),
                object("pods", json!({"metadata": {"name": "a-1", "generateName": "a-", "namespace": "n"}, "x": 1})),
                object("pods", json!({"metadata": {"name": "a-2", "generateName": "a-", "namespace": "n"}, "x": 2})),
            ],
            ..Audit::default()
        }
    }

    fn comparison(expected: Value) -> String {
        let met = compare(&serde_json::from_value(expected).unwrap(), &audit());
        if met.is_met { "met".to_owned() } else { met.text }
    }

    /// A child of an owner that is gone does not count. A second child of an owner that is there counts, even if both are
    /// deleted with their owner later.
    #[test]
    fn a_child_of_an_owner_that_is_gone_does_not_count() {
        use Change::{Added, Deleted};
        let count = |changes: &[(&str, Change)]| {
            let mut count = Count::default();
            count.add("caches.x", "n/owner", "owner", Added, &[]);
            for (uid, change) in changes {
                let (resource, owners): (_, &[&str]) =
                    if *uid == "owner" { ("caches.x", &[]) } else { ("pods", &["owner"]) };
                count.add(resource, &format!("n/{uid}"), uid, *change, owners);
            }
            let pods = count.changes.get("pods").copied().unwrap_or_default();
            (pods.created, pods.deleted, pods.most)
        };
        let late = [("1", Added), ("owner", Deleted), ("1", Deleted), ("2", Added), ("2", Deleted)];
        assert_eq!(count(&late), (1, 1, 1));
        let second = [("1", Added), ("2", Added), ("owner", Deleted), ("1", Deleted), ("2", Deleted)];
        assert_eq!(count(&second), (2, 2, 2));
        let again = [("1", Added), ("1", Deleted), ("2", Added)];
        assert_eq!(count(&again), (2, 1, 1), "deleted and made again for the same owner");
    }

    /// A Service of an owner that is gone does not count, nor do the Endpoints and slices that a controller makes for it.
    /// Those of a second Service of an owner that is there count.
    #[test]
    fn objects_for_a_child_that_does_not_count_do_not_count() {
        use Change::{Added, Deleted};
        let count = |is_owner_gone: bool| {
            let mut count = Count::default();
            count.add("caches.x", "n/a", "owner", Added, &[]);
            let served = |count: &mut Count, service: &str, change: Change| {
                count.add("services", "n/a-head", service, change, &["owner"]);
                count.add("endpoints", "n/a-head", &format!("e-{service}"), change, &[]);
                count.add("endpointslices.discovery.k8s.io", "n/a-1", &format!("s-{service}"), change, &[service]);
            };
            served(&mut count, "1", Added);
            if is_owner_gone {
                count.add("caches.x", "n/a", "owner", Deleted, &[]);
            }
            served(&mut count, "1", Deleted);
            served(&mut count, "2", Added);
            served(&mut count, "2", Deleted);
            count.add("endpoints", "n/other", "o", Added, &[]);
            let of = |resource: &str| count.changes.get(resource).map(|changes| (changes.created, changes.deleted));
            [of("services"), of("endpoints"), of("endpointslices.discovery.k8s.io")].map(Option::unwrap_or_default)
        };
        assert_eq!(count(true), [(1, 1), (2, 1), (1, 1)], "only the other Endpoints are more");
        assert_eq!(count(false), [(2, 2), (3, 2), (2, 2)]);
    }

    #[test]
    fn numbers_objects_and_fields_are_compared() {
        for expected in [
            json!({"resource": "pods", "created": 4, "deleted": 1, "most": 3}),
            json!({"resource": "caches.x", "object": "n/a", "exists": true}),
            json!({"resource": "caches.x", "object": "n/b", "exists": false}),
            json!({"resource": "caches.x", "object": "n/a", "field": "status.at", "value": "<time>"}),
            json!({"resource": "caches.x", "object": "n/a", "field": "status.none", "value": null}),
            json!({"resource": "pods", "object": "n/a-*", "field": "x", "value": 2}),
        ] {
            assert_eq!(comparison(expected.clone()), "met", "{expected}");
        }
        assert!(comparison(json!({"resource": "pods", "created": 3})).contains("4 pods were created, at most 3"));
        assert!(comparison(json!({"resource": "pods", "deleted": 0})).contains("1 pods were deleted"));
        assert!(comparison(json!({"resource": "pods", "most": 2})).contains("3 pods were there at one moment"));
        assert_eq!(
            comparison(json!({"resource": "caches.x", "object": "n/a", "exists": false})),
            "caches.x n/a is there"
        );
        assert_eq!(
            comparison(json!({"resource": "caches.x", "object": "n/b", "exists": true})),
            "caches.x n/b is missing"
        );
        let lost = json!({"resource": "caches.x", "object": "n/a", "field": "status.made", "value": "<time>"});
        assert_eq!(comparison(lost), "caches.x n/a: status.made is null, expected is \"<time>\"");
        assert!(
            comparison(json!({"resource": "pods", "object": "n/a-*", "field": "x", "value": 3})).contains("x is 1")
        );
    }
}
