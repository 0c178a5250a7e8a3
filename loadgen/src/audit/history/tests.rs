//! Tests with random events of objects: all events, all but one, or events with a gap.

use proptest::prelude::*;

use super::*;

/// A store of objects like a control plane's. Each test applies a name and an operation to the store.
#[derive(Debug, Default, Clone)]
struct Store {
    revision: u64,
    objects: BTreeMap<u8, Object>,
}

impl Store {
    /// Creates the object if it is missing; else changes or deletes it.
    fn step(&mut self, name: u8, delete: bool) -> (Change, Object) {
        self.revision += 1;
        let revision = self.revision.to_string();
        match self.objects.get_mut(&name) {
            None => {
                let object = Object {
                    namespace: "n".into(),
                    name: name.to_string(),
                    uid: format!("uid-{revision}"),
                    resource_version: revision,
                    progress: Progress { generation: 1, ..Progress::default() },
                    images: Vec::new(),
                    fields: Vec::new(),
                };
                self.objects.insert(name, object.clone());
                (Change::Added, object)
            }
            Some(object) => {
                object.resource_version = revision;
                let object = object.clone();
                if delete {
                    self.objects.remove(&name);
                }
                (if delete { Change::Deleted } else { Change::Modified }, object)
            }
        }
    }

    fn list(&self) -> Vec<Object> {
        self.objects.values().cloned().collect()
    }
}

fn steps() -> impl Strategy<Value = Vec<(u8, bool)>> {
    proptest::collection::vec((0_u8..6, prop::bool::weighted(0.3)), 1..80)
}

fn write(store: &mut Store, steps: &[(u8, bool)]) -> Vec<(Change, Object)> {
    steps.iter().map(|&(name, delete)| store.step(name, delete)).collect()
}

fn tell(history: &mut History, events: &[(Change, Object)]) {
    for (change, object) in events {
        assert!(history.event(*change, object));
    }
}

proptest! {
    /// With all events, the history agrees with the list and contains no contradiction. An event that comes twice
    /// changes nothing.
    #[test]
    fn the_whole_story_agrees(before in steps(), after in steps()) {
        let (mut store, mut history) = (Store::default(), History::default());
        write(&mut store, &before);
        let first = history.relist(store.list(), "1");
        prop_assert!(first.iter().all(|(change, _)| *change == Change::Added));
        tell(&mut history, &write(&mut store, &after));
        history.mark();
        prop_assert_eq!(history.compare(&store.list()), Ok(vec![]));
        prop_assert_eq!(history.out_of_turn_total, 0);
        for object in store.list() {
            prop_assert!(!history.event(Change::Modified, &object));
        }
        prop_assert_eq!(history.repeated, store.objects.len() as u64);
    }

    /// If the last event of an object is left out, the list shows that. If another event is left out, the object's next
    /// event shows that, unless the missing event was a change.
    #[test]
    fn an_event_left_out_is_named(steps in steps(), which in any::<prop::sample::Index>()) {
        let (mut store, mut history) = (Store::default(), History::default());
        let events = write(&mut store, &steps);
        let lost = which.index(events.len());
        for (index, (change, object)) in events.iter().enumerate() {
            if index != lost {
                history.event(*change, object);
            }
        }
        history.mark();
        let (change, object) = &events[lost];
        let named = |found: &[Disagreement]| found.iter().any(|each| each.name == object.name);
        let compared = history.compare(&store.list()).unwrap();
        let is_last = events[lost + 1..].iter().all(|(_, later)| later.name != object.name);
        if is_last {
            prop_assert!(named(&compared), "{:?} {:?}", change, compared);
        } else if *change != Change::Modified {
            prop_assert!(named(&history.out_of_turn), "{:?} {:?}", change, history.out_of_turn);
        } else {
            // This cannot be seen here. The record of writes can show it: see `agree`.
            prop_assert!(compared.is_empty() && history.out_of_turn.is_empty());
        }
        let others = compared.iter().chain(&history.out_of_turn).filter(|each| each.name != object.name).count();
        prop_assert_eq!(others, 0);
    }

    /// A list after a gap leads to the same state as the missing events, and no change that it adds contradicts
    /// another.
    #[test]
    fn a_relist_heals(before in steps(), hole in steps(), after in steps()) {
        let (mut store, mut history) = (Store::default(), History::default());
        tell(&mut history, &write(&mut store, &before));
        let old = store.clone();
        write(&mut store, &hole);
        let changes = history.relist(store.list(), "relisted");
        let mut replay = History::default();
        replay.relist(old.list(), "0");
        tell(&mut replay, &changes);
        prop_assert_eq!(replay.out_of_turn_total, 0);
        prop_assert_eq!(replay.objects, history.objects.clone());
        tell(&mut history, &write(&mut store, &after));
        history.mark();
        prop_assert_eq!(history.compare(&store.list()), Ok(vec![]));
        prop_assert_eq!(history.out_of_turn_total, 0);
    }

    /// While other clients write, a list between the mark and now agrees, whether the watch is ahead of the list or
    /// catches up later.
    #[test]
    fn writes_during_the_comparison_do_no_harm(
        before in steps(), meanwhile in steps(), after in steps(), lag in any::<prop::sample::Index>(),
    ) {
        let (mut store, mut history) = (Store::default(), History::default());
        let mut events = write(&mut store, &before);
        // The mark may come while the watch is still late.
        let late = events.split_off(lag.index(events.len()));
        tell(&mut history, &events);
        history.mark();
        let mut rest = late;
        rest.extend(write(&mut store, &meanwhile));
        let list = store.list();
        rest.extend(write(&mut store, &after));
        tell(&mut history, &rest);
        prop_assert_eq!(history.compare(&list), Ok(vec![]));
    }
}

#[test]
fn disagreements_read_well() {
    let mut store = Store::default();
    let mut history = History::default();
    let (_, first) = store.step(1, false);
    assert!(history.event(Change::Modified, &first));
    store.step(1, true);
    let (_, second) = store.step(1, false);
    assert!(history.event(Change::Added, &second));
    let texts: Vec<String> = history.out_of_turn.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "n/1 (uid uid-1): the watch sent MODIFIED without having added it",
            "n/1 (uid uid-3): the watch never showed that uid uid-1 of the same name was deleted",
        ]
    );
    store.step(1, false);
    let (_, other) = store.step(2, false);
    let (_, gone) = store.step(3, false);
    history.event(Change::Added, &gone);
    store.step(3, true);
    history.mark();
    let texts: Vec<String> = history.compare(&store.list()).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "n/1 (uid uid-3): the last list has version 4, the watch stopped at 3".to_owned(),
            format!("n/2 (uid {}): the last list has version 5, the watch never showed the object", other.uid),
            "n/3 (uid uid-6): gone from the last list, but the watch never showed its deletion after 6".to_owned(),
        ]
    );
}

/// A store that is written without end does not make the memory of a comparison grow without end.
#[test]
fn too_many_changes_end_a_comparison() {
    let (mut store, mut history) = (Store::default(), History::default());
    history.mark();
    for step in 0..=MARKED_MAX {
        let (change, object) = store.step(1, step % 2 == 1);
        history.event(change, &object);
    }
    assert_eq!(history.compare(&store.list()), Err(MARKED_MAX + 1));
}
