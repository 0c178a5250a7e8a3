use std::time::Instant;

use facts::{Commit, Order, Progress, Revision};
use serde_json::json;

use super::*;

const OWNED: &str = "{resource: configmaps/v1, by: owner}";

fn census(keys: &str) -> Census {
    Census::new("caches.example.com", vec![serde_saphyr::from_str(keys).unwrap()])
}

fn entry(name: &str, change: Change, generation: i64, fields: Value) -> audit::Entry {
    let commit = Commit {
        order: Order::default(),
        resource: "any".into(),
        namespace: "n".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        revision: Revision::of_number(1),
        change,
    };
    let progress = Progress { generation, ..Progress::default() };
    let fields = serde_json::from_value(fields).unwrap();
    audit::Entry { at: Instant::now(), commit, progress, images: Vec::new(), fields, source: audit::Source::Watched }
}

/// A parent that wants `entries` children.
fn parent(name: &str, generation: i64, entries: u64) -> audit::Entry {
    let list: Vec<u64> = (0..entries).collect();
    entry(name, Change::Modified, generation, json!([null, list]))
}

fn owned(name: &str, of: &str, change: Change) -> audit::Entry {
    let owners = json!([{"apiVersion": "example.com/v1", "uid": format!("uid-{of}")}]);
    entry(name, change, 0, json!([null, owners, {"of": format!("uid-{of}")}]))
}

fn made(name: &str, of: &str) -> audit::Entry {
    owned(name, of, Change::Added)
}

fn gone(name: &str, of: &str) -> audit::Entry {
    owned(name, of, Change::Deleted)
}

/// The result of the count at 60 s.
fn end(census: Census) -> record::Siblings {
    census.finish(60_000, REPLACED_MS).remove(0)
}

/// A second child of the same parent is found even if the child exists for only a tenth of a second.
#[test]
fn a_child_made_twice_is_found_although_it_goes_at_once() {
    let mut census = census(OWNED);
    census.parent(1000, &parent("p", 1, 0));
    census.child(0, 1010, &made("p-x", "p"));
    census.child(0, 1020, &made("p-y", "p"));
    census.child(0, 1100, &gone("p-y", "p"));
    census.advance(3000);
    let end = end(census);
    let example = TooMany {
        object: "n/p".to_owned(),
        wanted: 1,
        found: 2,
        from_ms: 1020,
        to_ms: Some(1100),
        children: vec!["p-y".to_owned(), "p-x".to_owned()],
    };
    assert_eq!((end.excess, end.parents, end.made, &end.examples[..]), (1, 1, 2, &[example][..]));
}

/// During a rollout more Pods exist, all with the label of the parent. Pods of a Deployment are not counted, because
/// the subject created only the Deployment.
#[test]
fn what_a_controller_makes_of_a_child_is_not_counted() {
    let mut census = census("{resource: pods/v1, by: {label: of}}");
    census.parent(1000, &parent("p", 1, 0));
    for (at, pod) in [(1010, "a"), (1020, "b"), (1030, "c")] {
        let owners = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "uid-set", "controller": true}]);
        census.child(0, at, &entry(pod, Change::Added, 0, json!([null, owners, {"of": "uid-p"}])));
    }
    census.advance(9000);
    let end = end(census);
    assert_eq!((end.excess, end.made), (0, 0));
}

#[test]
fn who_has_what_it_wants_is_not_charged() {
    let mut census = census("{resource: configmaps/v1, by: {label: of}, perEntry: /spec/list}");
    census.parent(1000, &parent("p", 1, 3));
    (0..3).for_each(|child| census.child(0, 1010 + child, &made(&format!("p-{child}"), "p")));
    // A child is deleted by another client and created again.
    census.child(0, 2000, &gone("p-0", "p"));
    census.child(0, 2010, &made("p-9", "p"));
    // The parent wants fewer children, and the subject is late.
    census.parent(9000, &parent("p", 2, 1));
    census.child(0, 30_000, &gone("p-1", "p"));
    census.child(0, 30_010, &gone("p-2", "p"));
    census.advance(40_000);
    let end = end(census);
    assert_eq!((end.excess, end.parents, end.made, end.unread), (0, 1, 4, None));
}

