//! The HTTP clients of hosts, each with its pool of connections. The key of a client contains all settings in which
//! clients may differ.
//!
//! The number of clients is limited, because images name hosts, so any user could create clients without end.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use service_core::share::Share;
use service_core::wire::{Client, Limits, Origin, Protocol, Proxies, Reach};

/// Maximum number of hosts with a client at one time.
const CLIENTS_MAX: usize = 64;
/// Maximum numbers of open requests to one host and of idle connections to it. With 64 open requests, a hundred images
/// take two round trips.
const LIMITS: Limits = Limits { open_max: 64, idle_max: 8 };

/// The key of a client. Clients with different permitted addresses or trust must not share connections.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub plain: bool,
    pub host: String,
    pub port: u16,
    pub reach: Reach,
    /// Index of the registry whose authorities are trusted; `None` for the system's authorities.
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
    /// A counter of all uses, which shows the least recently used client.
    uses: u64,
}

impl Pool {
    pub fn new(proxies: Proxies) -> Self {
        Self { proxies, held: Arc::clone(Share::default().answers()), clients: Mutex::default() }
    }

    /// Limits the memory of all answers that are being read to `held`, which is enough for a few of the largest
    /// manifests. Manifests of usual size need no reservation.
    pub fn holding(&mut self, held: Arc<Semaphore>) {
        self.held = held;
    }

    /// The client for `key`; a new client sends its requests to `origin`.
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

    /// Drops all clients that trust the authorities of entry `index`. Open requests of the dropped clients may finish.
    pub fn forget(&self, index: usize) {
        self.clients.lock().known.retain(|key, _| key.trust != Some(index));
    }
}
