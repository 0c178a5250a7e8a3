//! The pooled clients, keyed by everything that distinguishes two of them.
//!
//! Their number is bounded: images name hosts, so outsiders could make it grow without a limit.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use service_core::share::Share;
use service_core::wire::{Client, Limits, Origin, Protocol, Proxies, Reach};

/// Hosts with a client at one time.
const CLIENTS_MAX: usize = 64;
/// Requests in flight to one host, and idle connections kept: a burst of a hundred distinct images stays one round
/// trip.
const LIMITS: Limits = Limits { open_max: 64, idle_max: 8 };

/// The key of a client. Connections with another reach or trust must not be shared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub plain: bool,
    pub host: String,
    pub port: u16,
    pub reach: Reach,
    /// Index of the registry whose authorities are trusted; `None` for the system's.
    pub trust: Option<usize>,
}

pub(super) struct Pool {
    proxies: Proxies,
    held: Arc<Semaphore>,
    clients: Mutex<Clients>,
}

#[derive(Default)]
struct Clients {
    known: BTreeMap<Key, (Arc<Client>, u64)>,
    /// Counter of uses, to find the least recently used client.
    uses: u64,
}

impl Pool {
    pub fn new(proxies: Proxies) -> Self {
        Self { proxies, held: Arc::clone(Share::default().answers()), clients: Mutex::default() }
    }

    /// Limits the memory of all registries' answers under way to `held`: some of the largest manifests; common ones fit
    /// their free share.
    pub fn holding(&mut self, held: Arc<Semaphore>) {
        self.held = held;
    }

    /// The client of `key`; a new one sends to `origin`.
    pub fn client(&self, key: Key, origin: impl FnOnce() -> Origin) -> Arc<Client> {
        let mut clients = self.clients.lock();
        clients.uses += 1;
        let uses = clients.uses;
        if let Some((client, used)) = clients.known.get_mut(&key) {
            *used = uses;
            return Arc::clone(client);
        }
        if clients.known.len() >= CLIENTS_MAX {
            // It is made again when needed, and its users keep their own handle.
            let oldest = clients.known.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| clients.known.remove(&oldest));
        }
        let origin = origin();
        let proxy = self.proxies.proxy(&origin);
        let client = Client::new(origin, Protocol::Http1, LIMITS).within(key.reach).through(proxy);
        let client = Arc::new(client.holding(Arc::clone(&self.held)));
        clients.known.insert(key, (Arc::clone(&client), uses));
        client
    }

    /// Drops every client that trusts the authorities of entry `index`; present users may finish.
    pub fn forget(&self, index: usize) {
        self.clients.lock().known.retain(|key, _| key.trust != Some(index));
    }
}