/// A child is not surplus if the watch of children is ahead of the watch of parents.
#[test]
fn the_version_that_wants_more_may_come_a_moment_later() {
    let mut census = census("{resource: configmaps/v1, by: owner, perEntry: /spec/list}");
    census.parent(1000, &parent("p", 1, 1));
    census.child(0, 1010, &made("p-0", "p"));
    census.child(0, 7000, &made("p-1", "p"));
    census.parent(7300, &parent("p", 2, 2));
    census.advance(9000);
    assert_eq!(end(census).excess, 0);
}

/// A replacement may exist together with the old child for a moment. If the old child and its replacement both stay,
/// one child is surplus.
#[test]
fn a_replacement_has_its_time() {
    let replaced = |leaves_ms: Option<u64>| {
        let mut census = census(OWNED);
        census.parent(1000, &parent("p", 1, 0));
        census.child(0, 1010, &made("p-1", "p"));
        census.parent(10_000, &parent("p", 2, 0));
        census.child(0, 10_010, &made("p-2", "p"));
        census.advance(12_000);
        if let Some(leaves_ms) = leaves_ms {
            census.child(0, leaves_ms, &gone("p-1", "p"));
        }
        census.advance(20_000);
        end(census).excess
    };
    assert_eq!((replaced(Some(10_500)), replaced(Some(14_000)), replaced(None)), (0, 0, 1));
}

/// A slow subject may create the child of the previous version when the next version already exists.
#[test]
fn a_late_subject_that_replaces_is_not_charged() {
    let mut census = census(OWNED);
    census.parent(1000, &parent("p", 1, 0));
    census.parent(1100, &parent("p", 2, 0));
    census.child(0, 1200, &made("p-1", "p"));
    census.child(0, 1300, &made("p-2", "p"));
    census.child(0, 1310, &gone("p-1", "p"));
    census.advance(20_000);
    assert_eq!(end(census).excess, 0);
}

/// Remaining children of a parent that is being deleted are not counted, because the garbage collector removes them.
#[test]
fn a_parent_that_goes_owes_nothing() {
    let mut census = census(OWNED);
    census.parent(1000, &parent("p", 1, 0));
    census.child(0, 1010, &made("p-1", "p"));
    census.child(0, 1020, &made("p-2", "p"));
    census.parent(1030, &entry("p", Change::Deleted, 1, json!([])));
    census.advance(20_000);
    assert_eq!(end(census).excess, 0);
}

#[test]
fn a_child_is_known_by_its_name_as_well() {
    let mut census = census("{resource: configmaps/v1, by: {name: \"{name}-config\"}}");
    census.parent(1000, &parent("p", 1, 0));
    census.child(0, 1010, &made("p-config", "other"));
    let end = end(census);
    assert_eq!(
        (end.excess, end.made, end.resource.as_str(), end.of.as_str()),
        (0, 1, "configmaps", "caches.example.com")
    );
}

#[test]
fn a_watch_that_was_lost_is_said() {
    let mut census = census(OWNED);
    census.lost("too slow".to_owned());
    assert_eq!(end(census).unread.as_deref(), Some("too slow"));
}

/// Deleted objects are dropped, so memory is proportional to existing objects.
#[test]
fn what_is_gone_is_forgotten() {
    let mut census = census(OWNED);
    for round in 0..100u64 {
        let (name, t_ms) = (format!("p{round}"), round * 100);
        census.parent(t_ms, &parent(&name, 1, 0));
        census.child(0, t_ms + 1, &made(&format!("{name}-x"), &name));
        census.child(0, t_ms + 2, &made(&format!("{name}-y"), &name));
        census.child(0, t_ms + 3, &gone(&format!("{name}-x"), &name));
        census.child(0, t_ms + 4, &gone(&format!("{name}-y"), &name));
        census.advance(t_ms + 50);
        census.parent(t_ms + 60, &entry(&name, Change::Deleted, 1, json!([])));
    }
    census.advance(60_000);
    let kind = &census.kinds[0];
    assert!(kind.live.is_empty() && kind.of.is_empty() && kind.excess.is_empty(), "{:?}", kind.excess);
    assert!(
        census.parents.by_uid.is_empty()
            && census.parents.names.is_empty()
            && census.doubts.is_empty()
            && census.later.is_empty()
    );
}

#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn unowned(name: &str, labels: Value, change: Change) -> audit::Entry {
    entry(name, change, 0, json!([null, [], labels]))
}

