//! Response bodies: whole, or cut short by a fault.
//!
//! Owns how the bytes of an answer are sent. Callers choose the bytes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::Sleep;

/// Number of pieces per second in which the fault `registry-slow` sends a body.
const PIECES_PER_SECOND: u64 = 10;
const PIECE_EVERY: Duration = Duration::from_millis(1000 / PIECES_PER_SECOND);

/// A response body. Contents are shared bytes, so a body costs no copy of a blob.
#[derive(Debug)]
pub(super) struct Body {
    bytes: Bytes,
    /// The length in `Content-Length`; more than `bytes` if the body is cut.
    promised: u64,
    /// True after the last bytes of a cut body, so that these bytes are flushed before the connection is closed.
    flushed: bool,
    /// Set if the body is sent slowly, in small pieces.
    drip: Option<Drip>,
}

/// The progress of a body that is sent slowly.
#[derive(Debug)]
struct Drip {
    piece_bytes: usize,
    pause: Pin<Box<Sleep>>,
}

/// The error that ends a body before its promised length. On this error hyper closes the connection or resets the
/// stream.
#[derive(Debug, thiserror::Error)]
#[error("the body was cut short by a fault")]
pub(super) struct Cut;

impl Body {
    pub(super) fn empty() -> Self {
        Self::full(Bytes::new())
    }

    pub(super) fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { promised: bytes.len() as u64, bytes, flushed: false, drip: None }
    }

    /// Makes the body end with an error after half of its bytes.
    pub(super) fn cut_in_half(self) -> Self {
        Self { bytes: self.bytes.slice(..self.bytes.len() / 2), ..self }
    }

    /// Makes the body go out in small pieces, at this many bytes a second.
    pub(super) fn trickling(self, bytes_per_second: u64) -> Self {
        let piece_bytes = usize::try_from(bytes_per_second.div_ceil(PIECES_PER_SECOND)).unwrap_or(usize::MAX).max(1);
        Self { drip: Some(Drip { piece_bytes, pause: Box::pin(tokio::time::sleep(PIECE_EVERY)) }), ..self }
    }

    /// The length in `Content-Length`, in bytes.
    pub(super) const fn promised(&self) -> u64 {
        self.promised
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    pub(super) fn sent_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if !self.bytes.is_empty() {
            let Self { bytes, drip, .. } = &mut *self;
            let bytes = match drip {
                None => std::mem::take(bytes),
                Some(Drip { piece_bytes, pause }) => {
                    ready!(pause.as_mut().poll(cx));
                    let next = tokio::time::Instant::now() + PIECE_EVERY;
                    pause.as_mut().reset(next);
                    bytes.split_to(bytes.len().min(*piece_bytes))
                }
            };
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
