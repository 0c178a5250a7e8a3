//! HTTP requests to one server over pooled connections, each with a deadline and a size limit.
//!
//! This module owns outgoing connections, TLS, pooling and limits. The module knows nothing of registries or
//! Kubernetes. Callers handle redirects, and repeat requests if necessary.

mod connection;
mod proxy;
mod reach;
mod silence;
mod tls;
mod x509;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::response::Parts;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use connection::{Http1, Http2, Way};
pub use proxy::{Proxies, Proxy, ProxyError};
pub use reach::{Reach, is_inside, is_inside_name};
pub use silence::{Listening, Silence};
pub use tls::{
    Identity, TlsError, Trust, certificates_from_pem, client_config, key_from_pem, pair, provider,
    revocation_lists_from_pem, verifies,
};
pub use x509::{Alternative, Facts, expiry, facts, lists_end};

/// Idle connections older than 25 s are not used again: servers and load balancers close idle connections from 60 s on.
const IDLE_MAX: Duration = Duration::from_secs(25);

/// The unit in which the memory of answers is counted (see [`Client::holding`]).
pub const HELD_UNIT_BYTES: usize = 16 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1: one request at a time on each connection.
    Http1,
    /// HTTP/2: many streams on one connection. Over TLS, the server must choose HTTP/2 by ALPN; without TLS, HTTP/2 is
    /// used without negotiation.
    Http2,
}

#[derive(Clone)]
pub struct Origin {
    /// Host name or IP address, without brackets.
    pub host: String,
    pub port: u16,
    /// TLS settings; `None` means plain HTTP.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// The name expected in the server's certificate; `None` means `host`.
    pub server_name: Option<String>,
}

impl Origin {
    /// The `host:port` for the Host header of requests.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of requests at one time; further requests wait, at most until their deadline.
    pub open_max: usize,
    /// Maximum number of idle HTTP/1.1 connections that are kept.
    pub idle_max: usize,
}

/// Why no client can be made for an address.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("caFile: {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The content of a file with authorities is invalid.
    #[error("caFile: {}: {source}", path.display())]
    Content { path: PathBuf, source: TlsError },
    /// The system's trusted authorities cannot be used.
    #[error(transparent)]
    System(TlsError),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("deadline passed while {doing}")]
    Deadline {
        /// The step of the request that did not finish in time.
        doing: &'static str,
    },
    #[error("connect to {authority}: {source}")]
    Connect { authority: String, source: std::io::Error },
    /// The host's address is internal, but an untrusted party named the host.
    #[error("{authority} is at an internal address")]
    Inside { authority: String },
    #[error("the proxy answered {status} when asked for {authority}")]
    Proxy { authority: String, status: http::StatusCode },
    /// No memory is free, because other answers that are being read use all memory for answers.
    #[error("too many large answers at one time")]
    Crowded,
    #[error("TLS with {authority}: {source}")]
    Tls { authority: String, source: std::io::Error },
    #[error("{authority} did not agree to HTTP/2")]
    NoHttp2 { authority: String },
    #[error("HTTP: {}", chain(source))]
    Http {
        #[from]
        source: hyper::Error,
    },
    /// The connection ended without an answer. Over HTTP/1.1 the server did not process the request; over HTTP/2 this
    /// is unknown.
    #[error("the connection ended without an answer")]
    Ended,
    #[error("the answer is larger than {cap_bytes} bytes")]
    TooLarge { cap_bytes: usize },
}

impl Error {
    /// Whether the server's certificate was refused. Such an error means that the server is reachable but the
    /// configuration is wrong.
    pub fn is_certificate(&self) -> bool {
        let Self::Tls { source, .. } = self else { return false };
        let inner = source.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
    }

    /// Whether the server does not speak TLS; most often it speaks plain HTTP.
    pub fn is_no_tls(&self) -> bool {
        let Self::Tls { source, .. } = self else { return false };
        let inner = source.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        // The first byte of a record is its type, and that of `HTTP/1.1 400` is no known type.
        matches!(inner, Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)))
    }

    /// Whether the server surely did not process a request over HTTP/1.1 that ended with this error.
    fn is_unsent(&self) -> bool {
        match self {
            Self::Http { source } => source.is_canceled(),
            Self::Ended => true,
            _ => false,
        }
    }
}

