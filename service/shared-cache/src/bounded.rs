//! A stream that may only bring as much as was asked for: whoever answers more is cut off before it is held.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are still to come, at most.
#[derive(Debug, Clone)]
pub struct Allowance {
    left: Arc<AtomicUsize>,
    most: usize,
}

impl Allowance {
    /// So many now, and never more than `most`.
    pub fn new(now: usize, most: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(now)), most }
    }

    /// An answer of so many bytes may come.
    pub fn add(&self, bytes: usize) {
        let more = |left: usize| Some(left.saturating_add(bytes).min(self.most));
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    fn take(&self, bytes: usize) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// The stream.
pub struct Bounded<S> {
    inner: S,
    allowance: Allowance,
}

impl<S> Bounded<S> {
    /// `inner` with what it may bring.
    pub fn new(inner: S, allowance: Allowance) -> Self {
        Self { inner, allowance }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let came = buffer.filled().len() - before;
        Poll::Ready(if self.allowance.take(came) {
            Ok(())
        } else {
            buffer.set_filled(before);
            Err(io::Error::new(io::ErrorKind::InvalidData, "it answered more than was asked for"))
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
