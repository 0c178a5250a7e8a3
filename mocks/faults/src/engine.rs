//! The engine of faults in the mock API server: the begun faults, their targets, and their effects.
//!
//! Owns the one lock of all begun faults, and the choice of requests and watches by target user, `on`, `resource`,
//! `afterEvents` and other keys. [`Table`] owns the logic that all engines share. The engine does not know the effect
//! of any fault.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::active::Counts;
use super::handle::{Handle, Welcome};
use super::table::{Entry, Table};
use super::{
    ActiveFault, Behaviour, Effect, Error, Family, Fault, FaultId, Flow, Hit, Host, Injection, Item, Name,
    RequestFacts, Scene, Stream,
};

/// The wait before a fault affects a connection, so that written bytes reach the network first. The engine also waits
/// for at least one flush.
const SETTLES: Duration = Duration::from_millis(20);
/// The longest wait for a flush before a fault touches a connection, because a client may have stopped reading.
const SETTLES_MOST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Core {
    pub(super) inner: Mutex<Inner>,
    pub(super) host: OnceLock<Box<dyn Host>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(super) targets: BTreeSet<Arc<str>>,
    /// True if faults may affect the requests of every user.
    pub(super) everybody: bool,
    pub(super) endpoints: BTreeSet<u32>,
    table: Table<Played>,
    next_serial: u64,
    pub(super) streams: BTreeMap<u64, Arc<Stream>>,
}

type Running = Entry<Played>;

/// One fault's behaviour with its state.
#[derive(Debug)]
struct Played {
    active: ActiveFault,
    behaviour: Box<dyn Behaviour>,
}

/// An effect on a stream that waits until the stream has sent the number of events in `afterEvents`.
#[derive(Debug)]
struct AfterEvents {
    core: Arc<Core>,
    active: ActiveFault,
    events: u64,
    reached: bool,
    /// True if the fault acts below HTTP: the engine then first waits until the last event is written.
    settles: bool,
    settling: Option<Settling>,
}

/// The wait of a fault until the last event before its effect has reached the socket.
#[derive(Debug)]
struct Settling {
    since: Instant,
    flushes: u64,
}

impl Core {
    pub(crate) fn new(seed: u64) -> Self {
        let inner = Inner {
            targets: BTreeSet::new(),
            everybody: false,
            endpoints: BTreeSet::new(),
            table: Table::new(seed),
            next_serial: 0,
            streams: BTreeMap::new(),
        };
        Self { inner: Mutex::new(inner), host: OnceLock::new() }
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.host.get().map_or(0, |host| host.now_us())
    }

    pub(crate) fn begin(
        self: &Arc<Self>,
        id: FaultId,
        fault: &Fault,
        mut behaviour: Box<dyn Behaviour>,
    ) -> Result<(), Error> {
        let targets: Vec<Arc<str>> = {
            let inner = self.inner.lock();
            inner.table.check_free(id)?;
            inner.targets.iter().cloned().collect()
        };
        // The server has locks of its own, so it is called before the engine's lock is taken.
        if let Some(host) = self.host.get() {
            behaviour.prepare(&**host, &targets);
        }
        let once_begun = behaviour.once_begun();
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        let active = ActiveFault::new(id, inner.next_serial, self.clone());
        inner.next_serial += 1;
        let index = inner.table.begin(id, fault, Played { active, behaviour })?;
        let mut open = inner.concerned(index);
        open.retain(|stream| inner.is_due(index, stream, self));
        inner.act(index, now_us, |behaviour, scene| behaviour.begin(&open, scene));
        drop(inner);
        if let (Some(host), Some(ask)) = (self.host.get(), once_begun) {
            ask(&**host);
        }
        Ok(())
    }

    pub(crate) fn end(&self, id: FaultId) {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        let Some(index) = inner.table.end(id) else { return };
        inner.table.entries[index].played.active.finish();
        // Also for a fault that chose by number: its effect on a watch ends with the fault.
        let running = &inner.table.entries[index];
        let open: Vec<_> = inner.streams.values().filter(|stream| inner.concerns(running, stream)).cloned().collect();
        inner.act(index, now_us, |behaviour, scene| behaviour.end(&open, scene));
        // Their withheld events go on.
        for stream in inner.streams.values() {
            stream.wake();
        }
    }

    /// Whether faults may affect the requests of a user.
    pub(crate) fn touches(&self, user: &str) -> bool {
        self.inner.lock().touches(user)
    }

