//! An HTTP/2 frame filter between TLS and the HTTP library. The filter removes client PINGs that a fault leaves
//! unanswered, and inserts a GOAWAY between two frames.
//!
//! The filter finds the boundaries of frames in both directions (RFC 9113, section 4.1: a length of 24 bits, a type,
//! flags, a stream), however the bytes are split into reads and writes. Without a fault, the filter changes no bytes,
//! and buffers at most one frame header. The filter must not answer or interpret frames.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use mock_faults::Faults;
use mock_faults::handle::{Goaway, Handle};

/// `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`, which a client sends before its first frame (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;
const HEADER_BYTES: usize = 9;
const TYPE_HEADERS: u8 = 0x1;
const TYPE_PING: u8 = 0x6;
const TYPE_GOAWAY: u8 = 0x7;
const FLAG_ACK: u8 = 0x1;

/// A byte stream whose frame boundaries are tracked.
#[derive(Debug)]
pub(super) struct Frames<S> {
    inner: S,
    handle: Arc<Handle>,
    faults: Arc<Faults>,
    incoming: Incoming,
    outgoing: Outgoing,
    /// The highest HTTP/2 stream number that the client has used.
    last_stream: u32,
    /// The frame that is being inserted, and the number of bytes of this frame that are already written.
    inserting: Option<(Vec<u8>, usize)>,
    /// Whether the connection closes after the inserted frame.
    closing: bool,
    /// An error of the socket, which is returned after the bytes that were read before the error.
    failed: Option<io::Error>,
}

/// The filter's position in the byte stream from the client.
#[derive(Debug)]
enum Incoming {
    Preface(usize),
    Header(Header),
    /// A frame header that is being passed to the HTTP library; the payload follows.
    Emitting {
        header: [u8; HEADER_BYTES],
        sent: usize,
        /// Length of the frame header in bytes; shorter than a whole header only at the end of the stream.
        of: usize,
        payload: usize,
    },
    Payload(usize),
    Dropping(usize),
}

#[derive(Debug, Clone, Copy, Default)]
struct Header {
    bytes: [u8; HEADER_BYTES],
    have: usize,
}

/// The filter's position in the byte stream to the client.
#[derive(Debug, Default)]
struct Outgoing {
    header: Header,
    payload: usize,
}

impl Header {
    fn payload(&self) -> usize {
        usize::from(self.bytes[0]) << 16 | usize::from(self.bytes[1]) << 8 | usize::from(self.bytes[2])
    }

    fn kind(&self) -> u8 {
        self.bytes[3]
    }

    fn is_ack(&self) -> bool {
        self.bytes[4] & FLAG_ACK != 0
    }

    fn stream(&self) -> u32 {
        // The first bit is reserved.
        u32::from_be_bytes([self.bytes[5], self.bytes[6], self.bytes[7], self.bytes[8]]) & 0x7fff_ffff
    }
}

impl Outgoing {
    /// Whether the next byte is the first byte of a frame.
    fn at_boundary(&self) -> bool {
        self.header.have == 0 && self.payload == 0
    }

    /// Moves the position forward by bytes that were written.
    fn advance(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.payload > 0 {
                let count = self.payload.min(bytes.len());
                self.payload -= count;
                bytes = &bytes[count..];
                continue;
            }
            let Header { bytes: header, have } = &mut self.header;
            let count = (HEADER_BYTES - *have).min(bytes.len());
            header[*have..*have + count].copy_from_slice(&bytes[..count]);
            *have += count;
            bytes = &bytes[count..];
            if self.header.have == HEADER_BYTES {
                self.payload = self.header.payload();
                self.header = Header::default();
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Frames<S> {
    pub fn new(inner: S, handle: Arc<Handle>, faults: Arc<Faults>) -> Self {
        Self {
            inner,
            handle,
            faults,
            incoming: Incoming::Preface(PREFACE_BYTES),
            outgoing: Outgoing::default(),
            last_stream: 0,
            inserting: None,
            closing: false,
            failed: None,
        }
    }

    /// Inserts a waiting frame if the next byte begins a frame. Ready when no frame remains to be inserted.
    fn poll_insert(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.inserting.is_none() && !self.closing {
            if !self.outgoing.at_boundary() {
                return Poll::Ready(Ok(()));
            }
            let Some(Goaway { code, drain }) = self.handle.take_goaway() else { return Poll::Ready(Ok(())) };
            self.inserting = Some((goaway(self.last_stream, code), 0));
            self.closing = !drain;
        }
        while let Some((bytes, written)) = &mut self.inserting {
            let count = ready!(Pin::new(&mut self.inner).poll_write(cx, &bytes[*written..]))?;
            *written += count;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            if *written == bytes.len() {
                self.inserting = None;
            }
        }
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        if self.closing {
            // A real server closes with the closing alert of TLS and FIN.
            ready!(Pin::new(&mut self.inner).poll_shutdown(cx))?;
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, "closed after GOAWAY")));
        }
        Poll::Ready(Ok(()))
    }

