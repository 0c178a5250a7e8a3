//! A TCP forwarder that counts the bytes in both directions, including TLS: the real traffic on the wire.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Maximum number of bytes that the forwarder buffers for each direction of a connection.
const CARRIED_BYTES: usize = 128 << 10;

/// A listening port that forwards to a server. The port is closed on drop.
pub(crate) struct Forwarder {
    pub(crate) address: SocketAddr,
    counts: Arc<Counts>,
    _accepting: JoinSet<()>,
}

#[derive(Default)]
struct Counts {
    up: AtomicU64,
    down: AtomicU64,
}

impl Forwarder {
    pub(crate) async fn start(to: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, counts) = (listener.local_addr()?, Arc::new(Counts::default()));
        let (mut accepting, counted) = (JoinSet::new(), Arc::clone(&counts));
        accepting.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let counts = Arc::clone(&counted);
                // If one side closes, the other is closed too.
                open.spawn(async move { forward(client, to, &counts).await.unwrap_or_default() });
                while open.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, counts, _accepting: accepting })
    }

    /// Number of bytes sent to the server, and number of bytes received from the server, so far.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.counts.up.load(Ordering::Relaxed), self.counts.down.load(Ordering::Relaxed))
    }
}

async fn forward(mut client: TcpStream, to: SocketAddr, counts: &Counts) -> std::io::Result<()> {
    let mut server = TcpStream::connect(to).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
    tokio::select! {
        ended = carry(from_client, to_server, &counts.up) => ended,
        ended = carry(from_server, to_client, &counts.down) => ended,
    }
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: &AtomicU64,
) -> std::io::Result<()> {
    let mut bytes = vec![0; CARRIED_BYTES];
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 {
            return Ok(());
        }
        count.fetch_add(read as u64, Ordering::Relaxed);
        to.write_all(&bytes[..read]).await?;
    }
}