/// Whether no third party can read data sent to `host`: the connection uses TLS or stays on this machine.
pub fn keeps_secrets(is_tls: bool, host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    is_tls || host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// The message of `error` and of all its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        text.push_str(": ");
        text.push_str(&error.to_string());
        below = error.source();
    }
    text
}

/// A function that takes a piece of an answer and returns whether it wants another piece.
type Take<'a> = &'a mut (dyn FnMut(&Parts, &[u8]) -> bool + Send);
/// The head of an answer whose body was passed to a [`Take`].
type Walked = Result<Parts, Error>;

pub struct Client {
    origin: Origin,
    protocol: Protocol,
    limits: Limits,
    way: Way,
    /// The IP address of the server that answered last; `None` behind a proxy, which chooses the address.
    peer: Mutex<Option<IpAddr>>,
    held: Option<Arc<Semaphore>>,
    open: Arc<Semaphore>,
    idle: Mutex<Vec<(Http1, Instant)>>,
    shared: Mutex<Option<Arc<Http2>>>,
}

/// An answer whose body the caller reads in pieces. If the stream is dropped, the connection closes (HTTP/1.1) or the
/// stream is reset (HTTP/2).
pub struct Stream {
    body: Incoming,
    link: Link,
}

enum Link {
    One(Http1),
    Many(Arc<Http2>),
}

impl Client {
    pub fn new(mut origin: Origin, protocol: Protocol, limits: Limits) -> Self {
        // Set here once, so that connections share the settings and resume TLS sessions.
        if let (Some(tls), Protocol::Http2) = (&mut origin.tls, protocol) {
            Arc::make_mut(tls).alpn_protocols = vec![connection::ALPN_HTTP2.to_vec()];
        }
        let open = Arc::new(Semaphore::new(limits.open_max));
        Self {
            origin,
            protocol,
            limits,
            way: Way { reach: Reach::Anywhere, proxy: None },
            peer: Mutex::new(None),
            held: None,
            open,
            idle: Mutex::new(Vec::new()),
            shared: Mutex::new(None),
        }
    }

    /// A client for the host of `uri` over HTTP/1.1, with the environment's proxy, and the path of `uri`. The client
    /// trusts the authorities of `ca_file`, else those of the system.
    pub fn of_address(uri: &Uri, ca_file: Option<&Path>, limits: Limits) -> Result<(Self, String), AddressError> {
        let is_tls = uri.scheme_str() == Some("https");
        let read = |path: &Path| std::fs::read(path).map_err(|source| AddressError::Read { path: path.into(), source });
        let pem = ca_file.filter(|_| is_tls).map(read).transpose()?;
        let trust = pem.as_deref().map_or(Trust::System, Trust::Pem);
        let cannot = |source| match ca_file {
            Some(path) => AddressError::Content { path: path.into(), source },
            None => AddressError::System(source),
        };
        let tls = is_tls.then(|| client_config(trust, None).map(Arc::new).map_err(cannot)).transpose()?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let origin = Origin { host, port, tls, server_name: None };
        let proxy = Proxies::from_env()?.proxy(&origin);
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok((Self::new(origin, Protocol::Http1, limits).through(proxy), path))
    }

    /// Restricts connections to addresses that `reach` allows.
    #[must_use]
    pub fn within(mut self, reach: Reach) -> Self {
        self.way.reach = reach;
        self
    }

    #[must_use]
    pub fn through(mut self, proxy: Option<Proxy>) -> Self {
        self.way.proxy = proxy;
        self
    }

    /// Counts the memory of answers that are being read against `held`, in units of [`HELD_UNIT_BYTES`]. Several
    /// clients can share `held`.
    #[must_use]
    pub fn holding(mut self, held: Arc<Semaphore>) -> Self {
        self.held = Some(held);
        self
    }

