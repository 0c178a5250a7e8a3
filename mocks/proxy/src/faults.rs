//! The faults of a proxy. [`Faults`] has the same methods as [`mock_faults::Faults`], so that the scheduler of faults
//! handles the proxy like the mock API server.
//!
//! Owns the begun faults, the choice of connections, and the record of hits. This module moves no bytes: it sends each
//! connection the effects on it, and connections report their hits.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use mock_faults::table::Table;
use mock_faults::{Error, Fault, FaultId, Hit};
use parking_lot::Mutex;
use rand::RngExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::link::Link;
use super::netns::Namespace;
use super::plan::{Acceptance, Effect, Plan};
use super::shape::{End, Lane, Shape, Way};

/// How often the proxy reads the packet filter's counters, until the first packet is lost.
const LOSS_LOOKED_EVERY: Duration = Duration::from_millis(100);

/// Numbers of connections and bytes of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of the subject's connections that were served.
    pub accepted: u64,
    /// Number of the subject's connections that were refused.
    pub refused: u64,
    pub open: u64,
    /// Bytes from the server that were written to the subject's socket.
    pub bytes_to_subject: u64,
    /// Bytes from the subject that were written to the server's socket.
    pub bytes_to_server: u64,
}

#[derive(Debug)]
pub struct Faults {
    /// A reference to this value for the tasks that read the packet filter's counters.
    me: Weak<Self>,
    epoch: Instant,
    inner: Mutex<Inner>,
    namespace: Option<Arc<Namespace>>,
    moved: [AtomicU64; 2],
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Inner {
    table: Table<Played>,
    links: BTreeMap<u64, Open>,
    accepted: u64,
    refused: u64,
    next: u64,
}

/// One open connection and the effects of faults on it. Permanent effects stay until the connection ends.
#[derive(Debug)]
struct Open {
    link: Arc<Link>,
    /// The effects of each fault on both directions, in the order of `Way::BOTH`; bounded by the number of remembered
    /// faults.
    lanes: Vec<(FaultId, [Lane; 2])>,
}

/// The state of one begun fault.
#[derive(Debug)]
struct Played {
    plan: Plan,
    /// Ends the task that reads the packet filter's counters.
    over: CancellationToken,
}

mock_faults::player!(Faults);

impl Faults {
    pub(super) fn new(
        epoch: Instant,
        seed: u64,
        namespace: Option<Namespace>,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let inner = Inner { table: Table::new(seed), links: BTreeMap::new(), accepted: 0, refused: 0, next: 1 };
        let (inner, namespace, moved) = (Mutex::new(inner), namespace.map(Arc::new), Default::default());
        Arc::new_cyclic(|me| Self { me: me.clone(), epoch, inner, namespace, moved, tasks, stop })
    }

    /// Begins a fault. Refuses a fault with contradictory settings, and a fault that is no network fault.
    pub fn begin(&self, id: FaultId, fault: &Fault) -> Result<(), Error> {
        fault.check()?;
        let name = fault.name.as_str();
        let plan = Plan::of(fault)
            .ok_or(Error::NotPlayed { fault: name, why: "the proxy plays faults of the network only" })?;
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        let over = self.stop.child_token();
        let index = inner.table.begin(id, fault, Played { plan, over: over.clone() })?;
        let chosen = if plan.on_open { inner.choose(index) } else { Vec::new() };
        if plan.what == Effect::Loss {
            let ports: Vec<u16> = chosen.iter().filter_map(|id| Some(inner.links.get(id)?.link.peer.port())).collect();
            drop(inner);
            return self.lose(id, plan, &ports, over).inspect_err(|_| self.forget(id));
        }
        for connection in chosen {
            inner.afflict(index, connection, now_us);
        }
        Ok(())
    }

    pub fn end(&self, id: FaultId) {
        let mut inner = self.inner.lock();
        let Some(index) = inner.table.end(id) else { return };
        let Played { plan, over } = &inner.table.entries[index].played;
        over.cancel();
        let plan = *plan;
        if plan.heals {
            for open in inner.links.values_mut() {
                open.lanes.retain(|(by, _)| *by != id);
                open.tell();
            }
        }
        drop(inner);
        if let Some(namespace) = self.namespace.as_ref().filter(|_| plan.what == Effect::Loss) {
            self.note_lost(namespace, id);
            if plan.heals
                && let Err(error) = namespace.pass(id, plan.ways)
            {
                tracing::warn!(%error, "packets go on vanishing");
            }
        }
    }

    /// Number of real effects: one for each affected connection, and at most one for `net-loss`.
    pub fn hits(&self, id: FaultId) -> u64 {
        self.inner.lock().table.hits_of(id)
    }

    pub fn take_hits(&self) -> Vec<Hit> {
        self.inner.lock().table.take_hits()
    }

    pub async fn struck(&self) {
        let struck = self.inner.lock().table.struck();
        struck.notified().await;
    }

    pub fn all(&self) -> Vec<(FaultId, Fault, bool, u64)> {
        self.inner.lock().table.all()
    }

