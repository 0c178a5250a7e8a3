//! Serves one connection, with handshake and HTTP/1.1 or HTTP/2, and ends it as each phase of the process demands.
//!
//! A connection that must make room for a new connection finishes its calls and closes. An open call holds memory until
//! its answer is sent (`call_memory`, `owed`).

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::call_memory::{NoRoom, head_bytes};
use super::connection_state::{ConnectionState, Timer, Unread, attend};
use super::drain::Phase;
use super::frames::Frames;
use super::metrics::ListenerMetrics;
use super::owed::{Debt, Owed, Streams};
use super::peer::{Accounts, Peer};
use super::slots::{Calls, Slot};
use super::stream::TlsStream;
use super::tls::{ClientCertificate, Refusal, ServerTls};
use super::watched::Watched;
use super::way::{Answer, Handler};
use crate::logs::Throttle;

/// Time limit of a TLS handshake. kube-apiserver gives up after 10 s, so a slower client is another program.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Idle time after which hyper closes a connection. kube-apiserver keeps idle connections for 90 s; if the service
/// closed earlier, kube-apiserver would write into a closed connection.
const IDLE_MAX: Duration = Duration::from_mins(2);
/// Largest read buffer of an HTTP/1.1 connection. hyper would let the buffer grow to 400 KiB with large bodies. The
/// review of a Pod with a few containers fits into the buffer, and so does a head that kube-apiserver sends, with less
/// than 2 KiB.
const HTTP1_BUFFER_BYTES: usize = 32 << 10;
/// Maximum number of streams of one HTTP/2 connection; kube-apiserver uses the same limit.
const HTTP2_STREAMS_MAX: u32 = 250;
/// Flow-control window of a stream. The window holds an ordinary review without a window update.
const HTTP2_WINDOW_BYTES: u32 = 256 << 10;
/// Maximum number of bytes of a request's head as HTTP/2 counts them (RFC 9113, section 10.5.1); kube-apiserver's heads
/// have less than 2 KiB. hyper answers a longer head with 431, and ends the connection if a head has four times as many
/// bytes, decoded or not.
const HTTP2_HEAD_BYTES: u32 = 8 << 10;
const HTTP2_HEAD_BYTES_MOST: usize = 4 * HTTP2_HEAD_BYTES as usize;
/// The size of the HPACK table for a client's heads. h2 stores each value as a part of its receive buffer, so a table
/// of 4 KiB could keep 2 MiB. Without a table, a head is some 300 bytes longer.
const HTTP2_TABLE_BYTES: u32 = 0;
/// If a connection gets no frame for this long, the service sends a PING. The answer to the PING must come within the
/// same 30 s.
const HTTP2_PING: Duration = Duration::from_secs(30);
/// Time in which a connection without calls must close if it has to make room for a new connection.
const GOODBYE_MAX: Duration = Duration::from_secs(1);

pub(super) struct Shared {
    pub handler: Handler,
    pub tls: Option<Arc<ServerTls>>,
    pub accounts: Accounts,
    pub metrics: ListenerMetrics,
    /// Limits how many log lines clients can cause.
    pub throttle: Throttle,
}

enum End {
    /// The process stops; open calls still get their answers.
    Phase,
    /// The connection closes so that a new connection can be accepted.
    GivenUp,
}

pub(super) async fn serve(tcp: TcpStream, address: IpAddr, slot: Slot, shared: &Shared, phase: watch::Receiver<Phase>) {
    let Some(tls) = &shared.tls else {
        slot.established();
        let caller = Caller::new(shared, shared.accounts.peer(address, None), &slot);
        return serve_http1(tcp, caller, phase, &slot).await;
    };
    let generation = tls.generation();
    let stream = tokio::select! {
        stream = timeout(HANDSHAKE_MAX, TlsStream::accept(tls.config(), tcp)) => stream,
        () = slot.given_up() => return,
    };
    let stream = match stream {
        Err(_) => return shared.metrics.handshake_failed("timeout"),
        Ok(Err(error)) => return handshake_failed(shared, address, &error),
        Ok(Ok(stream)) => stream,
    };
    let peer = match stream.certificates() {
        None | Some([]) => shared.accounts.peer(address, None),
        Some(chain) => match ClientCertificate::new(tls, chain, (!stream.is_resumed()).then_some(generation)) {
            Ok(client) => {
                let (listener, resumed) = (shared.metrics.listener(), stream.is_resumed());
                if let Some(left_out) = shared.throttle.admit() {
                    tracing::info!(
                        name: crate::logs::names::TLS_ACCEPTED,
                        listener, %address, peer = &**client.identity(), resumed, left_out, "a client proved who it is"
                    );
                }
                shared.accounts.client(address, client)
            }
            Err(reason) => {
                shared.metrics.handshake_failed("certificate");
                return client_refused(shared, address, reason, "session");
            }
        },
    };
    slot.established();
    let caller = Caller::new(shared, peer, &slot);
    if stream.protocol() == Some(b"h2") {
        serve_http2(stream, caller, phase, &slot).await;
    } else {
        serve_http1(stream, caller, phase, &slot).await;
    }
}

