//! The two ends of a connection's byte stream: the TCP socket below TLS, and the counter of flushes above TLS.
//!
//! Owns closing a connection with a reset, freezing it by a fault, the deadline of writes, and counting completed
//! flushes. While a fault freezes a connection, the socket reads incoming bytes and keeps them up to a limit, but does
//! not serve them. By reading, the server notices when the client has left, so that the connection no longer counts as
//! open.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use mock_faults::handle::{Handle, Way};
use mock_faults::{FaultId, Faults};

/// Maximum number of bytes that a client can send into a frozen connection before the kernel makes the client wait.
const ASIDE_BYTES_MAX: usize = 64 * 1024;

/// A TCP connection that can be reset or frozen, and that ends if its peer does not read for too long.
#[derive(Debug)]
pub(super) struct Socket {
    /// `None` only while the socket is being dropped.
    tcp: Option<TcpStream>,
    reset: Arc<AtomicBool>,
    handle: Arc<Handle>,
    faults: Arc<Faults>,
    /// Keeps the TCP socket open if its connection ends while frozen, because the client must not see that end.
    grave: Grave,
    /// Bytes that were received while the connection was frozen.
    aside: BytesMut,
    client_left: bool,
    write_timeout: Duration,
    /// The write deadline; `None` unless a write waits.
    deadline: Option<Pin<Box<Sleep>>>,
}

/// A TCP socket whose connection has ended.
pub(super) type Grave = Arc<Mutex<Option<TcpStream>>>;

impl Socket {
    pub fn new(
        tcp: TcpStream,
        reset: Arc<AtomicBool>,
        handle: Arc<Handle>,
        faults: Arc<Faults>,
        grave: Grave,
        write_timeout: Duration,
    ) -> Self {
        let (tcp, aside) = (Some(tcp), BytesMut::new());
        Self { tcp, reset, handle, faults, grave, aside, client_left: false, write_timeout, deadline: None }
    }

    fn tcp(&mut self) -> Pin<&mut TcpStream> {
        Pin::new(self.tcp.as_mut().expect("the socket is there until it is dropped"))
    }

    /// The active fault that stops all sending on the connection. The task is woken when no fault stops the sending any
    /// more.
    fn stands_still(&mut self, cx: &mut Context<'_>) -> Option<FaultId> {
        self.handle.wakes(cx.waker());
        let by = self.handle.frozen(Way::Out)?;
        // The client is not responsible for the time of the standstill.
        self.deadline = None;
        Some(by)
    }

    /// Keeps the incoming bytes of a frozen connection; ready only when the client has left.
    fn poll_aside(&mut self, cx: &mut Context<'_>, by: FaultId) -> Poll<io::Result<()>> {
        while self.aside.len() < ASIDE_BYTES_MAX {
            let mut piece = [0; 2048];
            let mut buffer = ReadBuf::new(&mut piece);
            let read = ready!(self.tcp().poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                self.client_left = true;
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the client left")));
            }
            self.aside.extend_from_slice(buffer.filled());
            self.faults.on_connection(&self.handle, by, "bytes of the client not read", false);
        }
        Poll::Pending
    }

    fn timed<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.deadline = None;
            return poll;
        }
        let timeout = self.write_timeout;
        let deadline =
            self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + timeout)));
        match deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let Some(tcp) = self.tcp.take() else { return };
        if self.reset.load(Ordering::Acquire) {
            // Closing with a zero linger time discards unsent data and sends RST.
            let _ = tcp.set_zero_linger();
        } else if !self.client_left && self.handle.is_frozen() {
            *self.grave.lock() = Some(tcp);
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.handle.wakes(cx.waker());
        if let Some(by) = this.handle.frozen(Way::In) {
            return this.poll_aside(cx, by);
        }
        if !this.aside.is_empty() {
            let count = this.aside.len().min(buf.remaining());
            buf.put_slice(&this.aside.split_to(count));
            return Poll::Ready(Ok(()));
        }
        this.tcp().poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Some(by) = this.stands_still(cx) {
            this.faults.on_connection(&this.handle, by, "bytes to the client withheld", false);
            return Poll::Pending;
        }
        let poll = this.tcp().poll_write(cx, buf);
        this.timed(cx, poll)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Some(by) = this.stands_still(cx) {
            this.faults.on_connection(&this.handle, by, "bytes to the client withheld", false);
            return Poll::Pending;
        }
        let poll = this.tcp().poll_write_vectored(cx, bufs);
        this.timed(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().tcp().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.stands_still(cx).is_some() {
            return Poll::Pending;
        }
        this.tcp().poll_shutdown(cx)
    }
}

/// Counts completed flushes: a flush completes when the kernel has all bytes written before it.
#[derive(Debug)]
pub(super) struct Metered<S> {
    inner: S,
    flushes: Arc<AtomicU64>,
}

impl<S> Metered<S> {
    pub fn new(inner: S, flushes: Arc<AtomicU64>) -> Self {
        Self { inner, flushes }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let poll = Pin::new(&mut this.inner).poll_flush(cx);
        if matches!(poll, Poll::Ready(Ok(()))) {
            this.flushes.fetch_add(1, Ordering::Release);
        }
        poll
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use mock_faults::{Fault, Name};

    /// A socket whose connection ends while frozen stays open, unless the server resets it or its client has left.
    #[tokio::test]
    async fn a_client_does_not_see_an_end_that_came_while_nothing_moved() {
        for (frozen, reset, kept) in [(true, false, true), (true, true, false), (false, false, false)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (tcp, _) = listener.accept().await.unwrap();
            let (handle, faults, grave) = (Arc::new(Handle::new(1, 0)), Arc::new(Faults::new(0)), Grave::default());
            faults.begin(FaultId(1), &Fault::armed(Name::Freeze)).unwrap();
            if frozen {
                assert!(handle.freeze(FaultId(1), Way::Out));
            }
            let ends = Arc::new(AtomicBool::new(reset));
            drop(Socket::new(tcp, ends, handle, faults, grave.clone(), Duration::from_secs(1)));
            assert_eq!(grave.lock().is_some(), kept);
            let mut byte = [0];
            let silent = tokio::time::timeout(Duration::from_millis(50), client.readable()).await.is_err();
            assert_eq!(silent, kept, "{:?}", client.try_read(&mut byte));
        }
    }
}
