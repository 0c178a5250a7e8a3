use std::time::Instant;

use facts::{Commit, Order, Progress, Revision};
use serde_json::json;

use super::*;

const WINDOW: Window = Window { from_ms: 1000, to_ms: 7000 };

fn version(change: Change, name: &str, object: Value) -> audit::Entry {
    let commit = Commit {
        order: Order::default(),
        resource: "caches.example.com".into(),
        namespace: "n".into(),
        name: name.into(),
        uid: "u".into(),
        revision: Revision::of_number(1),
        change,
    };
    let progress = Progress { generation: 1, ..Progress::default() };
    let (at, images) = (Instant::now(), Vec::new());
    audit::Entry { at, commit, progress, images, fields: vec![object], source: Source::Watched }
}

/// An object whose status was written by a manager.
fn seen_at(number: u64, manager: &str) -> Value {
    let owned =
        json!([{"manager": manager, "subresource": "status", "time": "t", "fieldsV1": {"f:status": {"f:seenAt": {}}}}]);
    json!({
        "metadata": {"name": "a", "resourceVersion": number.to_string(), "managedFields": owned},
        "spec": {"size": 1}, "status": {"seenAt": number, "phase": "Ready"}
    })
}

fn wrote(rewrites: &mut Rewrites, t_ms: u64, manager: &str) {
    rewrites.wrote(t_ms, version(Change::Modified, "a", seen_at(t_ms, manager)));
}

#[test]
fn a_status_that_is_written_again_and_again_is_told_with_field_and_manager() {
    let mut rewrites = Rewrites::new(WINDOW);
    (0..90).for_each(|number| wrote(&mut rewrites, 100 + number * 100, "manager"));
    let quiet = rewrites.finish(None);
    assert_eq!((quiet.from_ms, quiet.to_ms, quiet.objects, quiet.lasting), (1000, 7000, 1, 1));
    let row = &quiet.worst[0];
    assert_eq!(
        (row.object.as_str(), row.writes, row.thirds),
        ("n/a", 61, [20, 20, 21]),
        "what came before is not counted"
    );
    assert_eq!((row.first_ms, row.last_ms, row.respecified), (1000, 7000, false));
    assert_eq!(row.fields, [Flip { field: "/status/seenAt".to_owned(), times: 61 }]);
    assert_eq!(row.manager.as_deref(), Some("manager (status)"));
}

#[test]
fn what_others_write_is_not_the_subjects() {
    let mut rewrites = Rewrites::new(WINDOW);
    (0..50).for_each(|number| wrote(&mut rewrites, 1000 + number * 100, "kube-controller-manager"));
    assert_eq!(rewrites.finish(None).writes, 0);
    let mut rewrites = Rewrites::new(WINDOW);
    (0..50).for_each(|number| wrote(&mut rewrites, 1000 + number * 100, "somebody"));
    assert_eq!(
        rewrites.finish(Some(&Writers::default())).writes,
        0,
        "the control plane tells that it was not the subject"
    );
}

#[test]
fn leases_events_and_what_was_only_listed_do_not_count() {
    let mut rewrites = Rewrites::new(WINDOW);
    let mut lease = seen_at(1, "manager");
    lease["metadata"]["annotations"] = json!({LEADER: "{}"});
    rewrites.wrote(2000, version(Change::Modified, "a", lease));
    let mut event = version(Change::Added, "e", seen_at(1, "manager"));
    event.commit.resource = "events".into();
    rewrites.wrote(2000, event);
    let mut listed = version(Change::Modified, "a", seen_at(1, "manager"));
    listed.source = Source::Relisted;
    rewrites.wrote(2000, listed);
    assert_eq!(rewrites.finish(None).objects, 0);
}

/// A controller that recreates its child all the time never writes one object twice.
#[test]
fn what_is_made_under_ever_new_names_is_one_thing() {
    let mut rewrites = Rewrites::new(WINDOW);
    for number in 0..30u64 {
        let name = format!("a-{number}");
        let object = json!({"metadata": {"name": name, "generateName": "a-"}});
        rewrites.wrote(1000 + number * 200, version(Change::Added, &name, object.clone()));
        rewrites.wrote(1010 + number * 200, version(Change::Deleted, &name, object));
    }
    let quiet = rewrites.finish(None);
    assert_eq!((quiet.lasting, quiet.worst[0].object.as_str(), quiet.worst[0].writes), (1, "n/a-*", 30));
    assert!(quiet.worst[0].fields.is_empty());
}

#[test]
fn differences_are_named_by_where_they_are() {
    let found = |before: Value, after: Value| {
        let mut found = Vec::new();
        differences(&before, &after, "", &mut found);
        found
    };
    assert_eq!(found(seen_at(1, "x"), seen_at(2, "y")), ["/status/seenAt"], "what every write changes is left out");
    let before = json!({"metadata": {"labels": {"a/b": "1"}}, "list": [1, {"x": 1}], "gone": 1});
    let after = json!({"metadata": {"labels": {"a/b": "2"}}, "list": [1, {"x": 2}], "new": 1});
    assert_eq!(found(before, after), ["/gone", "/list/1/x", "/metadata/labels/a~1b", "/new"]);
    assert_eq!(found(json!({"l": [1]}), json!({"l": [1, 2]})), ["/l"]);
    let many: Vec<u64> = (0..1000).collect();
    assert_eq!(found(json!({ "l": many }), json!({"l": vec![9; 1000]})).len(), CHANGES_MAX);
}

#[test]
fn the_table_is_bounded_and_the_worst_are_in_it() {
    let mut rewrites = Rewrites::new(WINDOW);
    for number in 0..700u64 {
        for t_ms in (1000..7000).step_by(if number == 3 { 100 } else { 1500 }) {
            let object = seen_at(t_ms, "manager");
            rewrites.wrote(t_ms, version(Change::Modified, &format!("o{number:03}"), object));
        }
    }
    let quiet = rewrites.finish(None);
    assert_eq!((quiet.objects, quiet.worst.len()), (OBJECTS_MAX as u64, REWRITTEN_MAX));
    assert_eq!(quiet.worst[0].object, "n/o003");
}