    /// The IP address of the last connection; `None` before the first connection and behind a proxy.
    pub fn peer(&self) -> Option<IpAddr> {
        *self.peer.lock()
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Sends `request` (its URI has only path and query) and reads the whole answer, at most `cap_bytes`.
    ///
    /// The future is boxed, so that the code of connections is compiled in this crate and not again in each caller's
    /// crate.
    pub fn fetch(
        &self,
        request: Request<Bytes>,
        cap_bytes: usize,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Response<Bytes>, Error>> {
        let held = self.held.as_ref().map(|held| PooledConnection { pool: held, permit: None });
        Box::pin(self.read(request, (cap_bytes, BytesMut::new()), held, deadline))
    }

    /// Like [`Self::fetch`], for a caller that has already reserved memory for `cap_bytes`: no other limit counts the
    /// answer.
    pub fn fetch_reserved(
        &self,
        request: Request<Bytes>,
        cap_bytes: usize,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Response<Bytes>, Error>> {
        // Reserved at once, so that no growing needs two copies.
        let bytes = BytesMut::with_capacity(cap_bytes);
        Box::pin(self.read(request, (cap_bytes, bytes), None, deadline))
    }

    async fn read(
        &self,
        request: Request<Bytes>,
        (cap_bytes, mut bytes): (usize, BytesMut),
        mut held: Option<PooledConnection<'_>>,
        deadline: Instant,
    ) -> Result<Response<Bytes>, Error> {
        let mut failed = None;
        let mut take = |_: &Parts, data: &[u8]| {
            let size = bytes.len() + data.len();
            failed = match &mut held {
                _ if size > cap_bytes => Some(Error::TooLarge { cap_bytes }),
                Some(held) => held.grow(size).err(),
                None => None,
            };
            bytes.extend_from_slice(if failed.is_none() { data } else { &[] });
            failed.is_none()
        };
        let head = self.walk(request, deadline, &mut take).await?;
        failed.map_or_else(|| Ok(Response::from_parts(head, bytes.freeze())), Err)
    }

    /// Sends `request` and passes the body of the answer to `take` piece by piece, until `take` wants no more. The
    /// client stores no piece of the body.
    pub fn pieces<'a>(&'a self, request: Request<Bytes>, deadline: Instant, take: Take<'a>) -> BoxFuture<'a, Walked> {
        Box::pin(self.walk(request, deadline, take))
    }

    async fn walk(&self, request: Request<Bytes>, deadline: Instant, take: Take<'_>) -> Walked {
        let work = async {
            let permit = Arc::clone(&self.open).acquire_owned().await.expect("the semaphore is never closed");
            let listening = Silence::listen();
            let (response, link) = self.send(request, true).await?;
            drop(listening);
            let (parts, mut body) = response.into_parts();
            while let Some(frame) = body.frame().await {
                if let Ok(data) = frame?.into_data()
                    && !take(&parts, &data)
                {
                    // The rest is not read: the connection ends here.
                    return Ok(parts);
                }
            }
            drop(permit);
            if let Link::One(connection) = link {
                self.keep(connection);
            }
            Ok(parts)
        };
        timeout_at(deadline, work).await.unwrap_or(Err(Error::Deadline { doing: "waiting for the answer" }))
    }

    /// Sends `request` and returns as soon as the head of the answer has arrived. Over HTTP/1.1, `stream` uses a new
    /// connection.
    ///
    /// Streams do not count against [`Limits::open_max`], because they live long and would block other requests.
    pub fn stream(
        &self,
        request: Request<Bytes>,
        head_deadline: Instant,
    ) -> BoxFuture<'_, Result<Response<Stream>, Error>> {
        Box::pin(async move {
            let send = timeout_at(head_deadline, self.send(request, false)).await;
            let late = Err(Error::Deadline { doing: "waiting for the head of the stream" });
            let (response, link) = send.unwrap_or(late)?;
            Ok(response.map(|body| Stream { body, link }))
        })
    }

    /// Drops every connection, so that the next request opens a new one.
    pub fn forget_connections(&self) {
        self.idle.lock().clear();
        *self.shared.lock() = None;
    }

    async fn send(&self, request: Request<Bytes>, reuse: bool) -> Result<(Response<Incoming>, Link), Error> {
        let request = request.map(Full::new);
        match self.protocol {
            Protocol::Http1 => self.send_http1(request, reuse).await,
            Protocol::Http2 => self.send_http2(request).await,
        }
    }

    async fn send_http1(
        &self,
        mut request: Request<Full<Bytes>>,
        reuse: bool,
    ) -> Result<(Response<Incoming>, Link), Error> {
        let host = self.origin.authority().parse().expect("host and port are a header value");
        request.headers_mut().insert(http::header::HOST, host);
        if let (Some(proxy), None) = (&self.way.proxy, &self.origin.tls) {
            self.absolute(&mut request, proxy);
        }
        // A stream takes a connection of its own; all other requests prefer an idle one.
        while let Some(mut connection) = reuse.then(|| self.idle()).flatten() {
            let again = request.clone();
            match connection.send(request).await {
                Ok(response) => return Ok((response, Link::One(connection))),
                // The server closed the idle connection. Only a request that cannot have been processed is sent again.
                Err(error) if error.is_unsent() || again.method().is_safe() => request = again,
                Err(error) => return Err(error),
            }
        }
        let (mut connection, peer) = Http1::connect(&self.origin, &self.way).await?;
        *self.peer.lock() = peer;
        let response = connection.send(request).await?;
        Ok((response, Link::One(connection)))
    }

    /// Makes the URI absolute, as a proxy requires (RFC 9112, section 3.2.2).
    fn absolute(&self, request: &mut Request<Full<Bytes>>, proxy: &Proxy) {
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(http::uri::Scheme::HTTP);
        parts.authority = Some(self.origin.authority().parse().expect("host and port are an authority"));
        *request.uri_mut() = Uri::from_parts(parts).expect("scheme, authority and path make a URI");
        if let Some(authorization) = &proxy.authorization {
            request.headers_mut().insert(http::header::PROXY_AUTHORIZATION, authorization.clone());
        }
    }

    async fn send_http2(&self, mut request: Request<Full<Bytes>>) -> Result<(Response<Incoming>, Link), Error> {
        let scheme = if self.origin.tls.is_some() { "https" } else { "http" };
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(scheme.parse().expect("both schemes are valid"));
        parts.authority = Some(self.origin.authority().parse().expect("host and port are an authority"));
        *request.uri_mut() = Uri::from_parts(parts).expect("scheme, authority and path make a URI");
        let known = self.shared.lock().clone().filter(|connection| connection.is_open());
        let connection = match known {
            Some(connection) => connection,
            None => self.share(Http2::connect(&self.origin, &self.way).await?),
        };
        let response = connection.send(request).await.inspect_err(|_| self.unshare(&connection))?;
        Ok((response, Link::Many(connection)))
    }

    /// Keeps one of several HTTP/2 connections that were opened at the same time; each other connection ends after its
    /// requests.
    fn share(&self, fresh: Http2) -> Arc<Http2> {
        let mut shared = self.shared.lock();
        match shared.as_ref().filter(|connection| connection.is_open()) {
            Some(connection) => Arc::clone(connection),
            None => Arc::clone(shared.insert(Arc::new(fresh))),
        }
    }

    fn unshare(&self, broken: &Arc<Http2>) {
        let mut shared = self.shared.lock();
        if shared.as_ref().is_some_and(|current| Arc::ptr_eq(current, broken)) {
            *shared = None;
        }
    }

    fn idle(&self) -> Option<Http1> {
        let mut idle = self.idle.lock();
        while let Some((connection, since)) = idle.pop() {
            if since.elapsed() < IDLE_MAX && connection.is_open() {
                return Some(connection);
            }
        }
        None
    }

    fn keep(&self, connection: Http1) {
        let mut idle = self.idle.lock();
        idle.retain(|(connection, since)| since.elapsed() < IDLE_MAX && connection.is_open());
        if idle.len() < self.limits.idle_max && connection.is_open() {
            idle.push((connection, Instant::now()));
        }
    }
}

/// The memory for one answer, reserved from the limit that answers share.
struct PooledConnection<'a> {
    pool: &'a Semaphore,
    permit: Option<SemaphorePermit<'a>>,
}

impl PooledConnection<'_> {
    /// Reserves memory for `bytes` of the answer in total. The first unit of memory is not counted, so that small
    /// answers never fail.
    fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        let has = self.permit.as_ref().map_or(0, SemaphorePermit::num_permits);
        let more = (bytes / HELD_UNIT_BYTES).saturating_sub(has);
        if more == 0 {
            return Ok(());
        }
        let more = u32::try_from(more).map_err(|_| Error::Crowded)?;
        let permit = self.pool.try_acquire_many(more).map_err(|_| Error::Crowded)?;
        match &mut self.permit {
            Some(held) => held.merge(permit),
            None => self.permit = Some(permit),
        }
        Ok(())
    }
}

impl Stream {
    /// The next piece of the body, never empty; `None` at the end. The caller must set a time limit, because this
    /// function has none.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        while let Some(frame) = self.body.frame().await {
            // HTTP/2 ends many streams with an empty DATA frame; it carries no data and is no sign of life.
            if let Ok(data) = frame?.into_data()
                && !data.is_empty()
            {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    pub fn is_open(&self) -> bool {
        match &self.link {
            Link::One(connection) => connection.is_open(),
            Link::Many(connection) => connection.is_open(),
        }
    }
}
