//! Bodies of answers. An answer's body holds the memory of its call until the last byte was sent. Streams whose answers
//! are not read are reset.
//!
//! An answer's body is a single [`Piece`] of data for hyper. The [`Piece`] holds the memory of its call until hyper
//! drops it: after it was written, or with its stream or connection.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::rt::Executor;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use super::call_memory::{Hold, NoRoom};
use super::connection_state::ConnectionState;
use super::slots::Call;

/// A stream is reset if its answer waits this long for the client's window.
const UNREAD_MAX: Duration = Duration::from_secs(5);
/// An answer makes progress each time that hyper has written this many more of its bytes.
const MOVED_BYTES: usize = 16 << 10;

thread_local! {
    /// Whether hyper got the body of an answer while the current stream was polled.
    static IS_GIVEN: Cell<bool> = const { Cell::new(false) };
}

#[derive(Debug)]
pub(super) struct Debt {
    hold: Hold,
    standing: Arc<ConnectionState>,
    _call: Call,
}

#[derive(Debug)]
pub(super) struct Owed {
    body: Full<Bytes>,
    debt: Option<Debt>,
}

/// The bytes of an answer that hyper has not written yet.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Bytes,
    moved_bytes: usize,
    /// The resources of the call, and the turn (2 s interval) in which bytes of the answer were last sent.
    debt: Option<(Debt, u32)>,
}

impl Debt {
    pub(super) fn new(hold: Hold, standing: Arc<ConnectionState>, call: Call) -> Self {
        Self { hold, standing, _call: call }
    }

    /// Replaces the memory of the head with memory for an answer of `bytes`.
    pub(super) fn answer(&mut self, bytes: usize) -> Result<(), NoRoom> {
        self.hold.answer(bytes)
    }
}

impl Owed {
    pub(super) fn new(body: Full<Bytes>, debt: Debt) -> Self {
        Self { body, debt: Some(debt) }
    }

    /// An empty body, for a refused call.
    pub(super) fn nothing() -> Self {
        Self { body: Full::default(), debt: None }
    }
}

impl Body for Owed {
    type Data = Piece;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Piece>, Infallible>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let debt = self.debt.take();
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| {
                IS_GIVEN.set(true);
                frame.map_data(|bytes| Piece::new(bytes, debt))
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Piece {
    fn new(bytes: Bytes, debt: Option<Debt>) -> Self {
        let debt = debt.map(|debt| {
            let turn = debt.standing.begin();
            (debt, turn)
        });
        Self { bytes, moved_bytes: 0, debt }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.moved_bytes += count;
        if self.moved_bytes >= MOVED_BYTES
            && let Some((debt, turn)) = &mut self.debt
        {
            self.moved_bytes = 0;
            debt.standing.move_on(turn);
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some((debt, turn)) = &self.debt {
            debt.standing.end(*turn);
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Streams(pub Arc<ConnectionState>);

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(Taken { stream, timer: None, standing: Arc::clone(&self.0) });
    }
}

pin_project! {
    /// An HTTP/2 stream that lives until the client's window has let the whole answer through. If [`Taken`] is dropped
    /// before the whole answer is sent, hyper resets the stream.
    struct Taken<F> {
        #[pin]
        stream: F,
        timer: Option<Pin<Box<Sleep>>>,
        standing: Arc<ConnectionState>,
    }
}

impl<F: Future<Output = ()>> Future for Taken<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        IS_GIVEN.set(false);
        if this.stream.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // hyper has the answer and waits for a window; up to here nothing of it was taken.
        if IS_GIVEN.get() {
            *this.timer = Some(Box::pin(sleep(UNREAD_MAX)));
        }
        if let Some(timer) = this.timer {
            ready!(timer.as_mut().poll(cx));
            this.standing.cut("stream");
            return Poll::Ready(());
        }
        Poll::Pending
    }
}
