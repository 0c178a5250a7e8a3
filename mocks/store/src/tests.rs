//! Property tests of the store; they compare it with a model that keeps every past state.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const RESOURCE: ResourceId = ResourceId(3);
const LIMITS: Limits = Limits {
    history_max_events: 10_000,
    history_max_bytes: usize::MAX,
    history_max_age_us: u64::MAX,
    commits_max: 10_000,
};

/// The state of one resource at one revision: maps `namespace/name` to the revision of the object.
type State = BTreeMap<(String, String), u64>;

#[derive(Debug, Clone)]
enum Step {
    Put {
        namespace: u8,
        name: u8,
    },
    Remove {
        namespace: u8,
        name: u8,
    },
    /// A write to another resource: the revision advances, but the tested resource stays unchanged.
    Elsewhere,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u8..3, 0_u8..6).prop_map(|(namespace, name)| Step::Put { namespace, name }),
        2 => (0_u8..3, 0_u8..6).prop_map(|(namespace, name)| Step::Remove { namespace, name }),
        1 => Just(Step::Elsewhere),
    ];
    prop::collection::vec(step, 1..80)
}

fn write(store: &mut Store, resource: ResourceId, namespace: &str, name: &str) {
    write_at(store, resource, namespace, name, 0);
}

fn write_at(store: &mut Store, resource: ResourceId, namespace: &str, name: &str, at_us: u64) {
    let identity = Arc::new(Identity {
        resource,
        resource_name: "things".into(),
        namespace: namespace.into(),
        name: name.into(),
        uid: format!("{namespace}-{name}").into(),
    });
    let expect = store.read(resource, namespace, name).map_or(Expect::Absent, |v| Expect::Revision(v.revision));
    let mut value = json!({"metadata": {"namespace": namespace, "name": name}});
    store.put(&identity, expect, &mut value, Facts::default(), at_us).unwrap();
}

/// Makes the random changes; returns the store and the state of the tested resource after every revision.
fn run(steps: &[Step]) -> (Store, BTreeMap<u64, State>) {
    let mut store = Store::new(LIMITS);
    let mut state = State::new();
    let mut history = BTreeMap::from([(store.revision(), state.clone())]);
    for step in steps {
        apply(&mut store, step);
        match step {
            Step::Put { namespace, name } => {
                state.insert((format!("ns{namespace}"), format!("o{name}")), store.revision());
            }
            Step::Remove { namespace, name } => {
                state.remove(&(format!("ns{namespace}"), format!("o{name}")));
            }
            Step::Elsewhere => {}
        }
        history.insert(store.revision(), state.clone());
    }
    (store, history)
}

fn apply(store: &mut Store, step: &Step) {
    match step {
        Step::Put { namespace, name } => write(store, RESOURCE, &format!("ns{namespace}"), &format!("o{name}")),
        Step::Remove { namespace, name } => {
            if let Some(version) = store.read(RESOURCE, &format!("ns{namespace}"), &format!("o{name}")).cloned() {
                let mut value = version.value();
                store.remove(&version.identity, version.revision, &mut value, Facts::default(), 0).unwrap();
            }
        }
        Step::Elsewhere => write(store, ResourceId(0), "", "other"),
    }
}

fn seen(page: &Page) -> State {
    let key = |v: &Version| (v.identity.namespace.to_string(), v.identity.name.to_string());
    page.items.iter().map(|version| (key(version), version.revision)).collect()
}