    pub(crate) fn injection(&self, asked: &RequestFacts<'_>) -> Injection {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        let mut injection = Injection { known: inner.next_serial, ..Injection::default() };
        if !inner.touches(asked.user) {
            return injection;
        }
        for index in 0..inner.table.entries.len() {
            let running = &mut inner.table.entries[index];
            let family = running.fault.name.row().family;
            let choosy = matches!(family, Family::Requests | Family::Watches | Family::Connections);
            // A momentary fault acts only on watches that were open when it began.
            if !running.active || running.is_moment() || !choosy || !asked.concerns(&running.fault) {
                continue;
            }
            if !running.is_its_turn() {
                continue;
            }
            injection.matched.push(running.played.active.serial());
            inner.act(index, now_us, |behaviour, scene| {
                // For an effect on a watch, the probability is decided there.
                if family != Family::Requests || (!scene.spent() && scene.chance()) {
                    behaviour.request(asked, &mut injection, scene);
                }
            });
        }
        if injection.instead.is_none() {
            inner.met(asked, now_us);
        }
        injection
    }

    pub(crate) fn opened(self: &Arc<Self>, stream: &Arc<Stream>, injection: &Injection) {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        inner.streams.insert(stream.id, stream.clone());
        for index in 0..inner.table.entries.len() {
            let running = &inner.table.entries[index];
            let serial = running.played.active.serial();
            let matched = if serial < injection.known {
                injection.matched.contains(&serial)
            } else {
                // The fault began while the request was in progress.
                !running.fault.counts_turns() && !running.is_moment() && inner.concerns(running, stream)
            };
            if running.active && matched && inner.is_due(index, stream, self) {
                inner.act(index, now_us, |behaviour, scene| behaviour.opened(stream, scene));
            }
        }
    }

    /// Begins a fault on a stream that has sent the number of events in the fault's `afterEvents`.
    fn reached(self: &Arc<Self>, serial: u64, stream: &Arc<Stream>) {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        if let Some(index) = inner.place(serial).filter(|index| inner.table.entries[*index].active) {
            inner.act(index, now_us, |behaviour, scene| behaviour.opened(stream, scene));
        }
    }

    /// Runs `act` on every fault whose keys choose a stream, including faults that have ended.
    pub(crate) fn each(&self, stream: &Stream, mut act: impl FnMut(&mut dyn Behaviour, &mut Scene<'_>)) {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        for index in 0..inner.table.entries.len() {
            if inner.concerns(&inner.table.entries[index], stream) {
                inner.act(index, now_us, &mut act);
            }
        }
    }

    pub(crate) fn each_newest_first(&self, stream: &Stream, mut act: impl FnMut(&mut dyn Behaviour, &mut Scene<'_>)) {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        for index in (0..inner.table.entries.len()).rev() {
            if inner.concerns(&inner.table.entries[index], stream) {
                inner.act(index, now_us, &mut act);
            }
        }
    }

    /// Handles a new connection, before its user is known.
    pub(crate) fn welcome(&self, handle: &Handle) -> Welcome {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        let mut welcome = Welcome::default();
        if !inner.endpoints.contains(&handle.endpoint) {
            return welcome;
        }
        for index in 0..inner.table.entries.len() {
            let running = &inner.table.entries[index];
            let is_meant = running.fault.endpoint.is_none_or(|wanted| wanted == handle.endpoint);
            if running.active && !running.is_moment() && is_meant {
                inner.act(index, now_us, |behaviour, scene| behaviour.welcome(handle, &mut welcome, scene));
            }
        }
        welcome
    }

    /// Counts a hit of the newest fault with this id. An ended fault counts too, because frozen connections stay
    /// frozen.
    pub(crate) fn note(&self, by: FaultId, detail: String) {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        if let Some(index) = inner.table.newest(by) {
            inner.table.hit(index, now_us, detail);
        }
    }

    pub(crate) fn old_token_refused(&self, user: &str) {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        for index in (0..inner.table.entries.len()).rev() {
            let mut done = false;
            inner.act(index, now_us, |behaviour, scene| done = behaviour.old_token_refused(user, scene));
            if done {
                return;
            }
        }
    }
}

impl Counts for Core {
    fn may(&self, serial: u64) -> bool {
        let inner = self.inner.lock();
        inner.place(serial).is_some_and(|index| {
            let running = &inner.table.entries[index];
            running.active && !running.is_spent()
        })
    }

    fn strike(&self, serial: u64, by_chance: bool, detail: &mut dyn FnMut() -> String) -> bool {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        let Some(index) = inner.place(serial) else { return false };
        if inner.table.entries[index].is_spent() || (by_chance && !inner.table.chance(index)) {
            return false;
        }
        inner.table.hit(index, now_us, detail());
        true
    }
}

impl Inner {
    pub(crate) fn hits_of(&self, id: FaultId) -> u64 {
        self.table.hits_of(id)
    }

    pub(crate) fn take_hits(&mut self) -> Vec<Hit> {
        self.table.take_hits()
    }

