//! Faults: named misbehaviour of the mock API server, with proof that each one was really hit.
//!
//! Owns the configuration of a fault, the engine that begins and ends faults, and the record of their hits. One fault
//! is one file below `faults/` and one line in `Name::behaviour`. Faults touch only requests of the users they are aimed at
//! ([`Faults::target_users`]), so the harness's own clients always see a healthy server, and they touch watches
//! only: lists and writes stay right. The exceptions change the store itself: `watch-410` its history and `rewind`
//! its present. This module must not know HTTP; it speaks of streams and revisions.

pub(crate) mod connection;
mod event_dropped;
mod rewind;
mod schedule;
mod settings;
mod silent_watch;
mod stream;
mod watch_410;
mod watch_reset;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use connection::{Handle, Welcome};
pub use schedule::{Schedule, Step};
pub use settings::{
    Change, Code, Connections, Direction, Error, ErrorBody, Family, Fault, Form, How, Http2Code, Kind, Lasting, Name,
    NewConnections, NewStreams, Newer, Nth, On, Then, Watches, When, check_all,
};
pub(crate) use stream::{Fate, Stream};

/// How many hits are kept until somebody takes them; older ones are dropped, the counters go on.
const HITS_MAX: usize = 8192;

/// How many faults are remembered.
const FAULTS_MAX: usize = 4096;

/// The caller's number for one scheduled fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaultId(pub u32);

/// Proof that a fault had an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Which fault.
    pub fault: FaultId,
    /// When, in microseconds since the epoch.
    pub at_us: u64,
    /// What happened, for example `watch 7 of packages.longhaul.dev by subject reset`.
    pub detail: String,
}

/// The faults of one server.
#[derive(Debug)]
pub struct Faults {
    /// Fast path: no fault was ever begun.
    any: AtomicBool,
    inner: Mutex<Inner>,
    host: std::sync::OnceLock<Box<dyn Host>>,
}

/// What the engine needs of the server.
pub(crate) trait Host: Send + Sync + std::fmt::Debug {
    fn now_us(&self) -> u64;
    /// Makes every revision handed out so far too old to resume from.
    fn compact_to_now(&self);
    /// Goes back in time; answers what was undone, `None` when nothing was.
    fn restore(&self, restore: Restore) -> Option<String>;
}

/// A backup that the store is restored from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Restore {
    /// How old it is; at most as old as the history.
    pub age: Duration,
    pub newer: Newer,
    pub watches: Watches,
}

#[derive(Debug)]
struct Inner {
    targets: BTreeSet<Arc<str>>,
    endpoints: BTreeSet<u32>,
    faults: Vec<Running>,
    streams: BTreeMap<u64, Arc<Stream>>,
    hits: VecDeque<Hit>,
    random: ChaCha8Rng,
}

#[derive(Debug)]
struct Running {
    id: FaultId,
    fault: Fault,
    active: bool,
    hits: u64,
    behaviour: Box<dyn Behaviour>,
}

