//! The state machine of the watch: takes the server's answers; returns events and the next request.
//!
//! This module owns the rules that keep the view complete. The state machine has no sockets, no clock and no
//! randomness; the driver supplies them.
//!
//! Invariants: the position (resource version up to which the view is complete) never goes back, except after proof
//! that the server was reset to an older state. An object is deleted only by its own DELETED event, or by a list at
//! least as new as the object. A new uid with an old name is a deletion and an addition. No event is emitted twice for
//! one version.

mod frame;
mod listing;
mod rewind;
mod tombs;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::object::{Key, Kind, Object, Package};
use super::store::Store;
use super::version::{older, reaches};
use frame::Frame;
pub use listing::{ListPage, Listing, PageError, PageStep, Streamed};
use rewind::Signs;
use tombs::Tombs;

/// After this many failed watch requests in a row without progress, the watch starts again with a list.
const RESUMES_MAX: u32 = 5;
/// After this many streams in a row that ended at once without a byte, the version counts as expired. Some servers
/// answer a request with an expired version by such an empty stream instead of status 410.
const EMPTY_STREAMS_MAX: u32 = 3;
/// Maximum number of changed keys that are remembered during a list beside the watch. If more objects change during the
/// list, the list is not used.
const TOUCHED_MAX: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The object was not in the view before the event.
    Added,
    Modified,
    /// The object was deleted; the event has its last known state.
    Deleted,
}

/// A change that was accepted into the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<K = Package> {
    pub change: Change,
    /// The object after the change; for a deletion, its last state.
    pub object: Arc<Object<K>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// List all objects. If `at_least` is set, the server must answer with version `at_least` or a newer version.
    List { reason: Reason, at_least: Option<Box<str>> },
    Watch {
        /// The resource version up to which the view is complete.
        from: Box<str>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Start,
    /// The server no longer has the resource version of the watch (410).
    Expired,
    /// The server says that it has not reached the version of the watch.
    Ahead,
    /// The server was reset to an older state, so no object in the view is certain.
    Rewound,
    /// The last list was older than the view.
    Stale,
    /// The watch made no progress in several attempts.
    Stuck,
    /// The regular safety list beside a working watch.
    Interval,
}

impl Reason {
    pub const ALL: [Self; 7] =
        [Self::Start, Self::Expired, Self::Ahead, Self::Rewound, Self::Stale, Self::Stuck, Self::Interval];

    /// The reason's name in metrics and in the diagnostics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Expired => "expired",
            Self::Ahead => "ahead",
            Self::Rewound => "rewound",
            Self::Stale => "stale",
            Self::Stuck => "stuck",
            Self::Interval => "interval",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Continue,
    /// The version of the watch has expired (410); the stream has ended.
    Expired,
    /// The server has not reached the version of the watch; the stream has ended.
    Ahead,
    /// The server reported another error; the stream has ended.
    Failed {
        code: u16,
        /// Seconds after which the server allows a new request.
        retry_after_s: Option<u64>,
        message: String,
    },
    /// The line is not an event; the stream is not read any further.
    Malformed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The view is now equal to the list.
    Yes,
    /// The view is now equal to the list, although the list is older: the server was reset to an older state.
    Rewound,
    /// The list is older than the view and was not used.
    Stale,
}

/// The result of comparing a list beside the watch with the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The list shows that the watch has lost no event.
    Agrees,
    /// The watch has lost this many events; its stream is faulty and must be opened again.
    Lost(usize),
    /// The list is older than the view and was not used; it should be requested again soon.
    Older,
    /// The server was reset to an older state. The view is now equal to the list; the watch must be opened again,
    /// because its stream belongs to the lost history.
    Rewound(usize),
}

pub struct Machine<K = Package> {
    store: Store<K>,
    position: Option<Box<str>>,
    needed: Option<Reason>,
    signs: Signs,
    doubtful: bool,
    ask_at_least: bool,
    fruitless: u32,
    empty_streams: u32,
    /// During a list beside the watch: the position at the start of the list, and the keys that have changed since.
    touched: Option<(Option<Box<str>>, BTreeSet<Key>)>,
    tombs: Tombs,
    /// Number of events that changed nothing: replays, and deletions of absent objects.
    pub repeats: u64,
}

impl<K: Kind> Machine<K> {
    pub fn new(store: Store<K>) -> Self {
        Self {
            store,
            position: None,
            needed: Some(Reason::Start),
            signs: Signs::default(),
            doubtful: false,
            ask_at_least: false,
            fruitless: 0,
            empty_streams: 0,
            touched: None,
            tombs: Tombs::default(),
            repeats: 0,
        }
    }