/// Serves HTTP/2 over any byte stream, without socket and handshake.
#[cfg(any(test, feature = "fuzz"))]
pub(super) async fn serve_http2_of<I>(
    io: I,
    address: IpAddr,
    slot: Slot,
    shared: &Shared,
    phase: watch::Receiver<Phase>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let caller = Caller::new(shared, shared.accounts.peer(address, None), &slot);
    serve_http2(io, caller, phase, &slot).await;
}

fn handshake_failed(shared: &Shared, address: IpAddr, error: &std::io::Error) {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    if let Some(reason) = inner.and_then(Refusal::of) {
        shared.metrics.handshake_failed("certificate");
        return client_refused(shared, address, reason, &error.to_string());
    }
    shared.metrics.handshake_failed("protocol");
    if let Some(left_out) = shared.throttle.admit() {
        let listener = shared.metrics.listener();
        tracing::info!(name: crate::logs::names::TLS_FAILED, listener, %address, %error, left_out, "a handshake failed");
    }
}

/// Counts and logs a client whose certificate was refused.
fn client_refused(shared: &Shared, address: IpAddr, reason: Refusal, error: &str) {
    shared.metrics.client_refused(reason);
    if let Some(left_out) = shared.throttle.admit() {
        let (listener, reason) = (shared.metrics.listener(), reason.label());
        tracing::warn!(
            name: crate::logs::names::TLS_REFUSED, listener, %address, reason, error, left_out, "a client was refused"
        );
    }
}

/// The client of a connection, with the state that its calls need.
struct Caller {
    handler: Handler,
    peer: Arc<Peer>,
    calls: Calls,
    standing: Arc<ConnectionState>,
    metrics: ListenerMetrics,
}

impl Caller {
    fn new(shared: &Shared, peer: Arc<Peer>, slot: &Slot) -> Self {
        let metrics = shared.metrics.clone();
        let standing = Arc::new(ConnectionState::new(metrics.clone()));
        // A certificate is more proof of an honest client than a request.
        if peer.client().is_some() {
            standing.show();
        }
        Self { handler: Arc::clone(&shared.handler), peer, calls: slot.calls(), standing, metrics }
    }

    /// Starts a call if the memory limit allows another call.
    fn call(&self, request: Request<Incoming>) -> Result<AnswerOf, NoRoom> {
        let found = if self.standing.may_open(self.calls.open()) {
            self.metrics.room().hold(&self.peer, head_bytes(&request))
        } else {
            Err(NoRoom::Unproven)
        };
        let hold = found.inspect_err(|reason| {
            self.standing.refuse();
            self.metrics.call_refused(*reason);
        })?;
        let debt = Debt::new(hold, Arc::clone(&self.standing), self.calls.begin());
        Ok(AnswerOf { answer: (self.handler)(request, Arc::clone(&self.peer)), debt })
    }
}

/// An answer that is being sent, and the resources that its call holds.
struct AnswerOf {
    answer: BoxFuture<'static, Answer>,
    debt: Debt,
}

impl AnswerOf {
    async fn finish(mut self) -> Response<Owed> {
        let answer = self.answer.await;
        let bytes = answer.body().size_hint().exact().unwrap_or(u64::MAX);
        match self.debt.answer(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            Ok(()) => answer.map(|body| Owed::new(body, self.debt)),
            // The call has done its work, so the client must not be asked to send it again.
            Err(_) => nothing(StatusCode::SERVICE_UNAVAILABLE),
        }
    }
}

fn nothing(status: StatusCode) -> Response<Owed> {
    let mut response = Response::new(Owed::nothing());
    *response.status_mut() = status;
    response
}