fn orphans(keys: &str, said: impl FnOnce(&mut Census)) -> Vec<String> {
    let mut census = census(keys);
    census.parent(1000, &parent("p", 1, 0));
    said(&mut census);
    let end = end(census);
    assert_eq!(end.orphaned, end.orphans.len() as u64);
    end.orphans
        .into_iter()
        .map(|one| format!("{} of {}, {}, {} ms", one.child, one.parent, one.known, one.for_ms))
        .collect()
}

fn parent_gone(census: &mut Census, t_ms: u64) {
    census.parent(t_ms, &entry("p", Change::Deleted, 0, json!([null, null])));
}

/// A child without an owner reference that outlives its parent is an orphan, because the garbage collector does not
/// remove it.
#[test]
fn a_child_that_nobody_owns_and_that_outlives_its_parent_is_an_orphan() {
    for (keys, name, labels, known) in [
        (OWNED, "p-config", json!({}), "known by its name"),
        (OWNED, "config-p", json!({}), "known by its name"),
        (OWNED, "x", json!({"app": "p"}), "known by its label app"),
        ("{resource: configmaps/v1, by: {label: of}}", "x", json!({"of": "uid-p"}), "known by its label of"),
        ("{resource: configmaps/v1, by: {name: \"{name}-config\"}}", "p-config", json!({}), "known by its name"),
    ] {
        let found = orphans(keys, |census| {
            census.child(0, 1010, &unowned(name, labels.clone(), Change::Added));
            parent_gone(census, 20_000);
        });
        assert_eq!(found, [format!("n/{name} of n/p, {known}, 40000 ms")], "{keys}");
    }
}

#[test]
fn who_has_an_owner_or_is_taken_in_time_is_no_orphan() {
    let none: [&str; 0] = [];
    let made = || unowned("p-config", json!({}), Change::Added);
    assert_eq!(orphans(OWNED, |census| census.child(0, 1010, &made())), none, "its parent is there");
    assert_eq!(
        orphans(OWNED, |census| {
            census.child(0, 1010, &made());
            parent_gone(census, 57_000);
        }),
        none,
        "the subject may still take it"
    );
    assert_eq!(
        orphans(OWNED, |census| {
            census.child(0, 1010, &made());
            parent_gone(census, 20_000);
            census.child(0, 20_400, &unowned("p-config", json!({}), Change::Deleted));
        }),
        none,
        "the subject took it"
    );
    assert_eq!(
        orphans(OWNED, |census| {
            census.child(0, 1010, &made());
            census.child(0, 1020, &owned("p-config", "p", Change::Modified));
            parent_gone(census, 20_000);
        }),
        none,
        "it has an owner now"
    );
    assert_eq!(
        orphans(OWNED, |census| {
            census.child(0, 1010, &unowned("kube-root-ca.crt", json!({}), Change::Added));
            parent_gone(census, 20_000);
        }),
        none,
        "it is nobody's child"
    );
}

/// A deletion with the policy `Orphan` removes owner references, so the children of the deleted object are no orphans.
/// If an update drops the owner reference, the subject is at fault.
#[test]
fn a_child_that_a_deletion_lets_go_is_no_orphan() {
    let found = |lost_ms: u64, finalizer: &str| {
        orphans(OWNED, |census| {
            census.child(0, 1010, &made("p-config", "p"));
            census.child(0, lost_ms, &unowned("p-config", json!({}), Change::Modified));
            census.parent(19_000, &entry("p", Change::Modified, 1, json!(["2026-11-27T10:00:00Z", null, [finalizer]])));
            census.child(0, 19_200, &unowned("p-config", json!({}), Change::Modified));
            parent_gone(census, 20_000);
        })
    };
    assert!(found(18_900, "orphan").is_empty(), "the watch of the parents is a little behind");
    assert_eq!(found(5000, "orphan").len(), 1, "its owner was taken away long before");
    assert_eq!(found(18_900, "example.com/hold").len(), 1, "nobody asked that its children stay");
}

/// The parent of a child is found even if the watch of parents is behind.
#[test]
fn a_parent_that_comes_later_than_its_child_is_found() {
    let mut census = census(OWNED);
    census.child(0, 1000, &unowned("q-config", json!({}), Change::Added));
    census.parent(1400, &parent("q", 1, 0));
    census.advance(2100);
    census.parent(9000, &entry("q", Change::Deleted, 0, json!([null, null])));
    assert_eq!(end(census).orphans[0].parent, "n/q");
}
