//! Tests of the TCP proxy over real sockets: the effects of every network fault on subject and server, and the service
//! without a fault.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

mod clean;
mod faults;
mod loss;

use std::net::SocketAddr;
use std::time::Duration;

use mock_faults::{Fault, FaultId, Name};
use mock_proxy::{Config, Proxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use units::Span;

/// The deadline of each operation in a test: longer than any operation needs, and short enough to notice a hang.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a test waits to see that no bytes arrive; long enough for loopback.
const MOMENT: Duration = Duration::from_millis(100);
const ID: FaultId = FaultId(7);

/// A listening socket on which tests accept connections as the server, and a proxy in front of it.
struct World {
    server: TcpListener,
    proxy: Proxy,
}

/// The subject's and the server's socket of one connection through the proxy.
struct Pair {
    subject: TcpStream,
    server: TcpStream,
}

impl World {
    async fn start() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(adapt: impl FnOnce(&mut Config)) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = Config::new(server.local_addr().unwrap());
        adapt(&mut config);
        let proxy = Proxy::start(config).await.unwrap();
        Self { server, proxy }
    }

    async fn pair(&self) -> Pair {
        let subject = TcpStream::connect(self.proxy.address()).await.unwrap();
        let (server, _) = tokio::time::timeout(PATIENCE, self.server.accept()).await.expect("upstream").unwrap();
        Pair { subject, server }
    }

    fn begin(&self, fault: &Fault) {
        self.proxy.faults().begin(ID, fault).unwrap();
    }

    fn end(&self) {
        self.proxy.faults().end(ID);
    }

    fn hits(&self) -> u64 {
        self.proxy.faults().hits(ID)
    }

    fn details(&self) -> Vec<String> {
        self.proxy.faults().take_hits().into_iter().map(|hit| hit.detail).collect()
    }
}

impl Pair {
    /// Whether bytes pass in both directions.
    async fn is_healthy(&mut self) -> bool {
        send(&mut self.subject, b"ask").await;
        let asked = receive(&mut self.server, 3).await;
        send(&mut self.server, b"told").await;
        asked == b"ask" && receive(&mut self.subject, 4).await == b"told"
    }
}

/// A fault that begins while the subject runs.
fn later(name: Name) -> Fault {
    Fault::new(name, Span::default())
}

async fn send(tcp: &mut TcpStream, bytes: &[u8]) {
    tokio::time::timeout(PATIENCE, tcp.write_all(bytes)).await.expect("sent in time").unwrap();
}

async fn receive(tcp: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    tokio::time::timeout(PATIENCE, tcp.read_exact(&mut bytes)).await.expect("received in time").unwrap();
    bytes
}

/// Reads the bytes until the end of a connection; returns them, and whether the connection ended with an error.
async fn rest(tcp: &mut TcpStream) -> (Vec<u8>, std::io::Result<()>) {
    let mut bytes = Vec::new();
    let end = tokio::time::timeout(PATIENCE, tcp.read_to_end(&mut bytes)).await.expect("an end in time");
    (bytes, end.map(drop))
}

async fn is_silent(tcp: &mut TcpStream) -> bool {
    tokio::time::timeout(MOMENT, tcp.read_u8()).await.is_err()
}

/// Waits until a condition holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "in time: {what}");
}

/// Bytes that this machine has sent on a connection and the peer has not acknowledged.
fn unacknowledged(tcp: &TcpStream) -> Option<u64> {
    // `man 5 proc`: the second column is the local address, the fifth the send queue and the receive queue, in hex.
    let SocketAddr::V4(local) = tcp.local_addr().ok()? else { return None };
    let local = format!("{:08X}:{:04X}", u32::from_ne_bytes(local.ip().octets()), local.port());
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let line = table.lines().find(|line| line.split_whitespace().nth(1) == Some(&local))?;
    u64::from_str_radix(line.split_whitespace().nth(4)?.split(':').next()?, 16).ok()
}