    pub fn next(&self) -> Next {
        match (self.needed, &self.position) {
            (None, Some(position)) => Next::Watch { from: position.clone() },
            (reason, position) => Next::List {
                reason: reason.unwrap_or(Reason::Start),
                at_least: position.clone().filter(|_| self.ask_at_least),
            },
        }
    }

    /// The resource version up to which the view is complete.
    pub fn position(&self) -> Option<&str> {
        self.position.as_deref()
    }

    /// Handles one line of the watch stream.
    pub fn line(&mut self, line: &[u8], out: &mut Vec<Event<K>>) -> Line {
        let frame = match Frame::parse(line, &self.store) {
            Ok(frame) => frame,
            Err(error) => return Line::Malformed(error.to_string()),
        };
        match frame {
            Frame::Applied(object) => {
                self.progress(&object.version.clone());
                self.apply(object, out);
            }
            Frame::Deleted(object) => {
                self.progress(&object.version.clone());
                self.delete(object, out);
            }
            Frame::Bookmark { version, .. } => self.progress(&version),
            Frame::Expired => return self.expired(),
            Frame::Ahead => return self.ahead(),
            Frame::Error { code, retry_after_s, message } => return Line::Failed { code, retry_after_s, message },
        }
        Line::Continue
    }

    /// Handles an expired version, reported by HTTP status or in the stream.
    pub fn expired(&mut self) -> Line {
        self.needed = Some(Reason::Expired);
        self.cancel_side();
        Line::Expired
    }

    /// Handles a server that has not reached the version of the watch: the server lags, or it was reset to an older
    /// state.
    pub fn ahead(&mut self) -> Line {
        self.needed = Some(Reason::Ahead);
        self.cancel_side();
        Line::Ahead
    }

    /// Handles the failure of a list that [`Machine::next`] requested. A server that was reset refuses the version of
    /// the watch, so the next list demands no version.
    pub fn list_failed(&mut self) {
        self.ask_at_least = false;
    }

    /// Whether, since the last call, the stream has shown a version older than the view. Such a stream is a replay, or
    /// the server was reset; only a list can decide which.
    pub fn take_doubt(&mut self) -> bool {
        std::mem::take(&mut self.doubtful)
    }

    /// Records that a watch could not be opened, or failed without progress.
    pub fn fruitless(&mut self) {
        self.fruitless += 1;
        if self.fruitless >= RESUMES_MAX {
            self.stuck();
        }
    }

    /// Records a stream that ended without error and without a byte.
    pub fn empty_stream(&mut self) {
        self.empty_streams += 1;
        if self.empty_streams >= EMPTY_STREAMS_MAX {
            self.stuck();
        }
    }

    /// Handles a complete list that [`Machine::next`] requested.
    pub fn list(&mut self, listing: Listing<K>, now: Instant, out: &mut Vec<Event<K>>) -> Applied {
        let stale = self.position.as_deref().is_some_and(|known| older(&listing.version, known));
        if stale && !self.signs.older_list(now) {
            // Every other attempt names the version, so that a server that has it may answer.
            self.ask_at_least = !self.ask_at_least;
            self.needed = Some(Reason::Stale);
            return Applied::Stale;
        }
        self.adopt(listing, stale, out);
        if stale { Applied::Rewound } else { Applied::Yes }
    }

    /// Makes the view equal to `listing`; the watch continues at the version of `listing`.
    fn adopt(&mut self, listing: Listing<K>, rewound: bool, out: &mut Vec<Event<K>>) {
        if rewound {
            self.tombs.clear();
        }
        self.cancel_side();
        self.diff(&listing, |_| true, rewound, out);
        self.position = Some(listing.version);
        self.needed = None;
        self.signs.refuted();
        (self.fruitless, self.empty_streams, self.ask_at_least) = (0, 0, false);
    }

    /// Records the start of a list beside the watch. Until the list is compared, keys of changed objects are recorded,
    /// because these objects may be newer than the list.
    pub fn begin_side(&mut self) {
        self.touched = Some((self.position.clone(), BTreeSet::new()));
    }

    pub fn cancel_side(&mut self) {
        self.touched = None;
    }

    /// Whether the watch has reached the version of `listing`. From that version on, every difference between list and
    /// view is an event that the watch has lost.
    pub fn caught_up(&self, listing: &Listing<K>) -> bool {
        self.position.as_deref().is_some_and(|position| reaches(position, &listing.version))
    }

