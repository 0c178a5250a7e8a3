//! A mock OCI registry: distribution specification v1.1 over HTTP or HTTPS, in memory, with faults.
//!
//! Owns the server and its limits. Real clients (skopeo, podman, docker, containerd) pull from it and push to it
//! unmodified. It must not know runs: scenarios seed it, give it faults, and read its counters.
//!
//! Modules, from the outside in: `connection` (sockets), `serve` (one request), `shared` (common parts of requests),
//! `pull` and `push` (endpoints), `auth`, `limit`, `faults`, `requests` (around them), and without any I/O `route`,
//! `store`, `uploads`, `manifest`, `digest`, `population`.

mod auth;
mod body;
mod connection;
mod digest;
mod faults;
mod limit;
mod manifest;
mod population;
mod pull;
mod push;
mod refusal;
mod requests;
mod route;
mod serve;
mod shared;
mod store;
mod uploads;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use serve::Caller;
use shared::{Shared, State};

pub use auth::{Auth, User};
pub use digest::{Digest, NotADigest};
pub use faults::Faults;
pub use limit::RateLimit;
pub use population::{Error as PopulationError, Form, HOLDER, Image, ImageKind, Keys, Population, Signing};
pub use requests::{Request, Requests};
pub use route::Kind;

/// Limit of all stored bytes, uploads included. A seeded image is about 5 KiB, so this is room for tens of thousands.
const BYTES_MAX: u64 = 256 << 20;
/// Uploads at once: a client pushes a handful of layers in parallel.
const UPLOADS_MAX: usize = 128;
/// `distribution` keeps an abandoned upload for a week; memory costs more than disk.
const UPLOAD_IDLE: Duration = Duration::from_mins(10);
/// Connections at once; more wait in the listen queue.
const CONNECTIONS_MAX: usize = 2_048;
/// Requests that the ring remembers.
const RECENT_MAX: usize = 4_096;

/// The configuration of a registry.
#[derive(Debug, Clone)]
pub struct Config {
    /// The listening address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Zero of all times.
    pub epoch: Instant,
    /// The server certificate; without it the registry speaks plain HTTP/1.1.
    pub tls: Option<mock_pki::Pair>,
    /// The `host:port` of this registry in references; if absent, the listening address.
    pub advertise: Option<String>,
    /// The required authentication.
    pub auth: Auth,
    /// Accepted requests per second; `None` means no limit.
    pub rate_limit: Option<RateLimit>,
    /// Whether manifests, tags and blobs can be deleted; otherwise deletions are refused with 405.
    pub deletes: bool,
    /// Most bytes that the registry holds, unfinished uploads included.
    pub max_bytes: u64,
    /// Most unfinished uploads.
    pub max_uploads: usize,
    /// Most bytes of one upload.
    pub max_upload_bytes: u64,
    /// How long an upload may stay idle.
    pub upload_idle: Duration,
    pub max_connections: usize,
    /// Most requests that [`Server::recent`] remembers.
    pub max_recent: usize,
    /// Decides the probabilities of faults.
    pub seed: u64,
    /// Whether it listens at a second address without faults, limits and authentication, for health checks by the
    /// harness; see [`Server::own_address`].
    pub own_door: bool,
}

/// A running registry. Dropping it stops it without waiting for open requests.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    own_address: Option<SocketAddr>,
    accepting: Vec<JoinHandle<()>>,
    stop: DropGuard,
}

/// A registry that could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is in use or does not belong to this machine.
    #[error("failed to listen on {address} for the registry")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    /// The certificate cannot be served with.
    #[error(transparent)]
    Tls(#[from] mock_pki::Error),
}

