//! Tests of a server that is reset to an older state, as by a restore from a backup. The watch distinguishes a reset
//! server from a lagging server, and adopts its state.

use super::rewind::{LISTS_MIN, PATIENCE};
use super::*;

/// The objects of the server that was reset, as name, uid and version. The client knew `("a", "u1", "90")` and `("c",
/// "u3", "95")` at version 100.
const RESTORED: &[(&str, &str, &str)] = &[("a", "u1", "50"), ("b", "u2", "51")];

fn knows_the_lost_history() -> Machine {
    listed("100", &[("a", "u1", "90"), ("c", "u3", "95")])
}

/// The events that lead a client from the lost history to [`RESTORED`].
fn back() -> [(Change, &'static str, &'static str); 3] {
    [(Change::Deleted, "u3", "95"), (Change::Modified, "u1", "50"), (Change::Added, "u2", "51")]
}

#[test]
fn older_lists_are_refused_until_there_were_enough_of_them_for_long_enough() {
    let mut machine = knows_the_lost_history();
    machine.expired();
    let (begin, mut events) = (now(), Vec::new());
    for attempt in 0..LISTS_MIN + 4 {
        let at = begin + PATIENCE / 100 * attempt;
        assert_eq!(machine.list(listing("60", RESTORED), at, &mut events), Applied::Stale, "many, but too soon");
        let at_least = (attempt % 2 == 0).then(|| "100".into());
        assert_eq!(machine.next(), Next::List { reason: Reason::Stale, at_least });
    }
    assert!(events.is_empty());
    assert_eq!(machine.list(listing("60", RESTORED), begin + PATIENCE, &mut events), Applied::Rewound);
    assert_eq!(changes(&events), back());
    assert_eq!(machine.next(), Next::Watch { from: "60".into() });
    let (_, events) = line(&mut machine, &object("MODIFIED", "a", "u1", "61"));
    assert_eq!(changes(&events), [(Change::Modified, "u1", "61")], "the new history goes on");
}

#[test]
fn one_old_list_long_ago_proves_nothing() {
    let mut machine = knows_the_lost_history();
    machine.expired();
    let (begin, mut events) = (now(), Vec::new());
    assert_eq!(machine.list(listing("60", RESTORED), begin, &mut events), Applied::Stale);
    let late = begin + PATIENCE * 10;
    assert_eq!(machine.list(listing("60", RESTORED), late, &mut events), Applied::Stale, "that is only the second");
}

#[test]
fn a_server_that_has_what_we_know_refutes_a_member_that_lags() {
    let bookmark = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"101"}}}"#;
    let mut machine = knows_the_lost_history();
    let (begin, mut events) = (now(), Vec::new());
    let mut side = |machine: &mut Machine, version, at| {
        machine.begin_side();
        machine.settle_side(listing(version, &[("a", "u1", "90"), ("c", "u3", "95")]), at, &mut events)
    };
    for _ in 0..LISTS_MIN {
        assert_eq!(side(&mut machine, "60", begin), Settled::Older);
    }
    line(&mut machine, bookmark);
    assert_eq!(side(&mut machine, "60", begin + PATIENCE), Settled::Older, "the stream has moved since");
    assert_eq!(side(&mut machine, "101", begin + PATIENCE), Settled::Agrees);
    for _ in 1..LISTS_MIN {
        assert_eq!(side(&mut machine, "60", begin + PATIENCE * 2), Settled::Older, "a good list came between");
    }
    assert_eq!(side(&mut machine, "60", begin + PATIENCE * 3), Settled::Rewound(2));
    assert_eq!(machine.position(), Some("60"));
}

#[test]
fn a_list_beside_a_silent_watch_proves_it_as_well() {
    let mut machine = knows_the_lost_history();
    let (begin, mut events) = (now(), Vec::new());
    for list in 0..LISTS_MIN {
        machine.begin_side();
        let side = listing("60", RESTORED);
        assert!(machine.caught_up(&side));
        let settled = machine.settle_side(side, begin + PATIENCE / (LISTS_MIN - 1) * list, &mut events);
        assert_eq!(settled, if list + 1 < LISTS_MIN { Settled::Older } else { Settled::Rewound(3) });
    }
    assert_eq!(changes(&events), back());
    assert_eq!(machine.next(), Next::Watch { from: "60".into() });
}

#[test]
fn a_server_that_has_not_reached_our_version_is_asked_for_a_list_without_one() {
    let mut machine = knows_the_lost_history();
    let words = r#"{"type":"ERROR","object":{"code":504,"message":"Too large resource version: 100, current: 60"}}"#;
    assert_eq!(line(&mut machine, words).0, Line::Ahead);
    assert_eq!(machine.next(), Next::List { reason: Reason::Ahead, at_least: None });
    let mut machine = knows_the_lost_history();
    let cause = r#"{"type":"ERROR","object":{"code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}}"#;
    assert_eq!(line(&mut machine, cause).0, Line::Ahead);
    assert_eq!(machine.list(listing("60", RESTORED), now(), &mut Vec::new()), Applied::Stale);
    assert_eq!(machine.next(), Next::List { reason: Reason::Stale, at_least: Some("100".into()) });
    machine.list_failed();
    assert_eq!(machine.next(), Next::List { reason: Reason::Stale, at_least: None }, "it does not insist");
}

#[test]
fn a_new_history_that_has_overtaken_us_is_found_by_objects_that_went_back() {
    let mut machine = knows_the_lost_history();
    machine.begin_side();
    let mut events = Vec::new();
    assert_eq!(machine.settle_side(listing("120", RESTORED), now(), &mut events), Settled::Lost(3));
    assert_eq!(changes(&events), back());
}

#[test]
fn an_event_from_the_past_asks_for_a_list() {
    let mut machine = knows_the_lost_history();
    line(&mut machine, &object("MODIFIED", "a", "u1", "101"));
    assert!(!machine.take_doubt());
    let (answer, events) = line(&mut machine, &object("MODIFIED", "a", "u1", "61"));
    assert_eq!((answer, events), (Line::Continue, vec![]), "it may be a replay, so nothing is believed");
    assert!(machine.take_doubt() && !machine.take_doubt(), "said once");
}

#[test]
fn a_version_that_was_handed_out_twice_is_not_the_object_we_have() {
    let store: Store = Store::default();
    let page = |generation: u32| {
        format!(
            r#"{{"metadata":{{"resourceVersion":"60"}},"items":[{{"metadata":{{"namespace":"n","name":"a","uid":"u1","resourceVersion":"50","generation":{generation}}}}}]}}"#
        )
    };
    let list = |generation: u32| {
        let mut listing = Listing::default();
        assert_eq!(listing.page(page(generation).as_bytes(), &store).unwrap(), PageStep::Complete);
        listing
    };
    let mut machine = Machine::new(store.clone());
    machine.list(list(1), now(), &mut Vec::new());
    let (again, other) = (list(1), list(2));
    let known = store.snapshot().remove(0);
    assert!(Arc::ptr_eq(again.items.values().next().unwrap(), &known), "what is the same is kept once");
    assert_eq!(other.items.values().next().unwrap().body.generation, 2);
    line(&mut machine, &object("MODIFIED", "x", "u2", "70"));
    machine.expired();
    let mut events = Vec::new();
    for attempt in 0..LISTS_MIN {
        machine.list(list(2), now() + Duration::from_mins(1) * attempt, &mut events);
    }
    assert_eq!(
        changes(&events),
        [(Change::Deleted, "u2", "70"), (Change::Modified, "u1", "50")],
        "everything comes again"
    );
    assert_eq!(store.snapshot()[0].body.generation, 2);
}
