//! `registry-down`: new connections are reset, closed, or accepted and never served. Open connections end in the same
//! way. A hit is one refused or ended connection. A connection that is never served stays open until the fault ends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use mock_faults::{DownKeys, Name};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::{Behaviour, How, Inner, Kind};

/// The behaviour of `registry-down`, which affects connections instead of single requests.
pub(super) struct Down;

/// Whether and how a new connection is served.
pub(crate) enum Acceptance {
    /// The connection is served, until a fault ends it.
    Open(Arc<Line>),
    /// The connection is closed at once, by RST or FIN.
    Shut(How),
    /// The connection stays open without any answer until this token is cancelled.
    Silent(CancellationToken),
}

#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) id: u64,
    peer: SocketAddr,
    /// Cancelled when a fault ends the connection.
    severed: CancellationToken,
    /// Whether closing sends RST.
    reset: AtomicBool,
    /// If set, the connection stays open without any answer until this token is cancelled.
    silent: parking_lot::Mutex<Option<CancellationToken>>,
}

#[derive(Debug, Default)]
pub(super) struct Lines {
    open: BTreeMap<u64, Arc<Line>>,
    next: u64,
}

/// A socket that is closed with or without RST, as its [`Line`] requires.
pub(crate) struct Wire {
    tcp: TcpStream,
    line: Arc<Line>,
}

impl Behaviour for Down {
    fn concerns(&self, _kind: Kind) -> bool {
        false
    }
}

impl Lines {
    fn open(&mut self, peer: SocketAddr) -> Arc<Line> {
        let id = self.next;
        self.next += 1;
        let line = Arc::new(Line {
            id,
            peer,
            severed: CancellationToken::new(),
            reset: AtomicBool::new(false),
            silent: parking_lot::Mutex::default(),
        });
        self.open.insert(id, line.clone());
        line
    }

    pub(super) fn remove(&mut self, id: u64) {
        self.open.remove(&id);
    }
}

impl Line {
    /// Waits until a fault ends the connection.
    pub(crate) async fn cut(&self) {
        self.severed.cancelled().await;
    }

    /// Waits until a connection without answers may be closed after the fault.
    pub(crate) async fn released(&self) {
        let silent = self.silent.lock().clone();
        if let Some(over) = silent {
            over.cancelled().await;
        }
    }

    pub(crate) fn wire(self: &Arc<Self>, tcp: TcpStream) -> Wire {
        Wire { tcp, line: self.clone() }
    }
}

impl Inner {
    /// Ends the open connections for a fault that has just begun.
    pub(super) fn sever(&mut self, index: usize, now_us: u64) {
        if self.table.entries[index].fault.counts_turns() {
            return;
        }
        let (how, over) = self.how(index);
        let open: Vec<Arc<Line>> = self.lines.open.values().cloned().collect();
        for line in open.into_iter().filter(|line| !line.severed.is_cancelled()) {
            if !self.table.picks(index) {
                continue;
            }
            match how {
                How::Reset => line.reset.store(true, Ordering::Release),
                How::Close => {}
                How::Hang => *line.silent.lock() = Some(over.clone()),
            }
            line.severed.cancel();
            self.table.hit(index, now_us, format!("open connection from {} {}", line.peer, past(how)));
        }
    }

    pub(super) fn admit(&mut self, peer: SocketAddr, now_us: u64) -> Acceptance {
        for index in 0..self.table.entries.len() {
            let entry = &self.table.entries[index];
            if !entry.active || entry.fault.name != Name::RegistryDown || !self.table.picks(index) {
                continue;
            }
            let (how, over) = self.how(index);
            self.table.hit(index, now_us, format!("new connection from {peer} {}", past(how)));
            return if how == How::Hang { Acceptance::Silent(over) } else { Acceptance::Shut(how) };
        }
        Acceptance::Open(self.lines.open(peer))
    }

    fn how(&self, index: usize) -> (How, CancellationToken) {
        let entry = &self.table.entries[index];
        (entry.fault.keys::<DownKeys>().how.unwrap_or(How::Reset), entry.played.over.clone())
    }
}

fn past(how: How) -> &'static str {
    match how {
        How::Reset => "reset",
        How::Close => "closed",
        How::Hang => "left alone",
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.line.reset.load(Ordering::Acquire) {
            let _ = self.tcp.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
