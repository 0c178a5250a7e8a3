//! A byte stream between TLS and hyper that detects floods of frames and a socket that takes no data.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::connection_state::ConnectionState;
use super::frames::{Flood, Frames};

/// A byte stream that checks bytes as they pass.
pub(super) struct Watched<S> {
    stream: S,
    /// The reader of HTTP/2 frames; `None` for HTTP/1.1.
    frames: Option<Frames>,
    standing: Arc<ConnectionState>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, frames: Option<Frames>, standing: &Arc<ConnectionState>) -> Self {
        Self { stream, frames, standing: Arc::clone(standing) }
    }

    fn wrote(&mut self, poll: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.standing.takes(poll.is_ready());
        if let (Some(frames), Poll::Ready(Ok(count))) = (&mut self.frames, &poll) {
            frames.sent(*count);
        }
        poll
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = out.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, out))?;
        let Some(frames) = &mut this.frames else { return Poll::Ready(Ok(())) };
        let seen = frames.read(&out.filled()[before..], Instant::now).and_then(|seen| {
            if seen.is_whole {
                this.standing.show();
            }
            if seen.is_greedy {
                this.standing.ask_to_leave();
            }
            if this.standing.is_hopeless() { Err(Flood::Frames) } else { Ok(()) }
        });
        match seen {
            Ok(()) => Poll::Ready(Ok(())),
            Err(flood) => {
                this.standing.cut("flood");
                Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, flood)))
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wrote(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        self.standing.takes(poll.is_ready());
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.standing.takes(poll.is_ready());
        poll
    }
}
