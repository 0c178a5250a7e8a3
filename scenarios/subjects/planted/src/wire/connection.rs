//! One connection to the API server, over HTTP/1.1 or HTTP/2.
//!
//! This module handles TCP, TLS, the HTTP handshake and HTTP/2 pings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::trouble::Trouble;
use crate::mistakes::{Mistake, Mistakes};

/// Time limit of TCP, TLS and the HTTP handshake together.
const CONNECT_DEADLINE: Duration = Duration::from_secs(4);
/// Interval of HTTP/2 pings. A peer that does not answer a ping before the next ping counts as gone.
const PING_EVERY: Duration = Duration::from_secs(5);
const PING_DEADLINE: Duration = Duration::from_secs(3);
/// Flow-control window of a stream, so large that a watch which is not read for a moment does not stop other watches on
/// its connection.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;
/// The limit of streams that counts until the server has sent its limit: an unusual number that no server sends.
const STREAMS_UNTOLD: usize = 97;
/// Maximum number of times that the connection is polled for the server's limit of streams. After these polls,
/// [`STREAMS_UNTOLD`] is the limit of streams.
const SETTINGS_POLLS: u32 = 100;
const SETTINGS_POLL: Duration = Duration::from_millis(3);

/// An HTTP/1.1 connection, for one request at a time.
pub struct One {
    pub sender: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
    _driver: Driver,
}

/// An HTTP/2 connection that several requests share.
#[derive(Clone)]
pub struct Two {
    pub sender: h2::client::SendRequest<Bytes>,
    state: Arc<State>,
}

/// A connection after the handshake.
pub enum Connection {
    One(One),
    Two(Two),
}

struct State {
    open: AtomicUsize,
    retired: AtomicBool,
    driver: Driver,
}

/// The task that moves a connection's bytes. Dropping this task closes the connection.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl One {
    /// Whether the connection can take another request.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }
}

impl Two {
    /// Takes a stream of the connection, if the server's limit allows one more or `whatever_the_limit` is set.
    pub fn lease(&self, whatever_the_limit: bool) -> bool {
        if self.state.retired.load(Ordering::Relaxed) || self.state.driver.0.is_finished() {
            return false;
        }
        let free =
            whatever_the_limit || self.state.open.load(Ordering::Relaxed) < self.sender.current_max_send_streams();
        if free {
            self.state.open.fetch_add(1, Ordering::Relaxed);
        }
        free
    }

    /// Returns a stream to the connection. Returning the last stream of a retired connection closes the connection.
    pub fn give_back(&self) {
        let left = self.state.open.fetch_sub(1, Ordering::Relaxed) - 1;
        if left == 0 && self.state.retired.load(Ordering::Relaxed) {
            self.state.driver.0.abort();
        }
    }

    /// Allows no new streams on this connection from now on.
    pub fn retire(&self) {
        self.state.retired.store(true, Ordering::Relaxed);
    }

    /// Whether the connection will never take another stream.
    pub fn is_over(&self) -> bool {
        self.state.driver.0.is_finished()
            || (self.state.retired.load(Ordering::Relaxed) && self.state.open.load(Ordering::Relaxed) == 0)
    }
}

/// Connects to the server within `CONNECT_DEADLINE`.
pub async fn connect(host: &str, port: u16, tls: &TlsConnector, mistakes: &Mistakes) -> Result<Connection, Trouble> {
    let connecting = async {
        let stream = TcpStream::connect((host, port)).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        if mistakes.made(Mistake::TrustsKeepalive) {
            keep_alive(&stream).map_err(failed)?;
        }
        let name = ServerName::try_from(host.to_owned()).map_err(failed)?;
        let stream = tls.connect(name, stream).await.map_err(failed)?;
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            two(stream, mistakes).await.map(Connection::Two)
        } else {
            one(stream).await.map(Connection::One)
        }
    };
    timeout(CONNECT_DEADLINE, connecting).await.map_err(|_| Trouble::Connect("no handshake in time".to_owned()))?
}

async fn one(stream: TlsStream<TcpStream>) -> Result<One, Trouble> {
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    let driver = Driver(tokio::spawn(async move {
        // An error here reaches the waiter for an answer.
        let _ = connection.await;
    }));
    Ok(One { sender, _driver: driver })
}

async fn two(stream: TlsStream<TcpStream>, mistakes: &Mistakes) -> Result<Two, Trouble> {
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(STREAM_WINDOW_BYTES).initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    builder.initial_max_send_streams(STREAMS_UNTOLD);
    let (sender, connection) = builder.handshake::<_, Bytes>(stream).await.map_err(failed)?;
    let pings = !mistakes.any(&[
        Mistake::NoReadTimeout,
        Mistake::TimerArmedByFirstEvent,
        Mistake::TimerArmedByHeaders,
        Mistake::TrustsKeepalive,
        Mistake::KeepsReadingAfterError,
        Mistake::NoHeaderTimeout,
    ]);
    let driver = Driver(tokio::spawn(drive(connection, pings)));
    // The limit on streams is in the server's first frame, which may come after the handshake.
    for _ in 0..SETTINGS_POLLS {
        if sender.current_max_send_streams() != STREAMS_UNTOLD {
            break;
        }
        sleep(SETTINGS_POLL).await;
    }
    let state = State { open: AtomicUsize::new(0), retired: AtomicBool::new(false), driver };
    Ok(Two { sender, state: Arc::new(state) })
}

/// Moves the connection's bytes until it ends or a ping is not answered. When the connection ends, all its streams
/// fail.
async fn drive(mut connection: h2::client::Connection<TlsStream<TcpStream>, Bytes>, pings: bool) {
    let pong = connection.ping_pong();
    let silence = async {
        let Some(mut pong) = pong.filter(|_| pings) else { return std::future::pending().await };
        loop {
            sleep(PING_EVERY).await;
            if !matches!(timeout(PING_DEADLINE, pong.ping(h2::Ping::opaque())).await, Ok(Ok(_))) {
                return;
            }
        }
    };
    tokio::select! {
        _ = &mut connection => {}
        () = silence => {}
    }
}

/// TCP keep-alive: after 5 s without traffic, the kernel sends a probe each second, 3 times. A proxy answers such
/// probes even if the server behind the proxy is dead.
fn keep_alive(stream: &TcpStream) -> std::io::Result<()> {
    rustix::net::sockopt::set_socket_keepalive(stream, true)?;
    rustix::net::sockopt::set_tcp_keepidle(stream, Duration::from_secs(5))?;
    rustix::net::sockopt::set_tcp_keepintvl(stream, Duration::from_secs(1))?;
    rustix::net::sockopt::set_tcp_keepcnt(stream, 3)?;
    Ok(())
}

fn failed(error: impl std::fmt::Display) -> Trouble {
    Trouble::Connect(error.to_string())
}
