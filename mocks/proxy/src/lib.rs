//! A TCP proxy between the subject and any control plane, with network faults.
//!
//! Owns the listening socket, the connections and their tasks. The proxy moves bytes and knows no protocol: no TLS,
//! HTTP or Kubernetes. The proxy passes on back-pressure and half-closed directions. The proxy reads only bytes that it
//! can soon write, so the memory of a connection is bounded. The proxy works with any control plane, even one that
//! gives no access to its machine.
//!
//! An idle or blocked connection deliberately has no deadline. A watch may be quiet for an hour, and a proxy that
//! closed the watch would add a fault. The number of connections is bounded, and all connections end with the proxy.

mod connection;
mod faults;
mod link;
pub mod netns;
mod plan;
mod pump;
mod shape;
mod wire;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use faults::{Counts, Faults};
use netns::Namespace;
use plan::{Acceptance, Refusal};
use wire::Wire;

/// Maximum number of simultaneous connections; further connections wait in the kernel. A client that leaks one
/// connection a second for an hour stays below this limit.
const CONNECTIONS_MAX: usize = 4096;
/// The time that the upstream, which is on this machine or near it, has to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after an accept that failed, for example because no file descriptor was free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The time that tasks have to end after the request to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Why the proxy could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The listening address is in use, or the proxy has no permission for it.
    #[error("failed to listen on {address} for the fault proxy")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    /// The proxy could not enter the network namespace.
    #[error("failed to listen inside the network namespace")]
    Namespace(#[from] netns::Error),
}

#[derive(Debug)]
pub struct Config {
    /// The listening address; port 0 takes a free port. With a namespace only the port counts.
    pub listen: SocketAddr,
    /// The server to which the proxy forwards connections.
    pub upstream: SocketAddr,
    /// The instant from which the times of hits count.
    pub epoch: Instant,
    /// The seed that decides jitter and probabilities.
    pub seed: u64,
    /// The network namespace in which the proxy listens. Only with a namespace can packets be lost (`net-loss`).
    pub namespace: Option<Namespace>,
}

/// A running proxy. Dropping it ends every connection at once.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    faults: Arc<Faults>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

struct Shared {
    upstream: SocketAddr,
    faults: Arc<Faults>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Config {
    /// The configuration of a proxy on a free port of 127.0.0.1, whose times count from now.
    pub fn new(upstream: SocketAddr) -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            upstream,
            epoch: Instant::now(),
            seed: 0,
            namespace: None,
        }
    }
}

impl Proxy {
    /// Starts the proxy, which connects to the upstream only when a client connects.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let address = config.listen;
        let failed = |source| Error::Listen { address, source };
        let listener = match &config.namespace {
            Some(namespace) => TcpListener::from_std(namespace.listen(address.port())?).map_err(failed)?,
            None => TcpListener::bind(address).await.map_err(failed)?,
        };
        let address = listener.local_addr().map_err(failed)?;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let faults = Faults::new(config.epoch, config.seed, config.namespace, tasks.clone(), stop.clone());
        let shared =
            Shared { upstream: config.upstream, faults: faults.clone(), stop: stop.clone(), tasks: tasks.clone() };
        tasks.spawn(accept(listener, Arc::new(shared)));
        Ok(Self { address, faults, stop, tasks })
    }

    /// The listening address, with the real port if the configured port is 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The network faults (`net-…`) of this proxy.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    pub fn counts(&self) -> Counts {
        self.faults.counts()
    }

    /// Ends every connection, and waits until the proxy's tasks have ended.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(STOP_TIMEOUT, self.tasks.wait()).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.cancel();
        self.tasks.close();
    }
}

/// Accepts connections. The future is boxed, so that the proxy's code is compiled in this crate only.
fn accept(listener: TcpListener, shared: Arc<Shared>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(accepting(listener, shared))
}

async fn accepting(listener: TcpListener, shared: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let next = async {
            let permit = room.clone().acquire_owned().await.expect("the semaphore is never closed");
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            next = next => next,
            () = shared.stop.cancelled() => return,
        };
        match accepted {
            Ok((tcp, peer)) => {
                let connection = through(shared.clone(), tcp, peer, permit);
                let stop = shared.stop.clone();
                shared.tasks.spawn(async move {
                    tokio::select! { () = connection => {}, () = stop.cancelled() => {} }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the fault proxy failed to accept");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Handles one connection of the subject from its acceptance to its end.
async fn through(shared: Arc<Shared>, tcp: TcpStream, peer: SocketAddr, _permit: OwnedSemaphorePermit) {
    let wire = match shared.faults.admit(peer) {
        Acceptance::Open(link) => Wire::enlist(&shared.faults, link),
        Acceptance::Shut(how) => return refuse(tcp, how).await,
    };
    let upstream = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(shared.upstream)).await;
    let Ok(Ok(upstream)) = upstream else {
        tracing::warn!(upstream = %shared.upstream, "the fault proxy failed to reach its upstream");
        let _ = tcp.set_zero_linger();
        return;
    };
    connection::serve(&wire, tcp, upstream).await;
}

/// Refuses a connection after its acceptance, because user space cannot refuse earlier.
async fn refuse(tcp: TcpStream, how: Refusal) {
    match how {
        Refusal::Reset => {
            let _ = tcp.set_zero_linger();
        }
        Refusal::Close => connection::close(tcp).await,
        // The connection is never served, even after the fault: it hangs until its client gives up.
        Refusal::Hang => connection::discard(&tcp).await,
    }
}
