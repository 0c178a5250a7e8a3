//! Response bodies: whole, or cut short on purpose.
//!
//! Owns how bytes leave; what they are is decided elsewhere.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// A response body. Contents are shared bytes, so a body costs no copy of a blob.
#[derive(Debug)]
pub(super) struct Body {
    bytes: Bytes,
    /// What the peer is promised; more than `bytes` when the body is cut.
    promised: u64,
    /// Set once after the bytes of a cut body, so that the connection flushes them before it is torn down.
    flushed: bool,
}

/// The body ends before what its length promised; hyper closes the connection or resets the stream on it.
#[derive(Debug, thiserror::Error)]
#[error("the body was cut short by a fault")]
pub(super) struct Cut;

impl Body {
    pub(super) fn empty() -> Self {
        Self::full(Bytes::new())
    }

    pub(super) fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { promised: bytes.len() as u64, bytes, flushed: false }
    }

    /// The same body, ending after half of its bytes with an error instead of an end.
    pub(super) fn cut_in_half(self) -> Self {
        Self { bytes: self.bytes.slice(..self.bytes.len() / 2), ..self }
    }

    /// What the peer is promised, in bytes.
    pub(super) const fn promised(&self) -> u64 {
        self.promised
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Bytes that really leave.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if !self.bytes.is_empty() {
            let bytes = std::mem::take(&mut self.bytes);
            self.promised -= bytes.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if self.promised == 0 {
            return Poll::Ready(None);
        }
        if !self.flushed {
            self.flushed = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Err(Cut)))
    }

    fn is_end_stream(&self) -> bool {
        self.promised == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.promised)
    }
}
