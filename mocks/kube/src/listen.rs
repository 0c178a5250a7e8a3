//! The sockets of the server: accepting connections, TLS, HTTP/1.1 and HTTP/2, and the shutdown.
//!
//! Owns all tasks of the server, which one `TaskTracker` counts. Every accept, handshake, header, body and write has a
//! time limit. This module must not know the API.

mod certificates;
mod frames;
mod socket;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mock_faults::How;
use mock_faults::handle::{Handle, Welcome};
use mock_store::wakers;
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call::App;
use super::cluster::Cluster;
use super::config::Limits;
use super::connection::Connection;
use super::handler;
use super::janitor;
use super::users::Who;
use super::websocket;
pub(crate) use certificates::Certificates;
use frames::Frames;
use socket::{Grave, Metered, Socket};

/// Time for open requests to finish when the server shuts down.
const DRAIN: Duration = Duration::from_secs(2);
/// Time for a client to close its connection after the server refused it with FIN.
const LINGER: Duration = Duration::from_secs(1);
/// The pause after a failed accept, such as when the process has no free descriptors. New connections wait in the
/// kernel meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const EXPIRE_EVERY: Duration = Duration::from_secs(1);
/// Number of bytes that are read at a time from a refused connection.
const DISCARD_BYTES: usize = 4096;

/// A listening endpoint; dropping it stops all its tasks at once.
#[derive(Debug)]
pub(crate) struct Listening {
    address: SocketAddr,
    /// Cancelled to accept no new connections and to finish open requests.
    drain: CancellationToken,
    /// Cancelled to stop the endpoint at once.
    stop: CancellationToken,
    tasks: TaskTracker,
    helpers: usize,
}

pub(crate) struct EndpointIdentity {
    pub address: SocketAddr,
    pub certificates: Arc<Certificates>,
    /// The number of the endpoint; the server's first endpoint has 0.
    pub number: u32,
}

struct Shared {
    app: Arc<App>,
    certificates: Arc<Certificates>,
    number: u32,
    limits: Limits,
    drain: CancellationToken,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// A connection after its handshake, boxed because its future would hold a copy for each call that passes it on.
type Tls = Box<TlsStream<Socket>>;

/// Runs the HTTP/2 streams of a connection as tasks of the server.
#[derive(Clone)]
struct Tracked(TaskTracker);

impl<F> hyper::rt::Executor<F> for Tracked
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
}