    /// Decides whether a new connection is served or refused.
    pub(super) fn admit(&self, peer: SocketAddr) -> Acceptance {
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        let id = inner.next;
        inner.next += 1;
        let link = Arc::new(Link::new(id, peer, Shape::default()));
        let mut afflicting = Vec::new();
        for index in 0..inner.table.entries.len() {
            let entry = &inner.table.entries[index];
            let plan = entry.played.plan;
            if !entry.active || entry.is_moment() || !plan.on_new || !inner.table.picks(index) {
                continue;
            }
            if let Effect::Refuse(how) = plan.what {
                inner.table.hit(index, now_us, format!("{} refused: {}", link.describe(), how.as_str()));
                inner.refused += 1;
                return Acceptance::Shut(how);
            }
            afflicting.push(index);
        }
        inner.accepted += 1;
        inner.links.insert(id, Open { link: link.clone(), lanes: Vec::new() });
        for index in afflicting {
            inner.afflict(index, id, now_us);
        }
        Acceptance::Open(link)
    }

    /// Removes a connection that has ended.
    pub(super) fn closed(&self, id: u64) {
        self.inner.lock().links.remove(&id);
    }

    pub(super) fn note_moved(&self, way: Way, count: u64) {
        self.moved[way as usize].fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn hit(&self, by: FaultId, detail: String) {
        let now_us = self.now_us();
        self.inner.lock().hit(by, now_us, detail);
    }

    pub(super) fn random(&self) -> f64 {
        self.inner.lock().table.random.random()
    }

    pub(super) fn counts(&self) -> Counts {
        let inner = self.inner.lock();
        let moved = |way: Way| self.moved[way as usize].load(Ordering::Relaxed);
        Counts {
            accepted: inner.accepted,
            refused: inner.refused,
            open: inner.links.len() as u64,
            bytes_to_subject: moved(Way::ToSubject),
            bytes_to_server: moved(Way::ToServer),
        }
    }

    /// Makes the packet filter drop packets, and starts a task that waits for the first lost packet.
    fn lose(&self, id: FaultId, plan: Plan, ports: &[u16], over: CancellationToken) -> Result<(), Error> {
        let refused = |why| Error::NotPlayed { fault: "net-loss", why };
        let namespace = self.namespace.clone().ok_or_else(|| refused("it has no network namespace"))?;
        let ports = (!plan.on_new).then_some(ports);
        namespace.lose(id, plan.ways, ports).map_err(|error| {
            tracing::warn!(%error, "the packet filter refused to lose packets");
            refused("the packet filter refused; see the log")
        })?;
        let faults = self.me.clone();
        self.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(LOSS_LOOKED_EVERY) => {}
                    () = over.cancelled() => return,
                }
                let (faults, namespace) = (faults.clone(), namespace.clone());
                let look = move || faults.upgrade().is_none_or(|faults| faults.note_lost(&namespace, id));
                if tokio::task::spawn_blocking(look).await.unwrap_or(true) {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Records the one hit of `net-loss` if packets were lost; returns whether packets were lost.
    fn note_lost(&self, namespace: &Namespace, id: FaultId) -> bool {
        let (to_server, to_subject) = namespace.lost(id);
        if to_server + to_subject == 0 {
            return false;
        }
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        if inner.table.entries.iter().any(|entry| entry.id == id && entry.hits == 0) {
            let detail = format!("packets vanished: {to_server} to the server, {to_subject} to the subject");
            inner.hit(id, now_us, detail);
        }
        true
    }

    fn forget(&self, id: FaultId) {
        self.inner.lock().table.entries.retain(|entry| entry.id != id || !entry.active);
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Inner {
    fn hit(&mut self, by: FaultId, now_us: u64, detail: String) {
        if let Some(index) = self.table.newest(by) {
            self.table.hit(index, now_us, detail);
        }
    }

    /// The open connections that a fault affects, oldest first.
    fn choose(&mut self, index: usize) -> Vec<u64> {
        let open: Vec<u64> = self.links.keys().copied().collect();
        open.into_iter().filter(|_| self.table.picks(index)).collect()
    }

    fn afflict(&mut self, index: usize, connection: u64, now_us: u64) {
        let (id, plan) = (self.table.entries[index].id, self.table.entries[index].played.plan);
        let Some(open) = self.links.get_mut(&connection) else { return };
        let link = open.link.clone();
        open.lanes.push((id, Way::BOTH.map(|way| plan.lane(id, way, link.moved(way)))));
        open.tell();
        if plan.what == Effect::Reset {
            link.shape.send_modify(|shape| shape.end = Some(End::Reset));
            self.hit(id, now_us, format!("{} reset", link.describe()));
        }
    }
}

impl Open {
    /// Sends the current effects to the connection's task.
    fn tell(&self) {
        let mut shape = Shape { end: self.link.shape.borrow().end, ..Shape::default() };
        for (_, lanes) in &self.lanes {
            for (way, lane) in Way::BOTH.into_iter().zip(lanes) {
                shape.lane_mut(way).add(lane);
            }
        }
        self.link.shape.send_if_modified(|current| std::mem::replace(current, shape) != shape);
    }
}
