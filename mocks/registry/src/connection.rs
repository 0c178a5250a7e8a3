//! Connections of clients: accepting, TLS, HTTP/1.1 and HTTP/2, limits and closing.
//!
//! Owns every deadline of a connection. If a connection exceeds a limit, only that connection is closed.

mod stall;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use mock_faults::How;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::faults;
use super::serve::{Caller, answer};
use super::shared::Shared;
use stall::Impatient;

/// Deadline of a TLS handshake, which normally takes one or two round trips.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);
/// The deadline for the headers of a request; hyper applies the same deadline to an idle keep-alive connection. The
/// deadline is longer than the 90 s for which Go's clients keep an idle connection.
const HEAD_DEADLINE: Duration = Duration::from_mins(2);
/// How long a client may leave sent bytes unread before its connection is closed.
const WRITE_STALL: Duration = Duration::from_mins(1);
/// Time for open requests to finish when the registry stops.
const DRAIN_DEADLINE: Duration = Duration::from_secs(2);
/// The pause after an accept that failed because no file descriptor was free. A pause of this length keeps retries from
/// using a whole CPU, and clients notice no delay.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const STREAMS_PER_CONNECTION: u32 = 250;
/// The HTTP/2 window of a stream in bytes: one blob of a seeded image fits without a window update.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// The listening socket and the settings of its connections.
pub(super) struct Socket {
    pub(super) listener: TcpListener,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) shared: Arc<Shared>,
    /// The clients of this socket: the subject, or the harness.
    pub(super) caller: Caller,
    pub(super) connections_max: usize,
    pub(super) stop: CancellationToken,
}

impl Socket {
    /// Accepts connections until the registry stops, then lets open requests end. The future is boxed, so that the
    /// registry's code is compiled in this crate only.
    pub(super) fn run(self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.accepting())
    }

    async fn accepting(self) {
        let permits = Arc::new(Semaphore::new(self.connections_max));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                () = self.stop.cancelled() => break,
                accepted = self.accept(&permits) => accepted,
            };
            if let Some((stream, peer, permit)) = accepted {
                let (tls, shared, stop) = (self.tls.clone(), self.shared.clone(), self.stop.clone());
                let caller = self.caller;
                connections.spawn(async move {
                    let _permit = permit;
                    if caller == Caller::Harness {
                        serve(stream, tls, shared, caller, stop).await;
                    } else {
                        welcome(stream, peer, tls, shared, stop).await;
                    }
                });
            }
        }
        drop(self.listener);
        let drained = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(DRAIN_DEADLINE, drained).await;
        connections.shutdown().await;
    }

    /// Accepts the next connection as soon as the limit of connections allows one; `None` if accepting failed.
    async fn accept(&self, permits: &Arc<Semaphore>) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
        let permit = permits.clone().acquire_owned().await.ok()?;
        match self.listener.accept().await {
            Ok((stream, peer)) => Some((stream, peer, permit)),
            Err(error) => {
                tracing::warn!(%error, "registry failed to accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                None
            }
        }
    }
}

/// Opens a listening socket; the caller adds context to the error.
pub(super) async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Serves a connection, unless a fault refuses or ends the connection.
async fn welcome(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let line = match shared.faults.admit(peer) {
        faults::Acceptance::Open(line) => line,
        faults::Acceptance::Shut(how) => {
            if how == How::Reset {
                let _ = stream.set_zero_linger();
            }
            return;
        }
        faults::Acceptance::Silent(over) => {
            tokio::select! {
                () = over.cancelled() => {}
                () = stop.cancelled() => {}
            }
            return;
        }
    };
    // Answers are small and whole; Nagle's algorithm only delays them.
    let _ = stream.set_nodelay(true);
    let mut serving = std::pin::pin!(serve(line.wire(stream), tls, shared.clone(), Caller::Subject, stop.clone()));
    tokio::select! {
        biased;
        () = line.cut() => {
            // If the fault wants it, the connection stands still before it ends.
            tokio::select! {
                () = line.released() => {}
                () = stop.cancelled() => {}
            }
        }
        () = &mut serving => {}
    }
    shared.faults.closed(line.id);
}

async fn serve<S>(stream: S, tls: Option<TlsAcceptor>, shared: Arc<Shared>, caller: Caller, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(tls) = tls else { return serve_http1(stream, shared, caller, stop).await };
    match tokio::time::timeout(HANDSHAKE_DEADLINE, tls.accept(stream)).await {
        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
            serve_http2(stream, shared, caller, stop).await;
        }
        Ok(Ok(stream)) => serve_http1(stream, shared, caller, stop).await,
        Ok(Err(error)) => tracing::debug!(%error, "registry handshake failed"),
        Err(_elapsed) => tracing::debug!("registry handshake took too long"),
    }
}

async fn serve_http1<S>(stream: S, shared: Arc<Shared>, caller: Caller, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(Impatient::new(stream, WRITE_STALL));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .serve_connection(io, service_fn(move |request| answer(shared.clone(), caller, request)));
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "registry connection ended");
    }
}

async fn serve_http2<S>(stream: S, shared: Arc<Shared>, caller: Caller, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(Impatient::new(stream, WRITE_STALL));
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(HEAD_DEADLINE)
        .serve_connection(io, service_fn(move |request| answer(shared.clone(), caller, request)));
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "registry connection ended");
    }
}