/// One fault's mechanism. Every method has the harmless default.
pub(crate) trait Behaviour: Send + Sync + std::fmt::Debug {
    /// The fault begins: `open` are the watches it applies to.
    fn begin(&mut self, _open: &[Arc<Stream>], _scene: &mut Scene<'_>) {}
    /// The fault ends.
    fn end(&mut self, _open: &[Arc<Stream>], _scene: &mut Scene<'_>) {}
    /// A connection to an endpoint that faults may touch was accepted, and nobody knows yet whose it is.
    fn welcome(&mut self, _handle: &Handle, _welcome: &mut Welcome, _scene: &mut Scene<'_>) {}
    /// A matching watch opens while the fault is active.
    fn opened(&mut self, _stream: &Arc<Stream>, _scene: &mut Scene<'_>) {}
    /// An event is about to be sent on a matching stream while the fault is active: true swallows it.
    fn swallows(
        &mut self,
        _stream: &Stream,
        _change: crate::kube::Change,
        _revision: u64,
        _scene: &mut Scene<'_>,
    ) -> bool {
        false
    }
    /// An event could not be sent because the stream is silenced by this fault; also after the fault's end.
    fn withheld(&mut self, _stream: &Stream, _revision: u64, _scene: &mut Scene<'_>) {}
    /// A watch asks for a revision that was compacted away: which form of 410 to answer. Also after the fault's end,
    /// because clients resume later.
    fn gone(&mut self, _stream: &Stream, _requested: u64, _scene: &mut Scene<'_>) -> Option<Form> {
        None
    }
    /// What the fault does not do by itself but asks of the server at its beginning.
    fn compacts(&self) -> bool {
        false
    }
    /// The same, for going back in time.
    fn restores(&self) -> Option<Restore> {
        None
    }
    /// The server has gone back, and something was undone.
    fn restored(&mut self, _what: &str, _scene: &mut Scene<'_>) {}
    /// A watch resumes from a revision that the store had and does not have any more. Also after the fault's end.
    fn ahead(&mut self, _stream: &Stream, _requested: u64, _scene: &mut Scene<'_>) {}
}

/// What a behaviour may use.
pub(crate) struct Scene<'a> {
    pub id: FaultId,
    pub fault: &'a Fault,
    pub now_us: u64,
    random: &'a mut ChaCha8Rng,
    counted: &'a mut u64,
    ring: &'a mut VecDeque<Hit>,
}

impl Scene<'_> {
    /// Records one real effect.
    pub fn hit(&mut self, detail: String) {
        *self.counted += 1;
        if self.ring.len() == HITS_MAX {
            self.ring.pop_front();
        }
        self.ring.push_back(Hit { fault: self.id, at_us: self.now_us, detail });
    }

    /// True with the fault's probability; always when it has none.
    pub fn chance(&mut self) -> bool {
        self.fault.probability.is_none_or(|p| self.random.random_bool(p.clamp(0.0, 1.0)))
    }

    /// Whether the fault has used up its `count`.
    pub fn spent(&self, default: Option<u64>) -> bool {
        self.fault.count.or(default).is_some_and(|count| *self.counted >= count)
    }
}

/// The list of faults: one line each.
fn behaviour(fault: &Fault) -> Result<Box<dyn Behaviour>, Error> {
    Ok(match fault.name {
        Name::WatchReset => Box::new(watch_reset::WatchReset),
        Name::Watch410 => Box::new(watch_410::Watch410::new(fault)),
        Name::SilentWatch => Box::new(silent_watch::SilentWatch::default()),
        Name::EventDropped => Box::new(event_dropped::EventDropped),
        Name::Rewind => Box::new(rewind::Rewind::new(fault)),
        Name::Freeze => Box::new(connection::freeze::Freeze::default()),
        Name::NoPong => Box::new(connection::no_pong::NoPong::default()),
        Name::Goaway => Box::new(connection::goaway::GoAway::default()),
        Name::RefuseConnections => Box::new(connection::refuse_connections::RefuseConnections::default()),
        Name::MaxStreams => Box::new(connection::max_streams::MaxStreams::default()),
        Name::Certificate => Box::new(connection::certificate::Certificate::default()),
        name if name.family() == Family::Network => {
            let why = "it is about the network in front of it";
            return Err(Error::NotPlayed { fault: name.as_str(), why });
        }
        name => return Err(Error::NotPlayed { fault: name.as_str(), why: "this version does not know how" }),
    })
}

impl Faults {
    /// An engine without faults; `seed` decides every probability.
    pub(crate) fn new(seed: u64) -> Self {
        let inner = Inner {
            targets: BTreeSet::new(),
            endpoints: BTreeSet::new(),
            faults: Vec::new(),
            streams: BTreeMap::new(),
            hits: VecDeque::new(),
            random: ChaCha8Rng::seed_from_u64(seed),
        };
        Self { any: AtomicBool::new(false), inner: Mutex::new(inner), host: std::sync::OnceLock::new() }
    }

    /// Connects the engine with the server it belongs to; once.
    pub(crate) fn attach(&self, host: Box<dyn Host>) {
        let _ = self.host.set(host);
    }

    /// The users whose watches faults may touch. Nobody, until this is called.
    pub fn target_users<I: IntoIterator<Item = S>, S: AsRef<str>>(&self, users: I) {
        self.inner.lock().targets = users.into_iter().map(|user| Arc::from(user.as_ref())).collect();
    }

    /// Begins a fault. A fault whose settings contradict each other is refused.
    pub fn begin(&self, id: FaultId, fault: &Fault) -> Result<(), Error> {
        fault.check()?;
        let running = |inner: &Inner| inner.faults.iter().any(|running| running.id == id && running.active);
        if running(&self.inner.lock()) {
            return Err(Error::AlreadyRunning { id: id.0 });
        }
        let behaviour = behaviour(fault)?;
        self.any.store(true, Ordering::Release);
        if behaviour.compacts()
            && let Some(host) = self.host.get()
        {
            host.compact_to_now();
        }
        let restored = behaviour.restores().and_then(|restore| self.host.get()?.restore(restore));
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        // An ended fault is kept for its hits; of very many the oldest go.
        if inner.faults.len() >= FAULTS_MAX
            && let Some(oldest) = inner.faults.iter().position(|running| !running.active)
        {
            inner.faults.remove(oldest);
        }
        inner.faults.push(Running { id, fault: fault.clone(), active: true, hits: 0, behaviour });
        let index = inner.faults.len() - 1;
        inner.stage(index, now_us, |behaviour, open, scene| {
            behaviour.begin(open, scene);
            if let Some(what) = &restored {
                behaviour.restored(what, scene);
            }
        });
        Ok(())
    }

    /// Ends a fault. Its hits stay readable; an unknown id is ignored.
    pub fn end(&self, id: FaultId) {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        let Some(index) = inner.faults.iter().position(|running| running.id == id && running.active) else { return };
        inner.faults[index].active = false;
        inner.stage(index, now_us, |behaviour, open, scene| behaviour.end(open, scene));
    }

    /// How often a fault had a real effect. A fault with no hit proves nothing about the subject.
    pub fn hits(&self, id: FaultId) -> u64 {
        self.inner.lock().faults.iter().filter(|running| running.id == id).map(|running| running.hits).sum()
    }

    /// The hits since the last call, oldest first; at most the newest 8192.
    pub fn take_hits(&self) -> Vec<Hit> {
        self.inner.lock().hits.drain(..).collect()
    }

    /// Every fault that was begun: whether it is active, and its hits.
    pub fn all(&self) -> Vec<(FaultId, Fault, bool, u64)> {
        let inner = self.inner.lock();
        inner.faults.iter().map(|running| (running.id, running.fault.clone(), running.active, running.hits)).collect()
    }

    /// The open watches, oldest first, at most `max`.
    pub(crate) fn open_streams(&self, max: usize) -> Vec<Arc<Stream>> {
        self.inner.lock().streams.values().take(max).cloned().collect()
    }

    fn now_us(&self) -> u64 {
        self.host.get().map_or(0, |host| host.now_us())
    }

    /// A watch was accepted.
    pub(crate) fn opened(&self, stream: &Arc<Stream>) {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        inner.streams.insert(stream.id, stream.clone());
        inner.each(stream, true, now_us, |behaviour, scene| behaviour.opened(stream, scene));
    }

    /// A watch is over.
    pub(crate) fn closed(&self, id: u64) {
        self.inner.lock().streams.remove(&id);
    }

    /// Whether no fault was ever begun, so that nobody needs to be asked about any event.
    pub(crate) fn never_any(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Whether an event must not be sent on this stream, and because of which fault.
    pub(crate) fn swallows(&self, stream: &Stream, change: crate::kube::Change, revision: u64) -> Option<FaultId> {
        if self.never_any() {
            return None;
        }
        let now_us = self.now_us();
        let mut swallowed = None;
        self.inner.lock().each(stream, true, now_us, |behaviour, scene| {
            if swallowed.is_none() && behaviour.swallows(stream, change, revision, scene) {
                swallowed = Some(scene.id);
            }
        });
        swallowed
    }

    /// An event stays unsent because the stream is silent.
    pub(crate) fn withheld(&self, by: FaultId, stream: &Stream, revision: u64) {
        let now_us = self.now_us();
        self.inner.lock().each(stream, false, now_us, |behaviour, scene| {
            if scene.id == by {
                behaviour.withheld(stream, revision, scene);
            }
        });
    }

    /// A watch resumes from a revision that the store had before it went back in time.
    pub(crate) fn ahead(&self, stream: &Stream, requested: u64) {
        let now_us = self.now_us();
        let mut counted = false;
        self.inner.lock().each_newest_first(stream, false, now_us, |behaviour, scene| {
            if !counted && behaviour.restores().is_some() {
                counted = true;
                behaviour.ahead(stream, requested, scene);
            }
        });
    }

    /// Resets every open watch, whoever it belongs to: the server was restarted.
    pub(crate) fn cut_all(&self) {
        let open: Vec<Arc<Stream>> = self.inner.lock().streams.values().cloned().collect();
        for stream in open {
            stream.decide(Fate::Reset);
        }
    }

    /// Which form of 410 a watch from before the floor gets; `None` leaves it to the server.
    pub(crate) fn gone(&self, stream: &Stream, requested: u64) -> Option<Form> {
        if self.never_any() {
            return None;
        }
        let now_us = self.now_us();
        let mut form = None;
        // The newest fault wins, and only it counts the hit.
        self.inner.lock().each_newest_first(stream, false, now_us, |behaviour, scene| {
            if form.is_none() {
                form = behaviour.gone(stream, requested, scene);
            }
        });
        form
    }
}

impl Inner {
    fn applies(&self, running: &Running, stream: &Stream) -> bool {
        self.targets.contains(&stream.user) && running.fault.matches(&stream.resource, &stream.user_agent, "", 0)
    }

    /// Runs `act` on one fault with all the streams that it applies to.
    fn stage(
        &mut self,
        index: usize,
        now_us: u64,
        act: impl FnOnce(&mut dyn Behaviour, &[Arc<Stream>], &mut Scene<'_>),
    ) {
        let open: Vec<Arc<Stream>> =
            self.streams.values().filter(|stream| self.applies(&self.faults[index], stream)).cloned().collect();
        let Self { faults, hits, random, .. } = self;
        let Running { id, fault, hits: counted, behaviour, .. } = &mut faults[index];
        let mut scene = Scene { id: *id, fault, now_us, random, counted, ring: hits };
        act(&mut **behaviour, &open, &mut scene);
    }

    /// Runs `act` on every fault that applies to a stream.
    fn each(
        &mut self,
        stream: &Stream,
        only_active: bool,
        now_us: u64,
        mut act: impl FnMut(&mut dyn Behaviour, &mut Scene<'_>),
    ) {
        for index in 0..self.faults.len() {
            self.on(index, stream, only_active, now_us, &mut act);
        }
    }

    fn each_newest_first(
        &mut self,
        stream: &Stream,
        only_active: bool,
        now_us: u64,
        mut act: impl FnMut(&mut dyn Behaviour, &mut Scene<'_>),
    ) {
        for index in (0..self.faults.len()).rev() {
            self.on(index, stream, only_active, now_us, &mut act);
        }
    }

    fn on(
        &mut self,
        index: usize,
        stream: &Stream,
        only_active: bool,
        now_us: u64,
        act: &mut impl FnMut(&mut dyn Behaviour, &mut Scene<'_>),
    ) {
        let running = &self.faults[index];
        if (only_active && !running.active) || !self.applies(running, stream) {
            return;
        }
        let Self { faults, hits, random, .. } = self;
        let Running { id, fault, hits: counted, behaviour, .. } = &mut faults[index];
        let mut scene = Scene { id: *id, fault, now_us, random, counted, ring: hits };
        act(&mut **behaviour, &mut scene);
    }
}
