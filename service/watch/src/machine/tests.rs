//! Tests of the core: single rules as examples, and whole histories against a model of the server.

mod histories;
mod rewinds;

use std::time::Duration;

use super::*;

fn now() -> Instant {
    Instant::now()
}

fn object(kind: &str, name: &str, uid: &str, version: &str) -> String {
    format!(
        r#"{{"type":"{kind}","object":{{"metadata":{{"namespace":"n","name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}}}"#
    )
}

fn listing(version: &str, items: &[(&str, &str, &str)]) -> Listing {
    let items: Vec<_> = items
        .iter()
        .map(|(name, uid, version)| {
            format!(r#"{{"metadata":{{"namespace":"n","name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}"#)
        })
        .collect();
    let body = format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"items":[{}]}}"#, items.join(","));
    let mut listing = Listing::default();
    assert_eq!(listing.page(body.as_bytes(), &Store::default()).unwrap(), PageStep::Complete);
    listing
}

fn listed(version: &str, items: &[(&str, &str, &str)]) -> Machine {
    let mut machine = Machine::new(Store::default());
    assert_eq!(machine.list(listing(version, items), now(), &mut Vec::new()), Applied::Yes);
    machine
}

fn changes(events: &[Event]) -> Vec<(Change, &str, &str)> {
    events.iter().map(|event| (event.change, &*event.object.uid, &*event.object.version)).collect()
}

fn line(machine: &mut Machine, text: &str) -> (Line, Vec<Event>) {
    let mut events = Vec::new();
    (machine.line(text.as_bytes(), &mut events), events)
}

#[test]
fn both_forms_of_410_lead_to_a_list_and_the_difference_is_replayed() {
    let mut machine = listed("10", &[("a", "u1", "3"), ("b", "u2", "4"), ("c", "u3", "5")]);
    assert_eq!(machine.next(), Next::Watch { from: "10".into() });
    let gone = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
    assert_eq!(line(&mut machine, gone).0, Line::Expired);
    assert_eq!(machine.next(), Next::List { reason: Reason::Expired, at_least: None });
    let mut events = Vec::new();
    let after = listing("20", &[("a", "u1", "12"), ("c", "u9", "15"), ("d", "u4", "13")]);
    assert_eq!(machine.list(after, now(), &mut events), Applied::Yes);
    let expected = [
        (Change::Deleted, "u2", "4"),
        (Change::Deleted, "u3", "5"),
        (Change::Modified, "u1", "12"),
        (Change::Added, "u9", "15"),
        (Change::Added, "u4", "13"),
    ];
    assert_eq!(changes(&events), expected);
    machine.expired();
    assert!(matches!(machine.next(), Next::List { reason: Reason::Expired, .. }), "the HTTP form counts as well");
}

#[test]
fn an_error_that_is_not_410_ends_the_stream_and_keeps_the_position() {
    let mut machine = listed("10", &[]);
    let error = r#"{"type":"ERROR","object":{"code":429,"message":"slow down","details":{"retryAfterSeconds":7}}}"#;
    let (answer, events) = line(&mut machine, error);
    assert_eq!(answer, Line::Failed { code: 429, retry_after_s: Some(7), message: "slow down".into() });
    assert!(events.is_empty(), "a Status is never an object");
    assert_eq!(machine.next(), Next::Watch { from: "10".into() });
}

#[test]
fn a_new_uid_under_an_old_name_is_a_deletion_and_an_addition() {
    let mut machine = listed("10", &[("a", "u1", "3")]);
    let (_, events) = line(&mut machine, &object("MODIFIED", "a", "u2", "12"));
    assert_eq!(changes(&events), [(Change::Deleted, "u1", "3"), (Change::Added, "u2", "12")]);
    let (_, events) = line(&mut machine, &object("DELETED", "a", "u1", "11"));
    assert!(events.is_empty(), "the late deletion of the first must not take the second");
}