impl Listening {
    /// Starts to listen for connections. The first endpoint of a cluster also runs the cluster's own tasks: waking
    /// watches, dropping old history, and the janitor. The future is boxed, so that the server's code is compiled in
    /// this crate only, and not again in each crate that starts a server.
    pub fn start(door: EndpointIdentity, app: App) -> BoxFuture<'static, io::Result<Self>> {
        Box::pin(Self::begin(door, app))
    }

    async fn begin(door: EndpointIdentity, app: App) -> io::Result<Self> {
        let EndpointIdentity { address, certificates, number } = door;
        let first = number == 0;
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (drain, stop, tasks) = (app.ending.clone(), CancellationToken::new(), TaskTracker::new());
        let app = Arc::new(app);
        let shared = Arc::new(Shared {
            app: app.clone(),
            certificates,
            number,
            limits: app.limits,
            drain: drain.clone(),
            stop: stop.clone(),
            tasks: tasks.clone(),
        });
        tasks.spawn(accept(listener, shared));
        if first {
            let cluster = &app.cluster;
            let until = |token: &CancellationToken| token.clone().cancelled_owned();
            tasks.spawn(bounded(wake(cluster.clone()), until(&stop)));
            tasks.spawn(bounded(expire(cluster.clone()), until(&stop)));
            tasks.spawn(bounded(janitor::run(app.clone()), until(&stop)));
        }
        Ok(Self { address, drain, stop, tasks, helpers: if first { HELPERS } else { 0 } })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs an additional task of the cluster until the server ends.
    pub fn help(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(bounded(task, self.stop.clone().cancelled_owned()));
        self.helpers += 1;
    }

    pub async fn shutdown(self) {
        self.drain.cancel();
        self.tasks.close();
        // The helpers never end by themselves, so the drain time is for connections; it ends early when all connections
        // have ended.
        let connections_done = async {
            while self.tasks.len() > self.helpers {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(DRAIN, connections_done).await;
        self.stop.cancel();
        let _ = tokio::time::timeout(DRAIN, self.tasks.wait()).await;
    }
}

/// Number of tasks that run until the server ends: waking watches, dropping old history, and the janitor.
const HELPERS: usize = 3;

impl Drop for Listening {
    fn drop(&mut self) {
        self.drain.cancel();
        self.stop.cancel();
    }
}

async fn bounded(task: impl Future<Output = ()>, end: impl Future<Output = ()>) {
    tokio::select! { () = task => {}, () = end => {} }
}

async fn wake(cluster: Arc<Cluster>) {
    loop {
        cluster.wakers.changed().await;
        let round = cluster.wakers.wake(|| cluster.revision());
        tokio::time::sleep(wakers::rest(round)).await;
    }
}

async fn expire(cluster: Arc<Cluster>) {
    loop {
        tokio::time::sleep(EXPIRE_EVERY).await;
        cluster.expire_history();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(shared.limits.connections_max));
    let mut failing = false;
    loop {
        let next = async {
            let permit = room.clone().acquire_owned().await.expect("the semaphore is never closed");
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            next = next => next,
            () = shared.drain.cancelled() => return,
        };
        match accepted {
            Ok((tcp, _)) => {
                if std::mem::take(&mut failing) {
                    tracing::warn!("connections are accepted again");
                }
                let connection = connection(shared.clone(), tcp, permit);
                let stop = shared.stop.clone().cancelled_owned();
                shared.tasks.spawn(bounded(connection, stop));
            }
            // The client has already left; later clients are not concerned.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "no connection can be accepted; new ones wait, open ones go on");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(shared: Arc<Shared>, tcp: TcpStream, _permit: OwnedSemaphorePermit) {
    // Small events must not wait for more bytes: latency is measured here.
    let _ = tcp.set_nodelay(true);
    let handle = Arc::new(Handle::new(shared.app.cluster.next_connection(), shared.number));
    let welcome = shared.app.cluster.faults.welcome(&handle);
    if let Some(how) = welcome.refused {
        return refuse(tcp, how).await;
    }
    let grave = Grave::default();
    served(&shared, tcp, handle.clone(), welcome, grave.clone()).await;
    // The connection ended while it stood still, for example because a PING could not be sent. Its client must not see
    // that.
    let stands_still = grave.lock().take();
    if let Some(tcp) = stands_still {
        tokio::select! {
            () = handle.thawed() => {}
            () = discard(&tcp) => {}
            () = shared.drain.cancelled() => {}
        }
    }
}

/// Serves a connection until it ends. Handshake and service are boxed separately, because the memory of a handshake is
/// not needed while a watch is open.
async fn served(shared: &Shared, tcp: TcpStream, handle: Arc<Handle>, welcome: Welcome, grave: Grave) {
    let streams_max = welcome.streams_max;
    let Some((tls, connection)) = Box::pin(handshake(shared, tcp, handle, welcome, grave)).await else { return };
    if connection.http_version == 2 {
        let streams_max = streams_max.map_or(shared.limits.streams_max, |(by, streams)| {
            let faults = &shared.app.cluster.faults;
            faults.on_connection(&connection.handle, by, &format!("{streams} streams at a time allowed"), false);
            streams
        });
        Box::pin(serve_http2(shared, tls, &connection, streams_max)).await;
    } else {
        Box::pin(serve_http1(shared, tls, &connection)).await;
    }
}

/// The TLS handshake of a connection; `None` if it failed or took too long.
async fn handshake(
    shared: &Shared,
    tcp: TcpStream,
    handle: Arc<Handle>,
    welcome: Welcome,
    grave: Grave,
) -> Option<(Tls, Arc<Connection>)> {
    let reset = Arc::new(AtomicBool::new(false));
    let timeout = shared.limits.write_timeout;
    let faults = shared.app.cluster.faults.clone();
    let socket = Socket::new(tcp, reset.clone(), handle.clone(), faults, grave, timeout);
    let shown = shared.certificates.shown(welcome.certificate.map(|(_, kind)| kind));
    let accept = TlsAcceptor::from(shown).accept(socket);
    let tls = tokio::time::timeout(shared.limits.handshake_timeout, accept).await.ok()?.ok()?;
    let session = tls.get_ref().1;
    let http_version = if session.alpn_protocol() == Some(b"h2") { 2 } else { 1 };
    handle.speaks(http_version);
    let certificate = session.peer_certificates().and_then(<[_]>::first);
    let connection = Arc::new(Connection {
        id: handle.id,
        http_version,
        peer: certificate.and_then(Who::from_certificate).map(Arc::new),
        severed: CancellationToken::new(),
        owner: OnceLock::new(),
        flushes: handle.flushes.clone(),
        reset,
        handle,
        inside: false,
        websocket: Mutex::new(None),
    });
    Some((Box::new(tls), connection))
}

/// Refuses a connection that the kernel has already accepted, because a program cannot refuse a connection earlier.
async fn refuse(mut tcp: TcpStream, how: How) {
    match how {
        How::Reset => {
            let _ = tcp.set_zero_linger();
        }
        // The client's bytes are read for a moment, because closing with unread data would send a reset.
        How::Close => {
            if tcp.shutdown().await.is_ok() {
                let _ = tokio::time::timeout(LINGER, discard(&tcp)).await;
            }
        }
        // The connection is never served, even after the fault: it hangs until its client gives up.
        How::Hang => discard(&tcp).await,
    }
}

/// Reads and discards bytes until the client closes the connection.
async fn discard(tcp: &TcpStream) {
    // On the heap, because the future of every connection has room for this function's variables.
    let mut buffer = vec![0; DISCARD_BYTES];
    loop {
        if tcp.readable().await.is_err() {
            return;
        }
        match tcp.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Ends a connection gracefully when the server shuts down, unless a fault freezes the connection.
async fn ended<E>(serving: impl Future<Output = Result<(), E>>, handle: &Handle) -> Result<(), E> {
    if handle.is_frozen() { Ok(()) } else { serving.await }
}

async fn serve_http1(shared: &Shared, tls: Tls, connection: &Arc<Connection>) {
    let io = TokioIo::new(Metered::new(tls, connection.flushes.clone()));
    let service = service_fn(|request| {
        let (app, connection) = (shared.app.clone(), connection.clone());
        // Boxed, because hyper reserves the room while the connection exists: 7 KiB for each watch that is only a body.
        Box::pin(handler::handle(app, connection, request))
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(shared.limits.header_timeout).half_close(false);
    let mut serving = std::pin::pin!(builder.serve_connection(io, service).with_upgrades());
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = shared.drain.cancelled() => {
            serving.as_mut().graceful_shutdown();
            ended(serving, &connection.handle).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(connection = connection.id, %error, "connection ended");
    }
    let opened = connection.websocket.lock().take();
    if let Some(opened) = opened {
        // Boxed, because most connections never become a WebSocket.
        Box::pin(websocket::serve(opened)).await;
    }
}

async fn serve_http2(shared: &Shared, tls: Tls, connection: &Arc<Connection>, streams_max: u32) {
    let frames = Frames::new(tls, connection.handle.clone(), shared.app.cluster.faults.clone());
    let io = TokioIo::new(Metered::new(frames, connection.flushes.clone()));
    let app = shared.app.clone();
    let of_service = connection.clone();
    let service = service_fn(move |request| {
        let (app, connection) = (app.clone(), of_service.clone());
        async move { handler::handle(app, connection, request).await }
    });
    let mut builder = http2::Builder::new(Tracked(shared.tasks.clone()));
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(streams_max)
        // Large enough for the biggest object in flight, small enough to notice a slow reader.
        .initial_stream_window_size(1024 * 1024)
        .initial_connection_window_size(2 * 1024 * 1024)
        .max_send_buf_size(256 * 1024)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(15));
    let mut serving = std::pin::pin!(builder.serve_connection(io, service));
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = connection.severed.cancelled() => return,
        () = shared.drain.cancelled() => {
            serving.as_mut().graceful_shutdown();
            ended(serving, &connection.handle).await
        }
        // The graceful GOAWAY of a real server: two frames, and the end after the last stream.
        () = connection.handle.drains() => {
            serving.as_mut().graceful_shutdown();
            tokio::select! {
                ended = serving.as_mut() => ended,
                () = shared.drain.cancelled() => ended(serving, &connection.handle).await,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(connection = connection.id, %error, "connection ended");
    }
}