proptest! {
    /// A list at any revision shows the state at that revision, even after later writes.
    #[test]
    fn any_revision_can_be_listed(steps in steps()) {
        let (store, history) = run(&steps);
        for (revision, state) in &history {
            let page = store.list(RESOURCE, None, *revision, None, usize::MAX, |_| true).unwrap();
            prop_assert_eq!(&seen(&page), state);
            let one: State = state.iter().filter(|((ns, _), _)| ns == "ns1").map(|(k, v)| (k.clone(), *v)).collect();
            let page = store.list(RESOURCE, Some("ns1"), *revision, None, usize::MAX, |_| true).unwrap();
            prop_assert_eq!(seen(&page), one);
        }
    }

    /// A list at any revision plus the events after that revision give the present state.
    #[test]
    fn list_then_watch_loses_nothing(steps in steps(), pull in 1_usize..7) {
        let (store, history) = run(&steps);
        let present = history.values().next_back().unwrap();
        for revision in history.keys() {
            let mut state = seen(&store.list(RESOURCE, None, *revision, None, usize::MAX, |_| true).unwrap());
            let mut cursor = store.cursor(RESOURCE, *revision).unwrap();
            let mut last = *revision;
            loop {
                let mut events = Vec::new();
                store.pull(RESOURCE, &mut cursor, pull, u64::MAX, &mut events).unwrap();
                if events.is_empty() {
                    break;
                }
                for event in &events {
                    prop_assert!(event.version.revision > last, "events come in order");
                    last = event.version.revision;
                    let identity = &event.version.identity;
                    let key = (identity.namespace.to_string(), identity.name.to_string());
                    let known = match event.change {
                        Change::Deleted => state.remove(&key),
                        _ => state.insert(key, event.version.revision),
                    };
                    prop_assert_eq!(known.is_none(), event.change == Change::Added);
                }
            }
            prop_assert_eq!(&state, present);
        }
    }

    /// All pages of one list show one snapshot, even if objects are written between two pages.
    #[test]
    fn pages_are_one_snapshot(before in steps(), between in steps(), limit in 1_usize..5) {
        let (mut store, history) = run(&before);
        let (at, state) = history.iter().next_back().unwrap();
        let mut found = State::new();
        let mut after = None;
        let mut writes = between.iter();
        loop {
            let page = store.list(RESOURCE, None, *at, after.as_ref(), limit, |_| true).unwrap();
            prop_assert!(page.items.len() <= limit);
            found.extend(seen(&page));
            after = page.next;
            if after.is_none() {
                break;
            }
            if let Some(Step::Put { namespace, name }) = writes.next() {
                write(&mut store, RESOURCE, &format!("ns{namespace}"), &format!("o{name}"));
            }
        }
        prop_assert_eq!(&found, state);
    }

    /// After a compaction, every older revision is refused, and every later one can still be listed.
    #[test]
    fn compaction_has_a_sharp_edge(steps in steps(), share in 0.0_f64..1.0) {
        let (mut store, history) = run(&steps);
        let revisions: Vec<u64> = history.keys().copied().collect();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a short list")]
        let floor = revisions[(share * (revisions.len() - 1) as f64) as usize];
        store.compact(floor);
        for revision in revisions {
            prop_assert_eq!(store.cursor(RESOURCE, revision).is_ok(), revision >= floor);
            let page = store.list(RESOURCE, None, revision, None, usize::MAX, |_| true);
            prop_assert_eq!(page.is_ok(), revision >= floor);
            if let Ok(page) = page {
                prop_assert_eq!(&seen(&page), &history[&revision]);
            }
        }
    }
}

#[test]
fn the_history_is_bounded_and_a_slow_cursor_is_told() {
    let mut store = Store::new(Limits { history_max_events: 5, ..LIMITS });
    write(&mut store, RESOURCE, "a", "x");
    let mut cursor = store.cursor(RESOURCE, store.revision()).unwrap();
    let mut current = cursor;
    for _ in 0..20 {
        write(&mut store, RESOURCE, "a", "x");
        store.pull(RESOURCE, &mut current, 10, u64::MAX, &mut Vec::new()).unwrap();
    }
    assert_eq!(store.history_len(), 5);
    assert_eq!(store.pull(RESOURCE, &mut cursor, 10, u64::MAX, &mut Vec::new()), Err(Lost));
}

/// An open watch still gets events that were compacted. A busy harness reads a few milliseconds late and must not lose
/// events that a fault compacts for the subject.
#[test]
fn a_watch_that_is_open_reads_on_behind_a_compaction() {
    let mut store = Store::new(LIMITS);
    write(&mut store, RESOURCE, "a", "x");
    let before = store.revision();
    let mut open = store.cursor(RESOURCE, before).unwrap();
    (0..3).for_each(|_| write(&mut store, RESOURCE, "a", "y"));
    store.compact(store.revision());
    let mut read = Vec::new();
    assert_eq!(store.pull(RESOURCE, &mut open, 10, u64::MAX, &mut read), Ok(store.revision()));
    assert_eq!(read.len(), 3);
    assert!(store.cursor(RESOURCE, before).is_err(), "a new one does not");
}

/// Open watches still read compacted events, but the store is never restored to a compacted revision.
#[test]
fn a_moment_before_a_compaction_is_the_compaction() {
    let mut store = Store::new(LIMITS);
    write(&mut store, RESOURCE, "a", "x");
    store.skip();
    store.compact(store.revision());
    let floor = store.floor();
    write_at(&mut store, RESOURCE, "a", "x", 5);
    assert_eq!(store.revision_at(3), floor);
    assert!(store.rewind(floor, 6).is_ok());
}

