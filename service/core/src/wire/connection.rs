//! One outgoing connection: TCP, TLS, HTTP handshake, and the task that moves its bytes.
//!
//! Dropping a connection aborts its driver task and closes the socket.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::proxy::Proxy;
use super::{Error, Origin, Reach, is_inside, is_inside_name};

/// If a connection gets no frame for this long, the client sends a PING. The answer to the PING must come within the
/// same 10 s. So the client notices a dead server in 20 s.
const HTTP2_PING: Duration = Duration::from_secs(10);
/// Flow-control window of a stream, in bytes: enough for one page of a list. Each stream has its own window, so a slow
/// watch cannot block other streams.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 1 << 20;
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// The ALPN name of HTTP/2 (RFC 9113, section 3.2).
pub(super) const ALPN_HTTP2: &[u8] = b"h2";

/// Maximum number of addresses of one host name that are tried; usual names have a few.
const ADDRESSES_MAX: usize = 8;
/// Largest head of an answer, in bytes. hyper's own limit is 400 KiB for each connection.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Time in which an answer may still arrive after its HTTP/2 connection ended, because separate tasks pass answers on.
const HTTP2_LAST_ANSWER: Duration = Duration::from_secs(1);

/// How the client reaches a server: directly or through a proxy.
#[derive(Debug, Clone)]
pub(super) struct Way {
    /// The addresses to which the client may connect. Behind a proxy, only the host name can be checked, because the
    /// proxy resolves the name.
    pub reach: Reach,
    pub proxy: Option<Proxy>,
}

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

pub(super) struct Http1 {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: Driver,
}

pub(super) struct Http2 {
    sender: http2::SendRequest<Full<Bytes>>,
    driver: Driver,
}

struct Driver {
    ended: CancellationToken,
    _task: AbortOnDropHandle<()>,
}

impl Driver {
    fn spawn(connection: impl Future<Output = Result<(), hyper::Error>> + Send + 'static) -> Self {
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let task = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::trace!(name: crate::logs::names::WIRE_ENDED, %error, "connection ended");
            }
            drop(guard);
        });
        Self { ended, _task: AbortOnDropHandle::new(task) }
    }

    /// Waits for an answer, at most `grace` after the end of the connection.
    ///
    /// If a connection ends while a request is sent, the request may stay in hyper's queue for ever, without an error
    /// (<https://github.com/hyperium/hyper/issues/4122>).
    async fn answer(
        &self,
        answer: impl Future<Output = Result<Response<Incoming>, hyper::Error>>,
        grace: Duration,
    ) -> Result<Response<Incoming>, Error> {
        let mut answer = std::pin::pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => return Ok(answer?),
            () = self.ended.cancelled() => {}
        }
        // The connection has delivered all its answers before it ended.
        match timeout(grace, answer).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Error::Ended),
        }
    }
}

impl Http1 {
    pub async fn connect(origin: &Origin, way: &Way) -> Result<(Self, Option<IpAddr>), Error> {
        let (io, _, peer) = dial(origin, way).await?;
        Ok((Self::over(io).await?, peer))
    }

    async fn over(io: impl Io + 'static) -> Result<Self, Error> {
        let mut builder = http1::Builder::new();
        let (sender, connection) = builder.max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(io)).await?;
        Ok(Self { sender, driver: Driver::spawn(connection) })
    }

    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Error> {
        self.sender.ready().await?;
        self.driver.answer(self.sender.send_request(request), Duration::ZERO).await
    }

    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }
}

impl Http2 {
    pub async fn connect(origin: &Origin, way: &Way) -> Result<Self, Error> {
        let (io, agreed, _) = dial(origin, way).await?;
        if !agreed {
            return Err(Error::NoHttp2 { authority: origin.authority() });
        }
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(HTTP2_PING)
            .keep_alive_timeout(HTTP2_PING)
            .initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
            .initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
            .handshake(TokioIo::new(io))
            .await?;
        Ok(Self { sender, driver: Driver::spawn(connection) })
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Error> {
        let mut sender = self.sender.clone();
        sender.ready().await?;
        self.driver.answer(sender.send_request(request), HTTP2_LAST_ANSWER).await
    }

    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }
}

