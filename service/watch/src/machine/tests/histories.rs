//! Tests of the state machine with random histories of a server. A model of the server writes objects at random. The
//! model's stream delivers, repeats and loses events, breaks and expires; its lists come early, late or stale. At the
//! end of a history, the view must equal the server's state, and all events must be consistent.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Create(u8),
    Update(u8),
    Delete(u8),
    /// The stream delivers the given number of waiting events.
    Deliver(usize),
    /// The stream repeats the given number of events that it has already sent.
    Repeat(usize),
    /// The stream skips the given number of events without notice, which is a fault of the server.
    Lose(usize),
    Bookmark,
    /// The stream breaks and is resumed.
    Resume,
    /// Answer 410: the server forgets all versions before the present version.
    Expire,
    SideBegin,
    /// A list beside the watch shows the state of the given number of versions ago, but no state older than the list's
    /// request.
    SideList(u64),
    SideSettle,
    /// After the next 410, the first list comes from a lagging replica.
    StaleList,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u8..6).prop_map(Step::Create),
        6 => (0u8..6).prop_map(Step::Update),
        4 => (0u8..6).prop_map(Step::Delete),
        6 => (0usize..6).prop_map(Step::Deliver),
        2 => (0usize..4).prop_map(Step::Repeat),
        1 => (1usize..3).prop_map(Step::Lose),
        2 => Just(Step::Bookmark),
        2 => Just(Step::Resume),
        1 => Just(Step::Expire),
        2 => Just(Step::SideBegin),
        2 => (0u64..4).prop_map(Step::SideList),
        2 => Just(Step::SideSettle),
        1 => Just(Step::StaleList),
    ]
}

type State = BTreeMap<u8, (u64, u64)>;

/// The server: its present state, all past states by version, and its log of events.
#[derive(Default)]
struct Server {
    version: u64,
    uids: u64,
    state: State,
    past: BTreeMap<u64, State>,
    log: Vec<(u64, String)>,
    deleted: BTreeMap<u64, u64>,
}

impl Server {
    fn commit(&mut self, kind: &str, name: u8, uid: u64) {
        self.version += 1;
        if kind == "DELETED" {
            self.state.remove(&name);
            self.deleted.insert(uid, self.version);
        } else {
            self.state.insert(name, (uid, self.version));
        }
        self.past.insert(self.version, self.state.clone());
        self.log.push((self.version, object(kind, &format!("o{name}"), &format!("u{uid}"), &self.version.to_string())));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Create(name) if !self.state.contains_key(name) => {
                self.uids += 1;
                self.commit("ADDED", *name, self.uids);
            }
            Step::Update(name) => {
                if let Some(&(uid, _)) = self.state.get(name) {
                    self.commit("MODIFIED", *name, uid);
                }
            }
            Step::Delete(name) => {
                if let Some(&(uid, _)) = self.state.get(name) {
                    self.commit("DELETED", *name, uid);
                }
            }
            _ => {}
        }
    }

    fn list_at(&self, version: u64) -> Listing {
        let empty = State::new();
        let state = self.past.get(&version).unwrap_or(&empty);
        let items: Vec<_> =
            state.iter().map(|(name, (uid, at))| (format!("o{name}"), format!("u{uid}"), at.to_string())).collect();
        let items: Vec<_> = items.iter().map(|(name, uid, at)| (name.as_str(), uid.as_str(), at.as_str())).collect();
        listing(&version.to_string(), &items)
    }
}

/// The client, the position of its stream in the log, and a consumer that knows only the events.
struct World {
    server: Server,
    machine: Machine,
    store: Store,
    cursor: usize,
    side: Option<(u64, Option<Listing>)>,
    seen: BTreeMap<String, (String, u64)>,
    buried: BTreeSet<String>,
}

impl World {
    fn new() -> Self {
        let store = Store::default();
        let mut machine = Machine::new(store.clone());
        machine.list(listing("0", &[]), now(), &mut Vec::new());
        Self {
            server: Server::default(),
            machine,
            store,
            cursor: 0,
            side: None,
            seen: BTreeMap::new(),
            buried: BTreeSet::new(),
        }
    }

    /// Checks that a consumer can apply the events: absent objects are added, present objects get newer versions, and
    /// deleted objects were really deleted. The consumer also checks that a deleted uid never returns.
    fn consume(&mut self, events: &[Event]) {
        for event in events {
            let name = event.object.key.name.to_string();
            let (uid, version) = (event.object.uid.to_string(), event.object.version.parse().unwrap());
            match event.change {
                Change::Added => {
                    assert!(!self.buried.contains(&uid), "{uid} was deleted and comes back");
                    assert!(self.seen.insert(name, (uid, version)).is_none(), "added over an existing one");
                }
                Change::Modified => {
                    let (old_uid, old_version) =
                        self.seen.insert(name, (uid.clone(), version)).expect("modified, never added");
                    assert!(old_uid == uid && old_version < version, "{old_uid}@{old_version} became {uid}@{version}");
                }
                Change::Deleted => {
                    let (old_uid, _) = self.seen.remove(&name).expect("deleted, never added");
                    assert_eq!(old_uid, uid);
                    let number: u64 = uid[1..].parse().unwrap();
                    assert!(self.server.deleted.contains_key(&number), "{uid} was deleted and lives");
                    self.buried.insert(uid);
                }
            }
        }
    }