#[test]
fn a_late_reader_of_commits_is_told_how_many_it_lost() {
    let mut store = Store::new(Limits { commits_max: 4, ..LIMITS });
    for _ in 0..10 {
        write(&mut store, RESOURCE, "a", "x");
    }
    let mut out = Vec::new();
    assert_eq!(store.commits().read(1, 10, &mut out), Err(commits::Overrun { lost: 5 }));
    assert!(store.commits().read(store.commits().oldest(), 10, &mut out).is_ok());
    assert_eq!(out.len(), 4);
}

#[test]
fn the_bytes_of_an_object_lie_in_its_line() {
    let mut store = Store::new(LIMITS);
    write(&mut store, RESOURCE, "a", "x");
    let version = store.read(RESOURCE, "a", "x").unwrap();
    let line = String::from_utf8(version.frame().to_vec()).unwrap();
    let object = String::from_utf8(version.object().to_vec()).unwrap();
    assert_eq!(line, format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n"));
    assert_eq!(version.value()["metadata"]["resourceVersion"], "2");
}

fn listed(store: &Store, at: u64) -> State {
    seen(&store.list(RESOURCE, None, at, None, usize::MAX, |_| true).unwrap())
}

proptest! {
    /// After a restore, the store equals its earlier state, and new writes act as if the undone commits had never
    /// existed.
    #[test]
    fn going_back_restores_a_state_and_its_past(before in steps(), after in steps(), back in 0.0..1.0_f64) {
        let (mut store, states) = run(&before);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a fraction of a small index")]
        let to = *states.keys().nth((states.len() as f64 * back) as usize).unwrap();
        let bytes_by_hand = |store: &Store| -> usize {
            let page = store.list(RESOURCE, None, store.revision(), None, usize::MAX, |_| true).unwrap();
            let elsewhere = store.list(ResourceId(0), None, store.revision(), None, usize::MAX, |_| true).unwrap();
            page.items.iter().chain(&elsewhere.items).map(|version| version.frame_bytes()).sum()
        };
        let rewound = store.rewind(to, 7).unwrap();
        prop_assert_eq!((store.revision(), rewound.timeline), (to, 1));
        for (revision, state) in states.range(..=to) {
            prop_assert_eq!(&listed(&store, *revision), state);
        }
        prop_assert_eq!(store.object_bytes(), bytes_by_hand(&store));
        prop_assert_eq!(store.history_len() as u64 + 1, to);
        for step in &after {
            apply(&mut store, step);
        }
        for (revision, state) in states.range(..=to) {
            prop_assert_eq!(&listed(&store, *revision), state);
        }
        prop_assert_eq!(store.object_bytes(), bytes_by_hand(&store));
    }

    /// Even after several restores, a cursor never yields an event twice or out of order. Once the revision exceeds all
    /// earlier revisions, the cursor yields every event.
    #[test]
    fn a_cursor_only_ever_goes_forward(rounds in prop::collection::vec((steps(), 0_u64..40, any::<bool>()), 1..5)) {
        let mut store = Store::new(LIMITS);
        let mut cursor = store.cursor(RESOURCE, store.revision()).unwrap();
        let (mut last, mut highest) = (0, 0);
        for (steps, back, reads) in rounds {
            for step in &steps {
                apply(&mut store, step);
            }
            highest = store.revision().max(highest);
            if reads {
                let mut events = Vec::new();
                store.pull(RESOURCE, &mut cursor, usize::MAX, u64::MAX, &mut events).unwrap();
                for event in events {
                    prop_assert!(event.version.revision > last);
                    last = event.version.revision;
                }
            }
            store.rewind(store.revision().saturating_sub(back).max(1), 0).unwrap();
        }
        while store.revision() <= highest {
            apply(&mut store, &Step::Elsewhere);
        }
        apply(&mut store, &Step::Put { namespace: 0, name: 0 });
        let mut events = Vec::new();
        store.pull(RESOURCE, &mut cursor, usize::MAX, u64::MAX, &mut events).unwrap();
        prop_assert_eq!(events.last().map(|event| event.version.revision), Some(store.revision()));
        prop_assert!(events.iter().all(|event| event.version.revision > last));
    }
}
