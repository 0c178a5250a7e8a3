//! A mock OCI registry: distribution specification v1.1 over HTTP or HTTPS, in memory, with faults.
//!
//! Owns the server and its limits. Real clients (skopeo, podman, docker, containerd) pull from the registry and push to
//! it unmodified. This crate does not know runs: a scenario stores images in the registry, begins faults, and reads
//! counters.
//!
//! Modules with I/O: `connection` (sockets), `serve` (one request), `shared` (state that all requests share), `pull`
//! and `push` (endpoints). Modules for every request: `auth`, `limit`, `faults`, `requests`. Modules without I/O:
//! `route`, `store`, `uploads`, `manifest`, `digest`, `population`.

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

/// Default limit of all stored bytes, uploads included. A seeded image has about 5 KiB, so tens of thousands of images
/// fit.
const BYTES_MAX: u64 = 256 << 20;
/// Default limit of simultaneous uploads; one client pushes a handful of layers in parallel.
const UPLOADS_MAX: usize = 128;
/// Default time after which an idle upload is removed. The time is short because this registry keeps uploads in memory;
/// the registry `distribution` keeps an upload for a week.
const UPLOAD_IDLE: Duration = Duration::from_mins(10);
/// Limit of simultaneous connections; further connections wait in the listen queue.
const CONNECTIONS_MAX: usize = 2_048;
/// Default number of requests that [`Server::recent`] returns.
const RECENT_MAX: usize = 4_096;

#[derive(Debug, Clone)]
pub struct Config {
    /// The listening address; port 0 takes a free port.
    pub listen: SocketAddr,
    /// The zero point of all times that the registry reports.
    pub epoch: Instant,
    /// The server certificate; without it the registry speaks plain HTTP/1.1.
    pub tls: Option<mock_pki::Pair>,
    /// The `host:port` of this registry in references; if absent, the listening address.
    pub advertise: Option<String>,
    /// The authentication that clients must use.
    pub auth: Auth,
    /// The limit of accepted requests per second; `None` means no limit.
    pub rate_limit: Option<RateLimit>,
    /// Whether manifests, tags and blobs can be deleted; otherwise deletions are refused with 405.
    pub deletes: bool,
    /// Limit of stored bytes, unfinished uploads included.
    pub max_bytes: u64,
    pub max_uploads: usize,
    pub max_upload_bytes: u64,
    /// How long an upload may stay idle before it is removed.
    pub upload_idle: Duration,
    pub max_connections: usize,
    /// Limit of the requests that [`Server::recent`] returns.
    pub max_recent: usize,
    /// The seed of the faults' random choices.
    pub seed: u64,
    /// Whether the registry also listens at a second address without faults, limits and authentication. The harness
    /// checks there whether the registry is healthy; see [`Server::own_address`].
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

/// Why the registry could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The listening address is in use or does not belong to this machine.
    #[error("failed to listen on {address} for the registry")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    /// The TLS certificate is unusable.
    #[error(transparent)]
    Tls(#[from] mock_pki::Error),
}

impl Config {
    /// The configuration of a registry without TLS and authentication on a free loopback port, whose times count from
    /// now.
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
        let door = |listener, tls, caller| connection::Socket {
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

    /// The second address, without faults and in plain HTTP; see [`Config::own_door`].
    pub const fn own_address(&self) -> Option<SocketAddr> {
        self.own_address
    }

    /// The `host:port` of this registry in references.
    pub fn host(&self) -> &str {
        &self.shared.host
    }

    /// Sets a callback for every tag that moves. The callback gets the reference and its new digest before clients can
    /// read the change. Only the first call has an effect.
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

    /// Stores images that attack signature verifiers: each image has twenty bundles of 8 MiB that sign nothing.
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

    /// Counters of requests since the registry started.
    pub fn requests(&self) -> Requests {
        self.shared.log.lock().counters()
    }

    /// The latest requests, oldest first.
    pub fn recent(&self) -> Vec<Request> {
        self.shared.log.lock().recent()
    }

    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Bytes that the registry stores now, unfinished uploads included.
    pub fn used_bytes(&self) -> u64 {
        let state = self.shared.state.lock();
        state.store.used_bytes() + state.uploads.bytes()
    }

    /// Stops accepting connections, waits up to two seconds for open requests, and ends.
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

/// The address at which a client on this machine reaches the registry. If the registry listens at the unspecified
/// address, the result is a loopback address.
fn reachable(address: SocketAddr) -> String {
    if address.ip().is_unspecified() { format!("127.0.0.1:{}", address.port()) } else { address.to_string() }
}