#[test]
fn replays_are_not_repeated_and_do_not_raise_the_dead() {
    let mut machine = listed("10", &[("a", "u1", "3")]);
    for text in [object("MODIFIED", "a", "u1", "3"), object("MODIFIED", "a", "u1", "2")] {
        assert!(line(&mut machine, &text).1.is_empty());
    }
    let (_, events) = line(&mut machine, &object("DELETED", "a", "u1", "14"));
    assert_eq!(changes(&events), [(Change::Deleted, "u1", "14")], "the deletion carries its own version");
    assert!(line(&mut machine, &object("MODIFIED", "a", "u1", "13")).1.is_empty());
    assert!(line(&mut machine, &object("DELETED", "a", "u1", "14")).1.is_empty());
    assert_eq!(machine.repeats, 4);
}

#[test]
fn bookmarks_move_the_position_and_nothing_else() {
    let mut machine = listed("10", &[("a", "u1", "3")]);
    let bookmark =
        |version: &str| format!(r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{version}"}}}}}}"#);
    assert_eq!(line(&mut machine, &bookmark("30")), (Line::Continue, vec![]));
    assert_eq!(machine.position(), Some("30"));
    line(&mut machine, &bookmark("20"));
    assert_eq!(machine.position(), Some("30"), "never back");
}

#[test]
fn a_watch_without_progress_is_started_over() {
    let mut machine = listed("10", &[]);
    for _ in 0..EMPTY_STREAMS_MAX {
        assert_eq!(machine.next(), Next::Watch { from: "10".into() });
        machine.empty_stream();
    }
    assert!(matches!(machine.next(), Next::List { reason: Reason::Stuck, .. }));
    let mut machine = listed("10", &[]);
    for _ in 0..RESUMES_MAX {
        assert_eq!(machine.next(), Next::Watch { from: "10".into() });
        machine.fruitless();
    }
    assert!(matches!(machine.next(), Next::List { reason: Reason::Stuck, .. }));
}

#[test]
fn a_list_beside_the_watch_finds_what_was_lost_and_spares_what_is_newer() {
    let mut machine = listed("10", &[("lost", "u1", "3"), ("stays", "u2", "4")]);
    machine.begin_side();
    line(&mut machine, &object("ADDED", "young", "u3", "25"));
    line(&mut machine, &object("DELETED", "stays", "u2", "26"));
    let side = listing("20", &[("stays", "u2", "4"), ("unseen", "u4", "15")]);
    assert!(machine.caught_up(&side));
    let mut events = Vec::new();
    assert_eq!(machine.settle_side(side, now(), &mut events), Settled::Lost(2));
    assert_eq!(changes(&events), [(Change::Deleted, "u1", "3"), (Change::Added, "u4", "15")]);
    machine.begin_side();
    assert_eq!(
        machine.settle_side(listing("26", &[("young", "u3", "25"), ("unseen", "u4", "15")]), now(), &mut events),
        Settled::Agrees
    );
}

#[test]
fn a_list_never_deletes_what_is_newer_than_its_snapshot() {
    let mut machine = listed("30", &[("young", "u1", "25"), ("old", "u2", "5")]);
    let mut events = Vec::new();
    machine.diff(&listing("20", &[]), |_| true, false, &mut events);
    assert_eq!(changes(&events), [(Change::Deleted, "u2", "5")]);
}

#[test]
fn what_is_no_event_is_told_as_such() {
    let mut machine = listed("10", &[]);
    for text in [
        "{",
        "{}",
        r#"{"type":"NEW","object":{}}"#,
        r#"{"type":"ADDED","object":{"metadata":{"name":"x","uid":"","resourceVersion":"1"}}}"#,
    ] {
        assert!(matches!(line(&mut machine, text).0, Line::Malformed(_)), "{text}");
    }
}

#[test]
fn pages_of_two_snapshots_are_no_list() {
    let mut listing: Listing = Listing::default();
    let page =
        |version: &str| format!(r#"{{"metadata":{{"resourceVersion":"{version}","continue":"t"}},"items":null}}"#);
    assert_eq!(listing.page(page("5").as_bytes(), &Store::default()).unwrap(), PageStep::More("t".into()));
    assert!(matches!(listing.page(page("6").as_bytes(), &Store::default()), Err(PageError::Mixed { .. })));
}
