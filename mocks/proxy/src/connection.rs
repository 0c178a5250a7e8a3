//! One connection through the proxy: two sockets, two directions, and the handle by which faults reach it.
//!
//! Owns the end of a connection: who is told, and how. It must not decide what happens to it; faults do.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mock_faults::FaultId;
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::faults::Faults;
use super::pump::{Ended, pump};
use super::shape::{End, Shape, Way};

/// After a FIN of ours, the other side gets so long to close too; what it still sends is thrown away.
const LINGER: Duration = Duration::from_secs(1);
const DISCARD_BYTES: usize = 4096;

/// What faults and counters know of one open connection.
#[derive(Debug)]
pub(super) struct Link {
    pub id: u64,
    /// The subject's side.
    pub peer: SocketAddr,
    pub shape: watch::Sender<Shape>,
    /// Bytes given to the kernel so far.
    moved: [AtomicU64; 2],
    /// Faults whose first effect on this connection was counted; bounded by the faults that are remembered.
    counted: Mutex<BTreeSet<FaultId>>,
    /// The subject has closed its side.
    pub subject_gone: CancellationToken,
}

/// A connection that is being served; it leaves the list when this is dropped.
pub(super) struct Wire {
    link: Arc<Link>,
    faults: Arc<Faults>,
}

impl std::ops::Deref for Wire {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl Link {
    pub fn new(id: u64, peer: SocketAddr, shape: Shape) -> Self {
        let shape = watch::Sender::new(shape);
        Self {
            id,
            peer,
            shape,
            moved: Default::default(),
            counted: Mutex::default(),
            subject_gone: CancellationToken::new(),
        }
    }

    pub fn moved(&self, way: Way) -> u64 {
        self.moved[way as usize].load(Ordering::Acquire)
    }

    /// `connection 3 from 127.0.0.1:50112`.
    pub fn describe(&self) -> String {
        format!("connection {} from {}", self.id, self.peer)
    }

    /// Whether this is the first effect of a fault here.
    pub fn is_first(&self, by: FaultId) -> bool {
        self.counted.lock().insert(by)
    }
}

impl Wire {
    pub fn enlist(faults: &Arc<Faults>, link: Arc<Link>) -> Self {
        Self { link, faults: faults.clone() }
    }

    pub fn note_moved(&self, way: Way, count: usize) {
        let count = count as u64;
        self.link.moved[way as usize].fetch_add(count, Ordering::Release);
        self.faults.note_moved(way, count);
    }

    /// Records the first effect of a fault on this connection; later ones say nothing new.
    pub fn hit_once(&self, by: FaultId, what: impl FnOnce() -> String) {
        if self.link.is_first(by) {
            self.faults.hit(by, format!("{}: {}", self.link.describe(), what()));
        }
    }

    /// 0 to 1.
    pub fn random(&self) -> f64 {
        self.faults.random()
    }

    async fn ended(&self) -> End {
        let mut shape = self.link.shape.subscribe();
        loop {
            if let Some(end) = shape.borrow_and_update().end {
                return end;
            }
            if shape.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.faults.closed(self.link.id);
    }
}

/// Moves bytes until both sides are done or a fault ends it.
pub(super) async fn serve(wire: &Wire, mut subject: TcpStream, mut server: TcpStream) {
    // What comes in small pieces goes out so: delay is a fault of its own.
    let _ = (subject.set_nodelay(true), server.set_nodelay(true));
    let end = {
        let (from_subject, to_subject) = subject.split();
        let (from_server, to_server) = server.split();
        let moving = both(
            pump(from_subject, to_server, Way::ToServer, wire),
            pump(from_server, to_subject, Way::ToSubject, wire),
        );
        tokio::select! { end = wire.ended() => Some(end), end = moving => end }
    };
    match end {
        None => {}
        Some(End::Reset) => {
            let _ = (subject.set_zero_linger(), server.set_zero_linger());
        }
        Some(End::Close) => {
            let _ = server.set_zero_linger();
            drop(server);
            close(subject).await;
        }
    }
}

/// Both directions to their end, or the first that ends the whole connection.
async fn both(one: impl Future<Output = Ended>, two: impl Future<Output = Ended>) -> Option<End> {
    let (mut one, mut two) = (std::pin::pin!(one), std::pin::pin!(two));
    let first = tokio::select! {
        ended = one.as_mut() => (ended, true),
        ended = two.as_mut() => (ended, false),
    };
    let second = match first {
        (Ended::Whole(end), _) => return Some(end),
        (Ended::Finished, true) => two.await,
        (Ended::Finished, false) => one.await,
    };
    match second {
        Ended::Whole(end) => Some(end),
        Ended::Finished => None,
    }
}

/// Ends with FIN. What the other side still sends is read away for a moment, because closing over unread data would
/// send RST after the FIN.
pub(super) async fn close(mut tcp: TcpStream) {
    if tcp.shutdown().await.is_ok() {
        let _ = tokio::time::timeout(LINGER, discard(&tcp)).await;
    }
}

/// Reads and forgets until the other side closes.
pub(super) async fn discard(tcp: &TcpStream) {
    let mut buffer = [0; DISCARD_BYTES];
    loop {
        if tcp.readable().await.is_err() {
            return;
        }
        match tcp.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