/// The answer to a call that the memory limit refuses.
fn shed() -> Response<Owed> {
    let mut response = nothing(StatusCode::TOO_MANY_REQUESTS);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

async fn serve_http1<I>(io: I, caller: Caller, mut phase: watch::Receiver<Phase>, slot: &Slot)
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let (now, standing) = (phase.clone(), Arc::clone(&caller.standing));
    let service = service_fn(move |request: Request<Incoming>| {
        let (called, now) = (caller.call(request), now.clone());
        async move {
            let mut response = match called {
                Ok(answer) => answer.finish().await,
                Err(_) => shed(),
            };
            // Checked after the work: a call that was under way when the signal came also ends its connection.
            if *now.borrow() >= Phase::Draining && response.version() == Version::HTTP_11 {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .max_buf_size(HTTP1_BUFFER_BYTES)
        .serve_connection(TokioIo::new(Watched::new(io, None, &standing)), service);
    let mut connection = std::pin::pin!(connection);
    let mut timer = None;
    let end = tokio::select! {
        result = attend(connection.as_mut(), &standing, &mut timer) => return log(&result),
        // An idle connection stays open while draining: closing it could cut a call that is on its way.
        _ = phase.wait_for(|phase| *phase >= Phase::Stopping) => End::Phase,
        () = slot.given_up() => End::GivenUp,
    };
    connection.as_mut().graceful_shutdown();
    finish(connection, &end, slot, (&standing, &mut timer)).await;
}

async fn serve_http2<I>(io: I, caller: Caller, phase: watch::Receiver<Phase>, slot: &Slot)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let standing = Arc::clone(&caller.standing);
    let service = service_fn(move |request: Request<Incoming>| {
        let called = caller.call(request);
        async move {
            match called {
                Ok(answer) => Ok(answer.finish().await),
                // The call did nothing, and the client may send it again at once (RFC 9113, section 8.7).
                Err(_) => Err(h2::Error::from(h2::Reason::REFUSED_STREAM)),
            }
        }
    });
    let frames = Frames::new(HTTP2_HEAD_BYTES_MOST);
    let connection = http2::Builder::new(Streams(Arc::clone(&standing)))
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_header_list_size(HTTP2_HEAD_BYTES)
        .header_table_size(HTTP2_TABLE_BYTES)
        .initial_stream_window_size(HTTP2_WINDOW_BYTES)
        .keep_alive_interval(HTTP2_PING)
        .serve_connection(TokioIo::new(Watched::new(io, Some(frames), &standing)), service);
    let mut connection = std::pin::pin!(connection);
    let mut timer = None;
    let end = tokio::select! {
        result = attend(connection.as_mut(), &standing, &mut timer) => return log(&result),
        // GOAWAY makes the client use another connection for the next call and loses none.
        () = goaway(phase, slot) => End::Phase,
        () = slot.given_up() => End::GivenUp,
        () = standing.asked_to_leave() => End::GivenUp,
    };
    connection.as_mut().graceful_shutdown();
    finish(connection, &end, slot, (&standing, &mut timer)).await;
}

/// Ready when an HTTP/2 client should connect to another process: during the drain, but only after its first call. A
/// client that gets a GOAWAY before its first call connects to the same process again, and fails after a few attempts.
async fn goaway(mut phase: watch::Receiver<Phase>, slot: &Slot) {
    let _ = phase.wait_for(|phase| *phase >= Phase::Draining).await;
    tokio::select! {
        () = slot.first_call() => {}
        _ = phase.wait_for(|phase| *phase >= Phase::Stopping) => {}
    }
}

/// Waits for the open calls of the connection. If the connection must make room for a new one and has no calls, it is
/// cut unless it closes in time.
async fn finish<C>(
    mut connection: Pin<&mut C>,
    end: &End,
    slot: &Slot,
    (standing, timer): (&ConnectionState, &mut Timer),
) where
    C: Future<Output = Result<(), hyper::Error>>,
{
    loop {
        match timeout(GOODBYE_MAX, attend(connection.as_mut(), standing, timer)).await {
            Ok(result) => return log(&result),
            Err(_) if matches!(end, End::GivenUp) && !slot.is_busy() => return,
            Err(_) => {}
        }
    }
}

fn log(result: &Result<Result<(), hyper::Error>, Unread>) {
    let error: &dyn std::fmt::Display = match result {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(unread) => unread,
    };
    tracing::debug!(name: crate::logs::names::CONNECTION_ENDED, %error, "connection ended");
}

#[cfg(test)]
mod tests;