/// Opens the byte stream to `origin`; returns whether HTTP/2 was chosen (assumed without TLS), and the server's address
/// unless a proxy chose it.
async fn dial(origin: &Origin, way: &Way) -> Result<(Box<dyn Io>, bool, Option<IpAddr>), Error> {
    let authority = origin.authority();
    if way.reach == Reach::Outside
        && (is_inside_name(&origin.host) || origin.host.parse().is_ok_and(|address: IpAddr| is_inside(address)))
    {
        return Err(Error::Inside { authority });
    }
    let (stream, peer): (Box<dyn Io>, _) = match &way.proxy {
        None => {
            let tcp = direct(&origin.host, origin.port, way.reach).await?;
            let peer = tcp.peer_addr().ok().map(|peer| peer.ip());
            (Box::new(tcp), peer)
        }
        Some(proxy) => {
            let tcp = direct(&proxy.host, proxy.port, Reach::Anywhere).await?;
            // Plain requests go to the proxy directly, with the whole URL.
            (if origin.tls.is_some() { tunnel(tcp, &authority, proxy).await? } else { Box::new(tcp) }, None)
        }
    };
    let Some(tls) = &origin.tls else { return Ok((stream, true, peer)) };
    let invalid = |text: String| std::io::Error::new(std::io::ErrorKind::InvalidInput, text);
    let name = origin.server_name.as_deref().unwrap_or(&origin.host);
    let name = ServerName::try_from(name.to_owned())
        .map_err(|error| Error::Tls { authority: authority.clone(), source: invalid(error.to_string()) })?;
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::clone(tls));
    let stream = connector.connect(name, stream).await.map_err(|source| Error::Tls { authority, source })?;
    let agreed = stream.get_ref().1.alpn_protocol() == Some(ALPN_HTTP2);
    Ok((Box::new(stream), agreed, peer))
}

/// Resolves `host` once and connects to the first address that accepts. Only addresses that `reach` permits are tried.
async fn direct(host: &str, port: u16, reach: Reach) -> Result<TcpStream, Error> {
    let authority = || Origin { host: host.to_owned(), port, tls: None, server_name: None }.authority();
    let connect = |source| Error::Connect { authority: authority(), source };
    let found: Vec<SocketAddr> =
        tokio::net::lookup_host((host, port)).await.map_err(connect)?.take(ADDRESSES_MAX).collect();
    let allowed = found.iter().filter(|address| reach == Reach::Anywhere || !is_inside(address.ip()));
    let mut last = None;
    for address in allowed {
        match TcpStream::connect(address).await {
            Ok(tcp) => {
                // Requests are small and written as a whole; waiting for more would only add delay.
                let _ = tcp.set_nodelay(true);
                return Ok(tcp);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(match last {
        Some(source) => connect(source),
        None if found.is_empty() => connect(std::io::Error::other("the name has no address")),
        None => Error::Inside { authority: authority() },
    })
}

/// Opens a tunnel through a proxy to `authority` (RFC 9110, section 9.3.6).
async fn tunnel(tcp: TcpStream, authority: &str, proxy: &Proxy) -> Result<Box<dyn Io>, Error> {
    let mut builder = http1::Builder::new();
    let (mut sender, connection) = builder.max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(tcp)).await?;
    let driver = AbortOnDropHandle::new(tokio::spawn(connection.with_upgrades()));
    let host = HeaderValue::from_str(authority).expect("host and port are a header value");
    let mut request = Request::builder().method(Method::CONNECT).uri(authority).header(header::HOST, host);
    if let Some(authorization) = &proxy.authorization {
        request = request.header(header::PROXY_AUTHORIZATION, authorization);
    }
    let request = request.body(Full::<Bytes>::default()).expect("host and port are an authority");
    let response = sender.send_request(request).await?;
    if !response.status().is_success() {
        return Err(Error::Proxy { authority: authority.to_owned(), status: response.status() });
    }
    let upgraded = hyper::upgrade::on(response).await?;
    // The driver task has ended: the bytes belong to the tunnel now.
    drop(driver);
    Ok(Box::new(TokioIo::new(upgraded)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::*;

    /// Number of threads of the test, more than processors: hyper's bug occurs only if a thread is interrupted while it
    /// sends. Without a wait for the connection's end, three of four test runs hang.
    const THREADS: usize = 8;
    const TRIES: u32 = 2_000;
    /// Time after which another thread has noticed the written request.
    const NOTICED: Duration = Duration::from_micros(100);
    /// Time limit of one attempt, longer than any attempt that does not hang.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Test of hyper's issue 4122: a request that is sent while its connection ends does not wait for ever. Each
    /// attempt sends the request a little later than the previous attempt.
    #[tokio::test(flavor = "multi_thread", worker_threads = 8)]
    async fn a_request_does_not_wait_for_a_connection_that_has_ended() {
        let tries = || async {
            for n in 0..TRIES {
                let (ours, mut theirs) = UnixStream::pair().unwrap();
                ours.set_nonblocking(true).unwrap();
                let mut connection = Http1::over(tokio::net::UnixStream::from_std(ours).unwrap()).await.unwrap();
                connection.sender.ready().await.unwrap();
                // No request has asked for these bytes. The connection's driver runs on the other thread, because this
                // one is blocked.
                theirs.write_all(b"x").unwrap();
                let written = Instant::now();
                while written.elapsed() < NOTICED * (n % 100) / 100 {
                    std::hint::spin_loop();
                }
                let request = Request::builder().header(header::HOST, "h").body(Full::default()).unwrap();
                let answer = timeout(PATIENCE, connection.send(request)).await;
                assert!(answer.unwrap_or_else(|_| panic!("try {n} waits")).is_err());
            }
        };
        let all: tokio::task::JoinSet<()> = (0..THREADS).map(|_| tries()).collect();
        all.join_all().await;
    }
}
