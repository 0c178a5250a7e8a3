//! The core of the watch: the server's answers go in, events and the next action come out.
//!
//! This module owns the rules that keep the view complete. It has no sockets, no clock and no randomness; the driver
//! brings those.
//!
//! Invariants: the position never goes back except after a proven rewind of the server. An object is deleted only by
//! its own DELETED event or by a list that is at least as new as the object. A new uid under an old name is a deletion
//! and an addition. No event is repeated for a version that is already known.

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

/// Failures in a row without progress after which the watch starts over with a list.
const RESUMES_MAX: u32 = 5;
/// Streams in a row that ended at once without a byte: some servers answer an expired version this way, instead of with
/// 410.
const EMPTY_STREAMS_MAX: u32 = 3;
/// Keys remembered while a list next to the watch is under way; with more changes than that its answer is worthless.
const TOUCHED_MAX: usize = 100_000;

/// Kinds of changes to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The object was unknown before.
    Added,
    Modified,
    /// The object is gone; the event carries its last known state.
    Deleted,
}

/// An accepted change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<K = Package> {
    pub change: Change,
    /// The object after the change, or its last state.
    pub object: Arc<Object<K>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// List everything. `at_least` is a version that the answer must reach, sent to the server when there is one.
    List { reason: Reason, at_least: Option<Box<str>> },
    Watch {
        /// Last version up to which the view is complete.
        from: Box<str>,
    },
}

/// Why a list is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Start,
    /// 410: the version is out of the server's history.
    Expired,
    /// The server reports that it has not reached our version.
    Ahead,
    /// The server has gone back: nothing in the view need be true any more.
    Rewound,
    /// The last list was older than the view.
    Stale,
    /// The watch made no progress for several attempts.
    Stuck,
    /// The safety net next to a healthy watch.
    Interval,
}

impl Reason {
    pub const ALL: [Self; 7] =
        [Self::Start, Self::Expired, Self::Ahead, Self::Rewound, Self::Stale, Self::Stuck, Self::Interval];

    /// The name in metrics and on the diagnostics page.
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

/// The meaning of a line for the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Continue,
    /// The version is out of history; the stream is over.
    Expired,
    /// The server has not reached the version; the stream is over.
    Ahead,
    /// The server reported an error; the stream is over.
    Failed {
        code: u16,
        /// Seconds after which the server asks to retry.
        retry_after_s: Option<u64>,
        message: String,
    },
    /// The line is not an event; the stream cannot be trusted any further.
    Malformed(String),
}

/// The outcome of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The view is now the list's snapshot.
    Yes,
    /// The view is now the list, which is older than the former view: the server has gone back in time.
    Rewound,
    /// The list is older than the view and was not used.
    Stale,
}

/// The outcome of a list next to the watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The watch has lost nothing.
    Agrees,
    /// The watch has lost this many events; its stream is faulty and must be opened again.
    Lost(usize),
    /// The list is older than the view and was not used; it should be repeated soon.
    Older,
    /// The server has gone back in time. The view is now the list's snapshot, and the stream belongs to another
    /// history.
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
    /// While a list next to the watch is under way: the position when it began, and the keys that changed since.
    touched: Option<(Option<Box<str>>, BTreeSet<Key>)>,
    tombs: Tombs,
    /// Events without news: replays, and deletions of absent objects.
    pub repeats: u64,
}

impl<K: Kind> Machine<K> {
    /// A machine without knowledge, which writes into `store`.
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

    /// Last version up to which the view is complete.
    pub fn position(&self) -> Option<&str> {
        self.position.as_deref()
    }

    /// Takes one line of the stream.
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

    /// The server reports, by HTTP status or in the stream, that the position is out of history.
    pub fn expired(&mut self) -> Line {
        self.needed = Some(Reason::Expired);
        self.cancel_side();
        Line::Expired
    }

    /// The server reports that it has not reached the position: it lags, or it went back and will not reach it for
    /// long.
    pub fn ahead(&mut self) -> Line {
        self.needed = Some(Reason::Ahead);
        self.cancel_side();
        Line::Ahead
    }

    /// A list requested by [`Machine::next`] failed. A server that went back refuses to answer at the version that we
    /// know, so the next attempt names none.
    pub fn list_failed(&mut self) {
        self.ask_at_least = false;
    }

    /// Whether the stream has shown something older than the view since the last call: a replay, or the new history of
    /// a server that went back. Only a list can decide which.
    pub fn take_doubt(&mut self) -> bool {
        std::mem::take(&mut self.doubtful)
    }

    /// A watch could not be opened, or failed without progress.
    pub fn fruitless(&mut self) {
        self.fruitless += 1;
        if self.fruitless >= RESUMES_MAX {
            self.stuck();
        }
    }

    /// A stream ended cleanly at once without a byte.
    pub fn empty_stream(&mut self) {
        self.empty_streams += 1;
        if self.empty_streams >= EMPTY_STREAMS_MAX {
            self.stuck();
        }
    }

    /// Takes a complete list requested by [`Machine::next`].
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

    /// Makes the view equal to `listing`, and continues from there.
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

    /// A list next to the watch begins: changes are noted from now on, because they may be newer than its snapshot.
    pub fn begin_side(&mut self) {
        self.touched = Some((self.position.clone(), BTreeSet::new()));
    }

    /// Forgets a list next to the watch.
    pub fn cancel_side(&mut self) {
        self.touched = None;
    }

    /// Whether the watch has come as far as `listing`, so that any difference is one that the watch has lost.
    pub fn caught_up(&self, listing: &Listing<K>) -> bool {
        self.position.as_deref().is_some_and(|position| reaches(position, &listing.version))
    }

    /// Compares a list made next to the watch, and replays the events that the watch has lost.
    ///
    /// After [`Settled::Lost`] the position stays: keys that changed meanwhile were not compared, and their events may
    /// still be under way.
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

    /// The stream proved that it moves; decimal positions never go back.
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

    /// Removes `object` from the store; `version` is the one at which it is known to be gone.
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

    /// Replays the difference between the view and `listing` for the keys that `concerns` accepts. Deletions come
    /// first, so that a consumer with a quota sees room before it is used again.
    ///
    /// A known object that is newer than the snapshot stays. Any other object becomes as in the list, even if the list
    /// has an older version of it: then the server went back and has overtaken us since. In another history (`rewound`)
    /// an equal version means nothing either, so there everything is replayed.
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