    pub(crate) fn struck(&self) -> Arc<Notify> {
        self.table.struck()
    }

    pub(crate) fn all(&self) -> Vec<(FaultId, Fault, bool, u64)> {
        self.table.all()
    }

    pub(crate) fn of_workloads(&self) -> Vec<(ActiveFault, Fault)> {
        let running = self.table.entries.iter().filter(|running| running.active && !running.is_spent());
        let running = running.filter(|running| running.fault.name.row().family == Family::Workloads);
        running.map(|running| (running.played.active.clone(), running.fault.clone())).collect()
    }

    fn touches(&self, user: &str) -> bool {
        self.everybody || self.targets.contains(user)
    }

    /// Reports a request to the faults that changed the server itself, the newest fault of each name first.
    fn met(&mut self, asked: &RequestFacts<'_>, now_us: u64) {
        let mut met: Vec<Name> = Vec::new();
        for index in (0..self.table.entries.len()).rev() {
            let fault = &self.table.entries[index].fault;
            let name = fault.name;
            if met.contains(&name) || !fault.matches(asked.resource, asked.user_agent, asked.query, asked.endpoint) {
                continue;
            }
            self.act(index, now_us, |behaviour, scene| {
                if !scene.spent() && behaviour.met(asked, scene) {
                    met.push(name);
                }
            });
        }
    }

    /// A handle of the newest fault with this id.
    #[cfg(test)]
    pub(crate) fn active_of(&self, id: FaultId) -> Option<ActiveFault> {
        self.table.newest(id).map(|index| self.table.entries[index].played.active.clone())
    }

    fn place(&self, serial: u64) -> Option<usize> {
        self.table.entries.iter().position(|running| running.played.active.serial() == serial)
    }

    fn concerns(&self, running: &Running, stream: &Stream) -> bool {
        self.touches(&stream.user)
            && running.fault.matches(&stream.resource, &stream.user_agent, &stream.query, stream.connection.endpoint)
    }

    /// The open watches that a fault's keys choose. The list is empty if the fault counts requests, because counting
    /// starts when the fault begins.
    fn concerned(&self, index: usize) -> Vec<Arc<Stream>> {
        let running = &self.table.entries[index];
        if running.fault.counts_turns() {
            return Vec::new();
        }
        self.streams.values().filter(|stream| self.concerns(running, stream)).cloned().collect()
    }

    /// Whether a stream has sent as many events as `afterEvents` says; if not, the stream calls the engine after the
    /// last of them.
    fn is_due(&self, index: usize, stream: &Stream, core: &Arc<Core>) -> bool {
        let running = &self.table.entries[index];
        let events = running.fault.after_events.unwrap_or(0);
        if stream.sent() >= events {
            return true;
        }
        let (active, settles) = (running.played.active.clone(), running.fault.name.row().family == Family::Connections);
        let after = AfterEvents { core: core.clone(), active, events, reached: false, settles, settling: None };
        stream.attach(Box::new(after));
        false
    }

    fn act(&mut self, index: usize, now_us: u64, act: impl FnOnce(&mut dyn Behaviour, &mut Scene<'_>)) {
        let Table { entries, ring, random } = &mut self.table;
        let Running { fault, hits: counted, played: Played { active, behaviour }, .. } = &mut entries[index];
        let mut scene = Scene { id: active.id(), fault, active, now_us, random, counted, ring };
        act(&mut **behaviour, &mut scene);
    }
}

impl Effect for AfterEvents {
    fn pass(&mut self, item: Item, _flow: &Flow<'_>, out: &mut Vec<Item>) {
        out.push(item);
    }

    fn tick(&mut self, flow: &Flow<'_>, _out: &mut Vec<Item>) {
        if self.reached || flow.stream.sent() < self.events {
            return;
        }
        let flushes = flow.stream.connection.flushes.load(Ordering::Acquire);
        if self.settles {
            let settling = self.settling.get_or_insert(Settling { since: flow.now, flushes });
            let waited = flow.now.saturating_duration_since(settling.since);
            if waited < SETTLES || (flushes == settling.flushes && waited < SETTLES_MOST) {
                return;
            }
        }
        self.reached = true;
        self.core.reached(self.active.serial(), flow.stream);
    }

    fn due(&self) -> Option<Instant> {
        let settling = self.settling.as_ref().filter(|_| !self.reached)?;
        let now = Instant::now();
        Some((settling.since + SETTLES).max(now + Duration::from_millis(1)))
    }

    /// True while the last event before the fault is being written, so that no further event is sent before the fault
    /// acts.
    fn is_full(&self) -> bool {
        self.settling.is_some() && !self.reached
    }

    fn is_done(&self) -> bool {
        self.reached || self.active.is_over()
    }
}
