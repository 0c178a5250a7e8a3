//! One listener: accept, handshake, HTTP/1.1 or HTTP/2, and an orderly end.
//!
//! Owns its connections: they live in one set, bounded in number, and end with it. The handler only sees requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Version, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;

use super::drain::{Drain, Phase};

/// Open connections of one listener. kube-apiserver keeps 25 idle ones for a webhook; this serves forty of them.
const CONNECTIONS_MAX: usize = 1024;
/// A handshake that takes longer is not a kube-apiserver, which itself gives up after 10 s.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// hyper closes a connection that is idle for longer than it waits for a head. kube-apiserver keeps idle ones for 90 s;
/// closing earlier makes it write into a closed connection.
const IDLE_MAX: Duration = Duration::from_mins(2);
/// After the signal new connections are still taken for so long: endpoints learn of the end with a delay.
const LAME_DUCK_MIN: Duration = Duration::from_secs(3);
/// Pause after a failed accept, which is almost always a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Most that an HTTP/1.1 connection keeps as its read buffer, which hyper would let grow to 400 KiB with the largest body it has
/// ever read. A TLS record has 16 KiB, so no read brings more; a head must fit, and kube-apiserver's has less than 2 KiB.
const HTTP1_BUFFER_BYTES: usize = 16 << 10;
/// Streams of one HTTP/2 connection, as kube-apiserver itself limits them.
const HTTP2_STREAMS_MAX: u32 = 250;
/// Flow-control windows of a stream: an ordinary review arrives without waiting for an update.
const HTTP2_WINDOW_BYTES: u32 = 256 << 10;
/// A PING after so long without a frame, and so long for its answer.
const HTTP2_PING: Duration = Duration::from_secs(30);

/// What a listener speaks.
pub enum Protocols {
    /// HTTP/1.1 without TLS.
    Plain,
    /// HTTP/2 or HTTP/1.1 over TLS, as the client likes.
    Tls(Arc<rustls::ServerConfig>),
}

/// A bound socket.
pub struct Listener {
    tcp: TcpListener,
    protocols: Protocols,
    lame_duck: Duration,
}

impl Listener {
    /// Binds `address`.
    pub async fn bind(address: SocketAddr, protocols: Protocols) -> std::io::Result<Self> {
        Ok(Self { tcp: TcpListener::bind(address).await?, protocols, lame_duck: LAME_DUCK_MIN })
    }

    /// Serves through the whole drain, also when nobody is connected: probes come on fresh connections.
    #[must_use]
    pub fn through_the_drain(mut self) -> Self {
        self.lame_duck = Duration::from_hours(1);
        self
    }

    /// Where it listens; the port is known even when 0 was asked for.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Serves until the phase is `Stopping`, or an earlier one after `Serving` and nobody is connected any more.
    pub async fn serve<H, F>(self, handler: H, drain: Drain)
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
    {
        let acceptor = match &self.protocols {
            Protocols::Plain => None,
            Protocols::Tls(config) => Some(TlsAcceptor::from(Arc::clone(config))),
        };
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut phase = drain.follow();
        let mut lame_duck_ends = None;
        let mut connections = JoinSet::new();
        loop {
            let ended = end(drain.follow(), lame_duck_ends, connections.is_empty());
            tokio::select! {
                _ = phase.wait_for(|phase| *phase >= Phase::Draining), if lame_duck_ends.is_none() => {
                    lame_duck_ends = Some(Instant::now() + self.lame_duck);
                }
                accepted = accept(&self.tcp, &slots) => {
                    let Some((tcp, slot)) = accepted else { continue };
                    let (acceptor, handler, phase) = (acceptor.clone(), handler.clone(), drain.follow());
                    connections.spawn(async move {
                        connection(tcp, acceptor, handler, phase).await;
                        drop(slot);
                    });
                }
                Some(_) = connections.join_next() => {}
                () = ended => break,
            }
        }
        drop(self.tcp);
        while connections.join_next().await.is_some() {}
    }
}

async fn accept(tcp: &TcpListener, slots: &Arc<Semaphore>) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.expect("the semaphore is never closed");
    match tcp.accept().await {
        Ok((stream, _)) => {
            // Answers are small and written whole.
            let _ = stream.set_nodelay(true);
            Some((stream, slot))
        }
        Err(error) => {
            tracing::debug!(%error, "accept failed");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Ready when the listener has nothing more to do.
async fn end(mut phase: watch::Receiver<Phase>, lame_duck_ends: Option<Instant>, empty: bool) {
    let closing = phase.wait_for(|phase| *phase >= Phase::Closing);
    match lame_duck_ends {
        Some(ends) if empty => {
            let _ = tokio::time::timeout_at(ends, closing).await;
        }
        _ => drop(closing.await),
    }
}

async fn connection<H, F>(tcp: TcpStream, acceptor: Option<TlsAcceptor>, handler: H, phase: watch::Receiver<Phase>)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let Some(acceptor) = acceptor else { return serve_http1(tcp, handler, phase).await };
    match timeout(HANDSHAKE_MAX, acceptor.accept(tcp)).await {
        Err(_) => tracing::debug!("TLS handshake took too long"),
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
            serve_http2(stream, handler, phase).await;
        }
        Ok(Ok(stream)) => serve_http1(stream, handler, phase).await,
    }
}

async fn serve_http1<I, H, F>(io: I, handler: H, mut phase: watch::Receiver<Phase>)
where
    I: AsyncRead + AsyncWrite + Unpin,
    H: Fn(Request<Incoming>) -> F + Clone,
    F: Future<Output = Response<Full<Bytes>>>,
{
    let now = phase.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (answer, now) = (handler(request), now.clone());
        async move {
            let mut response = answer.await;
            // Asked after the work: a call that was under way when the signal came also ends its connection.
            if *now.borrow() >= Phase::Draining && response.version() == Version::HTTP_11 {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .max_buf_size(HTTP1_BUFFER_BYTES)
        .serve_connection(TokioIo::new(io), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        result = connection.as_mut() => return log(result),
        // An idle connection stays open while draining: closing it could cut a call that is on its way.
        _ = phase.wait_for(|phase| *phase >= Phase::Stopping) => connection.as_mut().graceful_shutdown(),
    }
    log(connection.await);
}

async fn serve_http2<I, H, F>(io: I, handler: H, mut phase: watch::Receiver<Phase>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = handler(request);
        async move { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .initial_stream_window_size(HTTP2_WINDOW_BYTES)
        .keep_alive_interval(HTTP2_PING)
        .serve_connection(TokioIo::new(io), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        result = connection.as_mut() => return log(result),
        // GOAWAY tells the client to take another connection for the next call and loses none.
        _ = phase.wait_for(|phase| *phase >= Phase::Draining) => connection.as_mut().graceful_shutdown(),
    }
    log(connection.await);
}

fn log(result: Result<(), hyper::Error>) {
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended");
    }
}