    fn send(&mut self, range: std::ops::Range<usize>) {
        for index in range {
            let (answer, events) = line(&mut self.machine, &self.server.log[index].1.clone());
            assert_eq!(answer, Line::Continue);
            self.consume(&events);
        }
    }

    fn resume(&mut self) {
        let position: u64 = self.machine.position().unwrap().parse().unwrap();
        self.cursor = self.server.log.partition_point(|(version, _)| *version <= position);
    }

    fn relist(&mut self, stale_first: bool) {
        self.machine.expired();
        self.side = None;
        let position: u64 = self.machine.position().unwrap().parse().unwrap();
        let mut events = Vec::new();
        if stale_first && position > 0 {
            assert_eq!(self.machine.list(self.server.list_at(position - 1), now(), &mut events), Applied::Stale);
        }
        assert_eq!(self.machine.list(self.server.list_at(self.server.version), now(), &mut events), Applied::Yes);
        self.consume(&events);
        self.resume();
    }

    fn settle(&mut self) {
        let Some((_, Some(side))) = self.side.take_if(|(_, listing)| listing.is_some()) else { return };
        let mut events = Vec::new();
        let settled = self.machine.settle_side(side, now(), &mut events);
        self.consume(&events);
        match settled {
            Settled::Agrees => {}
            Settled::Lost(_) => self.resume(),
            Settled::Older | Settled::Rewound(_) => panic!("{settled:?}: this server never goes back"),
        }
    }

    fn step(&mut self, step: &Step) {
        self.server.step(step);
        let end = self.server.log.len();
        match step {
            Step::Create(_) | Step::Update(_) | Step::Delete(_) => {}
            Step::Deliver(count) => {
                let to = end.min(self.cursor + count);
                self.send(self.cursor..to);
                self.cursor = to;
            }
            Step::Repeat(count) => self.send(self.cursor.saturating_sub(*count)..self.cursor),
            Step::Lose(count) => self.cursor = end.min(self.cursor + count),
            Step::Bookmark => {
                // A true bookmark: the version of the last event that was sent.
                if let Some(index) = self.cursor.checked_sub(1) {
                    let text = format!(
                        r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{}"}}}}}}"#,
                        self.server.log[index].0
                    );
                    assert_eq!(line(&mut self.machine, &text).0, Line::Continue);
                }
            }
            Step::Resume => self.resume(),
            Step::Expire => self.relist(false),
            Step::StaleList => self.relist(true),
            Step::SideBegin => {
                self.machine.begin_side();
                self.side = Some((self.server.version, None));
            }
            Step::SideList(ago) => {
                if let Some((begun, None)) = self.side {
                    let at = self.server.version.saturating_sub(*ago).max(begun);
                    self.side = Some((begun, Some(self.server.list_at(at))));
                }
            }
            Step::SideSettle => self.settle(),
        }
    }

    /// Ends the history: the server is quiet, one safety list runs, and the stream delivers its remaining events.
    fn end(&mut self) {
        self.machine.begin_side();
        self.side = Some((self.server.version, Some(self.server.list_at(self.server.version))));
        self.settle();
        self.step(&Step::Deliver(usize::MAX / 2));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// After any history with faults, a safety list and the remaining events make the view equal to the server's state.
    /// A consumer of all events gets the same view.
    #[test]
    fn the_view_ends_true(steps in prop::collection::vec(step(), 0..60)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        world.end();
        let server: BTreeMap<String, (String, u64)> =
            world.server.state.iter().map(|(name, (uid, at))| (format!("o{name}"), (format!("u{uid}"), *at))).collect();
        let view: BTreeMap<String, (String, u64)> = world
            .store
            .snapshot()
            .iter()
            .map(|object| (object.key.name.to_string(), (object.uid.to_string(), object.version.parse().unwrap())))
            .collect();
        prop_assert_eq!(&view, &server);
        prop_assert_eq!(&world.seen, &server);
    }

    /// If the stream loses no event, every version arrives exactly once, unless a list replaced it.
    #[test]
    fn an_honest_stream_arrives_completely(steps in prop::collection::vec(step(), 0..60)) {
        let mut world = World::new();
        let mut seen = Vec::new();
        for step in steps {
            match step {
                Step::Create(_) | Step::Update(_) | Step::Delete(_) => world.server.step(&step),
                Step::Deliver(count) => {
                    let to = world.server.log.len().min(world.cursor + count);
                    for index in world.cursor..to {
                        let (_, events) = line(&mut world.machine, &world.server.log[index].1.clone());
                        seen.extend(events.iter().map(|event| event.object.version.parse::<u64>().unwrap()));
                    }
                    world.cursor = to;
                }
                Step::Repeat(count) => {
                    for index in world.cursor.saturating_sub(count)..world.cursor {
                        prop_assert!(line(&mut world.machine, &world.server.log[index].1.clone()).1.is_empty());
                    }
                }
                Step::Resume => world.resume(),
                _ => {}
            }
        }
        let sent: Vec<u64> = world.server.log[..world.cursor].iter().map(|(version, _)| *version).collect();
        prop_assert_eq!(seen, sent);
    }
}
