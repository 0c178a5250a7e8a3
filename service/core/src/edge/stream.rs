//! TLS over a socket, through the unbuffered interface of rustls. With the unbuffered interface, one system call reads
//! a whole review. A review is copied as rarely as possible and never waits in a small buffer that has to grow
//! (decision 022).
//!
//! This module owns three kinds of bytes: incomplete received records, decrypted bytes that nobody has read yet, and
//! encrypted bytes that the kernel has not taken. An idle connection holds no such bytes: reads use memory that all
//! connections of a thread share. rustls implements the TLS protocol.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::ServerConfig;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, UnbufferedStatus, WriteTraffic,
};
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Maximum number of bytes of an incomplete TLS message. rustls accepts no longer message in a handshake.
const PARTIAL_BYTES_MAX: usize = 64 << 10;
/// Maximum number of bytes of one read, and of decrypted bytes that wait for hyper: two TLS records, as much as hyper
/// reads at once.
const READ_BYTES: usize = 32 << 10;
/// Maximum number of plain bytes of a TLS record (RFC 8446, section 5.1).
const RECORD_BYTES: usize = 16 << 10;
/// Maximum number of bytes that rustls adds to the plain bytes of a record, in any TLS version, including a TLS message
/// before the record.
const RECORD_OVERHEAD_BYTES: usize = 256;
/// If this many bytes to a peer are unsent, nothing more is read from the peer.
const UNSENT_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static RECEIVED: RefCell<Box<[u8]>> = RefCell::new(vec![0; PARTIAL_BYTES_MAX + READ_BYTES].into());
    static TO_SEND: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The connection of a client after its handshake.
pub(super) struct TlsStream {
    tcp: TcpStream,
    tls: UnbufferedServerConnection,
    /// Received bytes of an incomplete message.
    partial: Vec<u8>,
    plain: Pending,
    unsent: Pending,
    /// Whether the peer has closed its direction of the connection.
    has_ended: bool,
    has_said_goodbye: bool,
}

/// A buffer of bytes whose beginning is already consumed.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    gone: usize,
}

impl Pending {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.gone..]
    }

    /// Consumes `count` bytes, and frees the memory if no bytes are left.
    fn advance(&mut self, count: usize) {
        self.gone += count;
        if self.gone == self.bytes.len() {
            *self = Self::default();
        }
    }

    /// Extends the buffer by `count` bytes; returns the former length.
    fn room(&mut self, count: usize) -> usize {
        let length = self.bytes.len();
        self.bytes.resize(length + count, 0);
        length
    }
}

/// Bytes to send as soon as the connection allows it.
#[derive(Clone, Copy)]
enum Send<'a> {
    Nothing,
    Data(&'a [u8]),
    Goodbye,
}

impl TlsStream {
    pub(super) async fn accept(config: Arc<ServerConfig>, tcp: TcpStream) -> io::Result<Self> {
        let tls = UnbufferedServerConnection::new(config).map_err(io::Error::other)?;
        let (plain, unsent) = (Pending::default(), Pending::default());
        let mut stream =
            Self { tcp, tls, partial: Vec::new(), plain, unsent, has_ended: false, has_said_goodbye: false };
        std::future::poll_fn(|cx| {
            loop {
                ready!(stream.poll_send(cx))?;
                if !stream.tls.is_handshaking() {
                    return Poll::Ready(io::Result::Ok(()));
                }
                if stream.has_ended {
                    return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                }
                ready!(stream.poll_receive(cx, &mut ReadBuf::new(&mut [])))?;
            }
        })
        .await?;
        Ok(stream)
    }

    pub(super) fn protocol(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    pub(super) fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(rustls::HandshakeKind::Resumed)
    }

