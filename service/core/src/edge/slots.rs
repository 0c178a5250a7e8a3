//! The places of one listener, one for each connection, and the choice of the connection to give up when they run out.
//!
//! Pure except for the signal to a connection that has to go. A new connection always finds a place while some
//! connection is idle. Connections that never sent a call go first, then the longest idle, from the peer that has most.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::peer::Address;

/// A handshake, or a connection without a call, that is younger than this may belong to an honest client: it is not
/// given up.
const YOUNG: Duration = Duration::from_secs(1);
/// Connections that were given up and are not closed yet. At this number, new connections are refused.
const LEAVING_MAX: usize = 64;

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Of all network addresses together.
    pub connections: usize,
    /// Of one network address.
    pub connections_per_peer: usize,
    /// Of one network address and still in the TLS handshake.
    pub handshakes_per_peer: usize,
}

/// Why a new connection is refused, or why an older one had to go. The names are label values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Full,
    /// The peer has all the connections that one peer may have.
    Peer,
    /// The peer has too many handshakes under way.
    Handshakes,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Peer => "peer",
            Self::Handshakes => "handshakes",
        }
    }
}

#[derive(Debug)]
pub struct Slots {
    limits: Limits,
    born: Instant,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: HashMap<u64, Arc<State>>,
    leaving: usize,
    counts: HashMap<Address, Count>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Count {
    connections: usize,
    handshakes: usize,
}

#[derive(Debug)]
struct State {
    address: Address,
    handshaking: AtomicBool,
    leaving: AtomicBool,
    /// Cancelled by the first call.
    called: CancellationToken,
    calls: AtomicU32,
    /// Start of the present state, handshake or idle, in nanoseconds since the listener began. In one millisecond
    /// several connections can become idle, and the oldest of them would be arbitrary.
    since_ns: AtomicU64,
    given_up: CancellationToken,
}

/// The place of one connection; free again when dropped.
#[derive(Debug)]
pub struct Slot {
    id: u64,
    slots: Arc<Slots>,
    state: Arc<State>,
}

/// A call under way on a connection.
#[derive(Debug)]
pub struct Call {
    slots: Arc<Slots>,
    state: Arc<State>,
}

impl Slots {
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, born: Instant::now(), table: Mutex::default() })
    }

    /// A place for a connection from `address`; the second value says why another connection has to go for it, if one
    /// must.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Result<(Slot, Option<Reason>), Reason> {
        let address = Address::from(address);
        let mut table = self.table.lock();
        let count = table.counts.get(&address).copied().unwrap_or_default();
        let pressed = if count.handshakes >= self.limits.handshakes_per_peer {
            Some(Reason::Handshakes)
        } else if count.connections >= self.limits.connections_per_peer {
            Some(Reason::Peer)
        } else if table.open.len() - table.leaving >= self.limits.connections {
            Some(Reason::Full)
        } else {
            None
        };
        if let Some(reason) = pressed {
            if table.leaving >= LEAVING_MAX {
                return Err(reason);
            }
            let victim = self.victim(&table, address, reason).ok_or(reason)?;
            table.give_up(&victim);
        }
        let state = Arc::new(State {
            address,
            handshaking: AtomicBool::new(true),
            leaving: AtomicBool::new(false),
            called: CancellationToken::new(),
            calls: AtomicU32::new(0),
            since_ns: AtomicU64::new(self.now_ns()),
            given_up: CancellationToken::new(),
        });
        let count = table.counts.entry(address).or_default();
        count.connections += 1;
        count.handshakes += 1;
        let id = table.next;
        table.next += 1;
        table.open.insert(id, Arc::clone(&state));
        Ok((Slot { id, slots: Arc::clone(self), state }, pressed))
    }

    /// Connections that have a place.
    #[cfg(test)]
    pub fn open(&self) -> usize {
        let table = self.table.lock();
        table.open.len() - table.leaving
    }

    /// The connection to give up. The cost is linear in the connections, and this runs only if no place is free.
    fn victim(&self, table: &Table, newcomer: Address, reason: Reason) -> Option<Arc<State>> {
        let now_ns = self.now_ns();
        let is_young = |since_ns: u64| u128::from(now_ns.saturating_sub(since_ns)) < YOUNG.as_nanos();
        let candidates = table.open.values().filter(|state| {
            let mine = reason == Reason::Full || state.address == newcomer;
            mine && !state.leaving.load(Ordering::Relaxed) && state.calls.load(Ordering::Relaxed) == 0
        });
        let ranked = candidates.filter_map(|state| {
            let since = state.since_ns.load(Ordering::Relaxed);
            let rank = match (state.handshaking.load(Ordering::Relaxed), state.called.is_cancelled()) {
                (true, _) if !is_young(since) => 2,
                (false, false) if !is_young(since) => 0,
                (false, true) if reason != Reason::Handshakes => 1,
                _ => return None,
            };
            if reason == Reason::Handshakes && rank != 2 {
                return None;
            }
            let connections = table.counts.get(&state.address).map_or(0, |count| count.connections);
            Some(((Reverse(connections), rank, since), state))
        });
        ranked.min_by_key(|(key, _)| *key).map(|(_, state)| Arc::clone(state))
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Table {
    fn give_up(&mut self, state: &State) {
        self.uncount(state);
        state.leaving.store(true, Ordering::Relaxed);
        self.leaving += 1;
        state.given_up.cancel();
    }

    fn uncount(&mut self, state: &State) {
        if let Some(count) = self.counts.get_mut(&state.address) {
            count.connections -= 1;
            count.handshakes -= usize::from(state.handshaking.load(Ordering::Relaxed));
            if count.connections == 0 {
                self.counts.remove(&state.address);
            }
        }
    }
}

impl Slot {
    /// The handshake is done; the connection is idle until it sends a call.
    pub fn established(&self) {
        let mut table = self.slots.table.lock();
        if self.state.handshaking.swap(false, Ordering::Relaxed)
            && !self.state.leaving.load(Ordering::Relaxed)
            && let Some(count) = table.counts.get_mut(&self.state.address)
        {
            count.handshakes -= 1;
        }
        drop(table);
        self.state.since_ns.store(self.slots.now_ns(), Ordering::Relaxed);
    }

    /// The counter of this connection's calls.
    pub fn calls(&self) -> Calls {
        Calls { slots: Arc::clone(&self.slots), state: Arc::clone(&self.state) }
    }

    /// Whether a call is under way.
    pub fn is_busy(&self) -> bool {
        self.state.calls.load(Ordering::Relaxed) > 0
    }

    /// Ready when the connection has sent a call.
    pub async fn first_call(&self) {
        self.state.called.cancelled().await;
    }

    /// Ready when this connection has to make room.
    pub async fn given_up(&self) {
        self.state.given_up.cancelled().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut table = self.slots.table.lock();
        table.open.remove(&self.id);
        if self.state.leaving.load(Ordering::Relaxed) {
            table.leaving -= 1;
        } else {
            table.uncount(&self.state);
        }
    }
}

/// Counts the calls of one connection.
#[derive(Debug, Clone)]
pub struct Calls {
    slots: Arc<Slots>,
    state: Arc<State>,
}

impl Calls {
    /// Calls under way.
    pub fn open(&self) -> u32 {
        self.state.calls.load(Ordering::Relaxed)
    }

    pub fn begin(&self) -> Call {
        // Checked first, because cancelling takes a lock.
        if !self.state.called.is_cancelled() {
            self.state.called.cancel();
        }
        self.state.calls.fetch_add(1, Ordering::Relaxed);
        Call { slots: Arc::clone(&self.slots), state: Arc::clone(&self.state) }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.state.since_ns.store(self.slots.now_ns(), Ordering::Relaxed);
        self.state.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
