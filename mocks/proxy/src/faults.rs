//! The faults of a proxy: the same shape as [`mock_faults::Faults`], so that a schedule's runner treats both alike.
//!
//! Owns the running faults, the choice of connections, and the record of hits. It must not move bytes: it gives
//! connections their effects, and they report their hits.

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
use super::plan::{Door, Plan, What};
use super::shape::{End, Lane, Shape, Way};

/// Interval of reading the packet filter's counters, until the first packet is lost.
const LOSS_LOOKED_EVERY: Duration = Duration::from_millis(100);

/// Counters of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Connections of the subject that were served.
    pub accepted: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Connections that are open.
    pub open: u64,
    /// Bytes from the server that were given to the kernel.
    pub bytes_to_subject: u64,
    /// Bytes from the subject that were given to the kernel.
    pub bytes_to_server: u64,
}

/// The faults of one proxy.
#[derive(Debug)]
pub struct Faults {
    /// For the tasks that outlive a call.
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

/// One open connection and the faults' effects on it; permanent effects stay until the end.
#[derive(Debug)]
struct Open {
    link: Arc<Link>,
    /// Both directions, in the order of `Way::BOTH`; bounded by the number of remembered faults.
    lanes: Vec<(FaultId, [Lane; 2])>,
}

/// The state of one played fault.
#[derive(Debug)]
struct Played {
    plan: Plan,
    /// Ends the watch on the packet filter.
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

    /// Begins a fault. A fault with contradictory settings, or of another family than the network's, is refused.
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
        if plan.what == What::Loss {
            let ports: Vec<u16> = chosen.iter().filter_map(|id| Some(inner.links.get(id)?.link.peer.port())).collect();
            drop(inner);
            return self.lose(id, plan, &ports, over).inspect_err(|_| self.forget(id));
        }
        for connection in chosen {
            inner.afflict(index, connection, now_us);
        }
        Ok(())
    }

    /// Ends a fault. Its hits stay readable; an unknown id is ignored.
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
        if let Some(namespace) = self.namespace.as_ref().filter(|_| plan.what == What::Loss) {
            self.note_lost(namespace, id);
            if plan.heals
                && let Err(error) = namespace.pass(id, plan.ways)
            {
                tracing::warn!(%error, "packets go on vanishing");
            }
        }
    }

    /// Number of real effects: one for each affected connection; for `net-loss` at most one.
    pub fn hits(&self, id: FaultId) -> u64 {
        self.inner.lock().table.hits_of(id)
    }

    /// The hits since the last call, oldest first; at most the newest 8192.
    pub fn take_hits(&self) -> Vec<Hit> {
        self.inner.lock().table.take_hits()
    }

    /// Waits for a hit since its last return. [`Faults::take_hits`] then returns that hit, unless it was taken already.
    /// For one waiting task; dropping the future loses nothing.
    pub async fn struck(&self) {
        let struck = self.inner.lock().table.struck();
        struck.notified().await;
    }

    /// Every fault that was begun: whether it is active, and its hits.
    pub fn all(&self) -> Vec<(FaultId, Fault, bool, u64)> {
        self.inner.lock().table.all()
    }

    /// The treatment of a new connection.
    pub(super) fn admit(&self, peer: SocketAddr) -> Door {
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
            if let What::Refuse(how) = plan.what {
                inner.table.hit(index, now_us, format!("{} refused: {}", link.describe(), how.as_str()));
                inner.refused += 1;
                return Door::Shut(how);
            }
            afflicting.push(index);
        }
        inner.accepted += 1;
        inner.links.insert(id, Open { link: link.clone(), lanes: Vec::new() });
        for index in afflicting {
            inner.afflict(index, id, now_us);
        }
        Door::Open(link)
    }

    /// A connection is over.
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

    /// Drops packets, and watches for the first lost one.
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

    /// Records the one hit of lost packets, if there are some.
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

    /// The open connections that a fault acts on, oldest first.
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
        if plan.what == What::Reset {
            link.shape.send_modify(|shape| shape.end = Some(End::Reset));
            self.hit(id, now_us, format!("{} reset", link.describe()));
        }
    }
}

impl Open {
    /// Updates the effects on the connection.
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