impl Config {
    /// A plain, anonymous registry on a free loopback port, counting time from now.
    pub fn new() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            epoch: Instant::now(),
            tls: None,
            advertise: None,
            auth: Auth::Anonymous,
            rate_limit: None,
            deletes: true,
            max_bytes: BYTES_MAX,
            max_uploads: UPLOADS_MAX,
            max_upload_bytes: BYTES_MAX,
            upload_idle: UPLOAD_IDLE,
            max_connections: CONNECTIONS_MAX,
            max_recent: RECENT_MAX,
            seed: 0,
            own_door: false,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// Listens and serves until [`shutdown`](Self::shutdown).
    pub async fn start(config: Config) -> Result<Self, Error> {
        let tls =
            config.tls.as_ref().map(|pair| mock_pki::server_config(pair, None)).transpose()?.map(TlsAcceptor::from);
        let listen_failed = |source| Error::Listen { address: config.listen, source };
        let listener = connection::bind(config.listen).await.map_err(listen_failed)?;
        let address = listener.local_addr().map_err(listen_failed)?;
        let host = config.advertise.unwrap_or_else(|| reachable(address));
        let now = config.epoch.elapsed();
        let limits = uploads::Limits {
            count: config.max_uploads,
            bytes_each: config.max_upload_bytes,
            idle: config.upload_idle,
        };
        let state =
            State { store: store::Store::new(config.max_bytes), uploads: uploads::Uploads::new(limits), bodies: 0 };
        let shared = Arc::new(Shared {
            epoch: config.epoch,
            secure: tls.is_some(),
            deletes: config.deletes,
            state: Mutex::new(state),
            authenticator: auth::Authenticator::new(config.auth, rand::random()),
            bucket: Mutex::new(limit::Bucket::new(config.rate_limit, now)),
            faults: Faults::new(config.epoch, config.seed),
            log: Mutex::new(requests::Log::new(config.max_recent)),
            host,
            on_move: OnceLock::new(),
        });
        let stop = CancellationToken::new();
        let door = |listener, tls, caller| connection::Door {
            listener,
            tls,
            shared: shared.clone(),
            caller,
            connections_max: config.max_connections,
            stop: stop.clone(),
        };
        let mut accepting = vec![tokio::spawn(door(listener, tls, Caller::Subject).run())];
        let mut own_address = None;
        if config.own_door {
            let own = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let own_failed = |source| Error::Listen { address: own, source };
            let listener = connection::bind(own).await.map_err(own_failed)?;
            own_address = Some(listener.local_addr().map_err(own_failed)?);
            accepting.push(tokio::spawn(door(listener, None, Caller::Harness).run()));
        }
        Ok(Self { shared, address, own_address, accepting, stop: stop.drop_guard() })
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The second address, in plain HTTP, if there is one.
    pub const fn own_address(&self) -> Option<SocketAddr> {
        self.own_address
    }

    /// The `host:port` of this registry in references.
    pub fn host(&self) -> &str {
        &self.shared.host
    }

    /// Sets a callback for every tag that moves, called before clients can read the change: the reference and its new
    /// digest. Only the first call has an effect.
    pub fn on_move(&self, told: impl Fn(&str, &str) + Send + Sync + 'static) {
        let _ = self.shared.on_move.set(Box::new(told));
    }

    /// Stores a population; the same seed gives the same names and digests.
    pub fn seed(&self, population: &Population) -> Result<Vec<Image>, PopulationError> {
        population::seed(&mut self.shared.state.lock().store, &self.shared.host, population, None)
    }

    /// Stores a population with its signatures. Keys and signatures are fresh; the images, and how each of them is
    /// signed, come from the seed.
    pub fn seed_signed(&self, population: &Population, keys: &Keys) -> Result<Vec<Image>, PopulationError> {
        population::seed(&mut self.shared.state.lock().store, &self.shared.host, population, Some(keys))
    }

    /// Stores images that attack verifiers of signatures: each has twenty bundles of 8 MiB that sign nothing.
    pub fn seed_heavy(&self, count: usize) -> Result<Vec<Image>, PopulationError> {
        population::seed_heavy(&mut self.shared.state.lock().store, &self.shared.host, count, true)
    }

    /// Points a tag (`host:port/name:tag`, or `name:tag`) to a rebuilt image; returns the new digest.
    pub fn move_tag(&self, reference: &str) -> Result<String, PopulationError> {
        let local =
            reference.strip_prefix(&self.shared.host).and_then(|rest| rest.strip_prefix('/')).unwrap_or(reference);
        let no_such_tag = || PopulationError::NoSuchTag { reference: reference.to_owned() };
        let (name, tag) = local.split_once(':').ok_or_else(no_such_tag)?;
        self.shared.move_tag(name, tag).map(|digest| digest.to_string())
    }

    /// Counters since the start.
    pub fn requests(&self) -> Requests {
        self.shared.log.lock().counters()
    }

    /// The latest requests, oldest first.
    pub fn recent(&self) -> Vec<Request> {
        self.shared.log.lock().recent()
    }

    /// The faults of this registry.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Bytes held now, unfinished uploads included.
    pub fn used_bytes(&self) -> u64 {
        let state = self.shared.state.lock();
        state.store.used_bytes() + state.uploads.bytes()
    }

    /// Stops accepting, gives open requests two seconds, and ends.
    pub async fn shutdown(self) {
        // Otherwise a hung request would hold its connection for the whole drain.
        self.shared.faults.end_all();
        drop(self.stop);
        for accepting in self.accepting {
            let _ = accepting.await;
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("faults", &self.faults).finish_non_exhaustive()
    }
}

/// An address that a client on this machine can use: the unspecified one cannot be connected to on all systems.
fn reachable(address: SocketAddr) -> String {
    if address.ip().is_unspecified() { format!("127.0.0.1:{}", address.port()) } else { address.to_string() }
}