    /// Decides whether a frame of the client is passed to the HTTP library or removed.
    fn decide(&mut self, header: Header) -> Incoming {
        let payload = header.payload();
        if header.kind() == TYPE_HEADERS {
            self.last_stream = self.last_stream.max(header.stream());
        }
        if header.kind() == TYPE_PING
            && !header.is_ack()
            && let Some(by) = self.handle.ignores_pings()
        {
            self.faults.on_connection(&self.handle, by, "PING not answered", true);
            return if payload == 0 { Incoming::Header(Header::default()) } else { Incoming::Dropping(payload) };
        }
        Incoming::Emitting { header: header.bytes, sent: 0, of: HEADER_BYTES, payload }
    }

    /// Reads or passes on some bytes; `Ready(false)` means that the stream has ended.
    fn poll_step(&mut self, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<bool>> {
        match &mut self.incoming {
            Incoming::Preface(left) | Incoming::Payload(left) => {
                let count = ready!(poll_some(&mut self.inner, cx, out, *left))?;
                *left -= count;
                if *left == 0 {
                    self.incoming = Incoming::Header(Header::default());
                }
                Poll::Ready(Ok(count > 0))
            }
            Incoming::Emitting { header, sent, of, payload } => {
                let count = (*of - *sent).min(out.remaining());
                out.put_slice(&header[*sent..*sent + count]);
                *sent += count;
                if *sent == HEADER_BYTES {
                    self.incoming =
                        if *payload == 0 { Incoming::Header(Header::default()) } else { Incoming::Payload(*payload) };
                }
                Poll::Ready(Ok(count > 0))
            }
            Incoming::Header(header) => {
                let mut buffer = ReadBuf::new(&mut header.bytes[header.have..]);
                ready!(Pin::new(&mut self.inner).poll_read(cx, &mut buffer))?;
                let count = buffer.filled().len();
                header.have += count;
                let header = *header;
                if header.have == HEADER_BYTES {
                    self.incoming = self.decide(header);
                } else if count == 0 && header.have > 0 {
                    // A stream that ends inside a header ends there for the reader too.
                    self.incoming = Incoming::Emitting { header: header.bytes, sent: 0, of: header.have, payload: 0 };
                    return Poll::Ready(Ok(true));
                }
                Poll::Ready(Ok(count > 0))
            }
            Incoming::Dropping(left) => {
                let mut scratch = [0; 64];
                let mut buffer = ReadBuf::new(&mut scratch);
                let count = ready!(poll_some(&mut self.inner, cx, &mut buffer, *left))?;
                *left -= count;
                if *left == 0 {
                    self.incoming = Incoming::Header(Header::default());
                }
                Poll::Ready(Ok(count > 0))
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Frames<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        if let Some(error) = this.failed.take() {
            return Poll::Ready(Err(error));
        }
        // An idle connection is polled for reading only, so insertions are made from here too.
        this.handle.wakes(cx.waker());
        if this.handle.has_goaway() || this.inserting.is_some() || this.closing {
            match this.poll_insert(cx) {
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) | Poll::Pending => {}
            }
        }
        while buf.remaining() > 0 {
            match this.poll_step(cx, buf) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Err(error)) if buf.filled().len() == before => return Poll::Ready(Err(error)),
                Poll::Pending if buf.filled().len() == before => return Poll::Pending,
                // Bytes that were read are returned first.
                Poll::Ready(Err(error)) => {
                    this.failed = Some(error);
                    break;
                }
                Poll::Ready(Ok(false)) | Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Frames<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.handle.has_goaway() || this.inserting.is_some() || this.closing {
            ready!(this.poll_insert(cx))?;
        }
        let count = ready!(Pin::new(&mut this.inner).poll_write(cx, buf))?;
        this.outgoing.advance(&buf[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.handle.has_goaway() || this.inserting.is_some() || this.closing {
            ready!(this.poll_insert(cx))?;
        }
        let count = ready!(Pin::new(&mut this.inner).poll_write_vectored(cx, bufs))?;
        let mut left = count;
        for buf in bufs {
            let of_this = left.min(buf.len());
            this.outgoing.advance(&buf[..of_this]);
            left -= of_this;
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.handle.has_goaway() || this.inserting.is_some() || this.closing {
            ready!(this.poll_insert(cx))?;
        }
        Pin::new(&mut this.inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

/// Reads at most `most` bytes.
fn poll_some<S: AsyncRead + Unpin>(
    inner: &mut S,
    cx: &mut Context<'_>,
    out: &mut ReadBuf<'_>,
    most: usize,
) -> Poll<io::Result<usize>> {
    let most = most.min(out.remaining());
    let mut part = ReadBuf::new(out.initialize_unfilled_to(most));
    ready!(Pin::new(inner).poll_read(cx, &mut part))?;
    let count = part.filled().len();
    out.advance(count);
    Poll::Ready(Ok(count))
}

/// A GOAWAY frame (RFC 9113, section 6.8).
fn goaway(last_stream: u32, code: u32) -> Vec<u8> {
    let mut frame = vec![0, 0, 8, TYPE_GOAWAY, 0, 0, 0, 0, 0];
    frame.extend(last_stream.to_be_bytes());
    frame.extend(code.to_be_bytes());
    frame
}

#[cfg(test)]
mod tests;