    /// The client's certificate chain, leaf first.
    pub(super) fn certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.tls.peer_certificates()
    }

    /// Reads once from the socket and passes the bytes to rustls.
    fn poll_receive(&mut self, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        RECEIVED.with_borrow_mut(|received| {
            let held = self.partial.len();
            received[..held].copy_from_slice(&self.partial);
            let mut read = ReadBuf::new(&mut received[held..held + READ_BYTES]);
            ready!(Pin::new(&mut self.tcp).poll_read(cx, &mut read))?;
            let count = read.filled().len();
            if count == 0 {
                let text = "the peer closed the connection without a TLS close_notify";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, text)));
            }
            let received = &mut received[..held + count];
            let used = self.turn(received, out, Send::Nothing)?;
            let left = &received[used..];
            if left.len() > PARTIAL_BYTES_MAX {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "a TLS message is too long")));
            }
            self.partial.clear();
            if left.is_empty() {
                self.partial = Vec::new();
            } else {
                self.partial.extend_from_slice(left);
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Lets rustls process `received`; returns how many bytes rustls consumed. Decrypted bytes go to `out`; if `out` is
    /// full, they wait in this stream. Encrypted bytes are added to `unsent`.
    fn turn(&mut self, received: &mut [u8], out: &mut ReadBuf<'_>, mut send: Send<'_>) -> io::Result<usize> {
        let mut used = 0;
        loop {
            let UnbufferedStatus { discard, state } = self.tls.process_tls_records(&mut received[used..]);
            used += discard;
            match state {
                Ok(ConnectionState::ReadTraffic(mut records)) => {
                    while let Some(record) = records.next_record() {
                        let record = record.map_err(invalid)?;
                        let (now, later) = record.payload.split_at(record.payload.len().min(out.remaining()));
                        out.put_slice(now);
                        self.plain.bytes.extend_from_slice(later);
                        used += record.discard;
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut message)) => encode(&mut message, &mut self.unsent)?,
                Ok(ConnectionState::TransmitTlsData(sent)) => sent.done(),
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    match std::mem::replace(&mut send, Send::Nothing) {
                        Send::Nothing => {}
                        Send::Data(bytes) => encrypt(&mut traffic, bytes, &mut self.unsent)?,
                        Send::Goodbye => {
                            let at = self.unsent.room(RECORD_OVERHEAD_BYTES);
                            let count = traffic.queue_close_notify(&mut self.unsent.bytes[at..]);
                            self.unsent.bytes.truncate(at + count.map_err(io::Error::other)?);
                        }
                    }
                    return Ok(used);
                }
                Ok(ConnectionState::PeerClosed) => self.has_ended = true,
                Ok(ConnectionState::Closed) => {
                    self.has_ended = true;
                    return Ok(used);
                }
                Ok(ConnectionState::BlockedHandshake) => return Ok(used),
                // Early data is not offered, and rustls has no other states yet.
                Ok(_) => return Err(io::Error::other("a state of TLS that nobody asked for")),
                Err(error) => {
                    self.say_why(&mut received[used..]);
                    return Err(invalid(error));
                }
            }
        }
    }

    /// Sends the TLS alert about an error, as far as the kernel takes it at once. rustls returns the alert before it
    /// reads `rest`, in which it would find the same error.
    fn say_why(&mut self, rest: &mut [u8]) {
        while self.tls.wants_write() {
            let Ok(ConnectionState::EncodeTlsData(mut message)) = self.tls.process_tls_records(rest).state else {
                break;
            };
            if encode(&mut message, &mut self.unsent).is_err() {
                break;
            }
        }
        let _ = self.tcp.try_write(self.unsent.rest());
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.rest().is_empty() {
            let count = ready!(Pin::new(&mut self.tcp).poll_write(cx, self.unsent.rest()))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unsent.advance(count);
        }
        Poll::Ready(Ok(()))
    }

    /// Encrypts the data in `send`, but only after all earlier data was sent.
    fn queue(&mut self, send: Send<'_>) -> io::Result<()> {
        let mut partial = std::mem::take(&mut self.partial);
        let used = self.turn(&mut partial, &mut ReadBuf::new(&mut []), send)?;
        partial.drain(..used);
        self.partial = partial;
        Ok(())
    }
}

fn encode<D>(message: &mut EncodeTlsData<'_, D>, unsent: &mut Pending) -> io::Result<()> {
    let bytes = match message.encode(&mut []) {
        Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => required_size,
        Ok(_) | Err(EncodeError::AlreadyEncoded) => 0,
    };
    let at = unsent.room(bytes);
    let count = message.encode(&mut unsent.bytes[at..]);
    unsent.bytes.truncate(at + count.as_ref().map_or(0, |count| *count));
    count.map(drop).map_err(io::Error::other)
}

fn encrypt<D>(traffic: &mut WriteTraffic<'_, D>, bytes: &[u8], unsent: &mut Pending) -> io::Result<()> {
    let at = unsent.room(bytes.len() + RECORD_OVERHEAD_BYTES);
    let count = match traffic.encrypt(bytes, &mut unsent.bytes[at..]) {
        Err(EncryptError::InsufficientSize(InsufficientSizeError { required_size })) => {
            unsent.bytes.resize(at + required_size, 0);
            traffic.encrypt(bytes, &mut unsent.bytes[at..])
        }
        other => other,
    };
    unsent.bytes.truncate(at + count.map_err(io::Error::other)?);
    Ok(())
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl AsyncRead for TlsStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        loop {
            let waiting = self.plain.rest();
            if !waiting.is_empty() {
                let count = waiting.len().min(out.remaining());
                out.put_slice(&waiting[..count]);
                self.plain.advance(count);
            }
            if out.filled().len() > before || out.remaining() == 0 || self.has_ended {
                return Poll::Ready(Ok(()));
            }
            if self.unsent.rest().len() > UNSENT_BYTES_MAX {
                ready!(self.poll_send(cx))?;
            }
            ready!(self.poll_receive(cx, out))?;
            // TLS' own messages; if the kernel takes them later, the waker is called as well.
            if let Poll::Ready(Err(error)) = self.poll_send(cx) {
                return Poll::Ready(Err(error));
            }
        }
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_send(cx))?;
        let bytes = &bytes[..bytes.len().min(RECORD_BYTES)];
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.queue(Send::Data(bytes))?;
        match self.poll_send(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            // Bytes that the kernel did not take are sent with the next write or flush.
            _ => Poll::Ready(Ok(bytes.len())),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // Head and body of an answer become one record.
        TO_SEND.with_borrow_mut(|joined| {
            joined.clear();
            for slice in slices {
                let room = RECORD_BYTES - joined.len();
                joined.extend_from_slice(&slice[..slice.len().min(room)]);
            }
            self.poll_write(cx, joined)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.has_said_goodbye {
            self.has_said_goodbye = true;
            self.queue(Send::Goodbye)?;
        }
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
