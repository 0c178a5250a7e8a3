//! Slots for the connections of one listener, and the choice of the connection to close if all slots are taken.
//!
//! A new connection always gets a slot while some connection is idle. Connections that never sent a call close first;
//! then the longest idle connection of the peer with most connections. The code does no I/O; it only signals the chosen
//! connection to close.

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

/// A younger connection that is in its handshake or has sent no call is never closed for a new connection, because it
/// may belong to an honest client.
const YOUNG: Duration = Duration::from_secs(1);
/// Maximum number of connections that got a GOAWAY or `connection: close` and are still open. While this many
/// connections are closing, new connections are refused.
const LEAVING_MAX: usize = 64;

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of connections of all network addresses together.
    pub connections: usize,
    /// Maximum number of connections of one network address.
    pub connections_per_peer: usize,
    /// Maximum number of connections of one network address that are still in the TLS handshake.
    pub handshakes_per_peer: usize,
}

/// Why a new connection was refused or an older connection was closed. The names of the variants are label values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Full,
    /// The peer already has the maximum number of connections.
    Peer,
    /// The peer already has the maximum number of unfinished handshakes.
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
    /// Cancelled at the first call.
    called: CancellationToken,
    calls: AtomicU32,
    /// Start of the connection's present state, handshake or idle, in nanoseconds since the listener started.
    /// Milliseconds would give several connections equal times, so the choice of the oldest connection would be
    /// arbitrary.
    since_ns: AtomicU64,
    given_up: CancellationToken,
}

/// The slot of one connection; the slot is free again on drop.
#[derive(Debug)]
pub struct Slot {
    id: u64,
    slots: Arc<Slots>,
    state: Arc<State>,
}

#[derive(Debug)]
pub struct Call {
    slots: Arc<Slots>,
    state: Arc<State>,
}

impl Slots {
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, born: Instant::now(), table: Mutex::default() })
    }

    /// A slot for a connection from `address`. If another connection must close for the new connection, the second
    /// value is the reason.
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

    #[cfg(test)]
    pub fn open(&self) -> usize {
        let table = self.table.lock();
        table.open.len() - table.leaving
    }

    /// Chooses the connection to close for a new connection. The search for that connection visits all connections, but
    /// runs only if no slot is free.
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
    /// Records the end of the TLS handshake. After the handshake, the connection is idle until its first call.
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

    pub fn calls(&self) -> Calls {
        Calls { slots: Arc::clone(&self.slots), state: Arc::clone(&self.state) }
    }

    /// Whether a call is under way.
    pub fn is_busy(&self) -> bool {
        self.state.calls.load(Ordering::Relaxed) > 0
    }

    /// Ready when the connection has sent its first call.
    pub async fn first_call(&self) {
        self.state.called.cancelled().await;
    }

    /// Ready when this connection should close for a new connection.
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