    /// Compares a list beside the watch with the view, and emits the events that the watch has lost.
    ///
    /// After [`Settled::Lost`] the position stays the same: keys that changed during the list were not compared, and
    /// their events may still arrive.
    pub fn settle_side(&mut self, listing: Listing<K>, now: Instant, out: &mut Vec<Event<K>>) -> Settled {
        let Some((begun_at, touched)) = self.touched.take() else { return Settled::Agrees };
        let before = out.len();
        if begun_at.is_some_and(|begun_at| older(&listing.version, &begun_at)) {
            if !self.signs.older_list(now) {
                return Settled::Older;
            }
            self.adopt(listing, true, out);
            return Settled::Rewound(out.len() - before);
        }
        self.signs.refuted();
        self.diff(&listing, |key| !touched.contains(key), false, out);
        match out.len() - before {
            0 => Settled::Agrees,
            lost => Settled::Lost(lost),
        }
    }

    fn stuck(&mut self) {
        self.needed = Some(Reason::Stuck);
        self.cancel_side();
        (self.fruitless, self.empty_streams) = (0, 0);
    }

    /// Records progress of the stream. Positions that are decimal numbers never go back.
    fn progress(&mut self, version: &str) {
        (self.fruitless, self.empty_streams) = (0, 0);
        if self.position.as_deref().is_some_and(|known| older(version, known)) {
            self.doubtful = true;
        } else {
            self.position = Some(version.into());
            self.signs.refuted();
        }
    }

    fn apply(&mut self, object: Object<K>, out: &mut Vec<Event<K>>) {
        self.touch(&object.key);
        match self.store.object(&object.key) {
            Some(known) if known.uid == object.uid => {
                if known.version == object.version || older(&object.version, &known.version) {
                    self.repeats += 1;
                } else {
                    self.accept(Change::Modified, Arc::new(object), out);
                }
            }
            known => {
                if self.tombs.refuses(&object.uid, &object.version) {
                    self.repeats += 1;
                    return;
                }
                if let Some(known) = known {
                    // A replay of an earlier object of that name must not replace the present one.
                    if older(&object.version, &known.version) {
                        self.repeats += 1;
                        return;
                    }
                    let version = known.version.clone();
                    self.bury(known, &version, out);
                }
                self.accept(Change::Added, Arc::new(object), out);
            }
        }
    }

    fn delete(&mut self, object: Object<K>, out: &mut Vec<Event<K>>) {
        self.touch(&object.key);
        match self.store.object(&object.key) {
            Some(known) if known.uid == object.uid => {
                let version = object.version.clone();
                self.bury(Arc::new(object), &version, out);
            }
            _ => {
                self.repeats += 1;
                self.tombs.add(&object.uid, &object.version);
            }
        }
    }

    fn accept(&mut self, change: Change, object: Arc<Object<K>>, out: &mut Vec<Event<K>>) {
        self.store.put(Arc::clone(&object));
        out.push(Event { change, object });
    }

    /// Removes `object` from the store; `version` is a version at which the object is known to be absent.
    fn bury(&mut self, object: Arc<Object<K>>, version: &str, out: &mut Vec<Event<K>>) {
        self.store.remove(&object.key);
        self.tombs.add(&object.uid, version);
        out.push(Event { change: Change::Deleted, object });
    }

    fn touch(&mut self, key: &Key) {
        if let Some((_, touched)) = &mut self.touched {
            touched.insert(key.clone());
            if touched.len() > TOUCHED_MAX {
                self.touched = None;
            }
        }
    }

    /// Emits the difference between the view and `listing` for the keys that `concerns` accepts. Deletions are emitted
    /// first, so that a consumer with a quota has room for additions.
    ///
    /// A known object that is newer than the list is not changed. Every other object becomes equal to the list, even if
    /// its version in the list is older than in the view. An older version in the list means that the server was reset
    /// and has passed the view's version since. After a reset (`rewound`), equal versions mean nothing, so an event is
    /// emitted for every object.
    fn diff(&mut self, listing: &Listing<K>, concerns: impl Fn(&Key) -> bool, rewound: bool, out: &mut Vec<Event<K>>) {
        let is_newer = |known: &Object<K>| !rewound && older(&listing.version, &known.version);
        for known in self.store.snapshot() {
            let listed = listing.items.get(&known.key);
            let gone = listed.is_none_or(|listed| listed.uid != known.uid);
            if gone && !is_newer(&known) && concerns(&known.key) {
                self.bury(known, &listing.version, out);
            }
        }
        for (key, listed) in &listing.items {
            if !concerns(key) {
                continue;
            }
            let change = match self.store.object(key) {
                Some(known) if is_newer(&known) => continue,
                Some(known) if known.uid == listed.uid => {
                    if known.version == listed.version && !rewound {
                        continue;
                    }
                    Change::Modified
                }
                _ => Change::Added,
            };
            self.tombs.remove(&listed.uid);
            self.accept(change, Arc::clone(listed), out);
        }
    }
}

#[cfg(test)]
mod tests;
