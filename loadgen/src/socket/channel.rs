//! A nonblocking TCP connection with TLS. The channel passes bytes on and does not interpret them.
//!
//! The owner calls the channel when the poll reports an event.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

use super::handshake::{Handshake, Step};
use super::record::{self, RECORD_MAX_BYTES};
use super::session::{Opened, Session};
use crate::failure::{Class, Failure};

/// Maximum number of bytes of one read: four full TLS records.
const READ_BYTES: usize = 64 << 10;
/// Maximum number of reads from one connection before others are served, so that a large answer does not delay the next
/// request.
const READS_A_TURN: usize = 4;

/// The server to which connections lead, and its TLS settings.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Host and port as `host:port`, for messages.
    pub at: String,
    /// The server's addresses, at least one; they are tried in order.
    pub addresses: Vec<SocketAddr>,
    pub name: ServerName<'static>,
    /// The TLS configuration, which must allow the extraction of secrets.
    pub tls: Arc<ClientConfig>,
    /// Whether the server's tickets are kept for later handshakes.
    pub resumption: bool,
}

/// Buffers that all connections of a thread share.
pub(crate) struct Scratch {
    incoming: Box<[u8]>,
    outgoing: Vec<u8>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { incoming: vec![0; RECORD_MAX_BYTES + READ_BYTES].into(), outgoing: Vec::new() }
    }
}

/// The times at which a connection was begun, TCP was connected, and TLS was complete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    pub begun: Instant,
    pub connected: Option<Instant>,
    pub open: Option<Instant>,
}

/// A connection that is being opened or is open.
pub(crate) struct Channel {
    tcp: TcpStream,
    stage: Stage,
    /// The beginning of a TLS record whose end has not come.
    partial: Vec<u8>,
    /// Whether the server has closed the connection: no further event comes, so the reader must read to the end.
    closing: bool,
    /// Data that could not be written yet, from the position `written` on.
    outgoing: Vec<u8>,
    written: usize,
    opening: Opening,
}

enum Stage {
    Connecting,
    /// A handshake; `None` only while it is being continued.
    Handshake(Option<Box<Handshake>>),
    Open(Box<Session>),
}

/// Why one call of [`Channel::receive`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// All available data was read.
    All,
    /// More data is available, but the caller serves other connections first.
    More,
    /// The server has ended its data on the connection.
    End,
}

/// Why no further data can be received.
pub(super) enum Broken {
    Tcp(io::Error),
    /// The data is invalid for TLS or for the receiver.
    Failed(Failure),
}

pub(crate) struct SendError {
    /// Whether no byte was written, so that the request may use another connection.
    pub unsent: bool,
    pub failure: Failure,
}

impl Channel {
    pub(crate) fn dial(
        peer: &Peer,
        address: SocketAddr,
        registry: &Registry,
        token: Token,
        begun: Instant,
    ) -> Result<Self, Failure> {
        let refused = |error: io::Error| connect_failure(peer, &error);
        let mut tcp = TcpStream::connect(address).map_err(refused)?;
        registry.register(&mut tcp, token, Interest::READABLE | Interest::WRITABLE).map_err(refused)?;
        Ok(Self {
            tcp,
            stage: Stage::Connecting,
            partial: Vec::new(),
            closing: false,
            outgoing: Vec::new(),
            written: 0,
            opening: Opening { begun, connected: None, open: None },
        })
    }

    pub(crate) fn opening(&self) -> Opening {
        self.opening
    }

    /// Reserves memory for a whole incomplete record, so that no call has to allocate.
    pub(super) fn reserve(&mut self) {
        self.partial.reserve(RECORD_MAX_BYTES);
    }

    /// Whether the session's key may seal further records.
    pub(super) fn usable(&self) -> bool {
        matches!(&self.stage, Stage::Open(session) if !session.exhausted())
    }

    /// Whether the server ended its data in the middle of a record.
    pub(super) fn in_record(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Number of sealed bytes that could not be written yet.
    pub(super) fn backlog(&self) -> usize {
        self.outgoing.len() - self.written
    }

    /// Continues opening the connection; true if it is open.
    pub(crate) fn open_further(&mut self, peer: &Peer, scratch: &mut Scratch) -> Result<bool, Failure> {
        if matches!(self.stage, Stage::Connecting) {
            if let Some(error) = self.tcp.take_error().ok().flatten() {
                return Err(connect_failure(peer, &error));
            }
            match self.tcp.peer_addr() {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(false),
                Err(error) => return Err(connect_failure(peer, &error)),
            }
            // Go's net package does so for every connection.
            self.tcp.set_nodelay(true).map_err(|error| connect_failure(peer, &error))?;
            self.opening.connected = Some(Instant::now());
            let tls = Arc::clone(&peer.tls);
            let handshake = Handshake::new(tls, peer.name.clone()).map_err(|why| tls_failure(peer, &why))?;
            self.stage = Stage::Handshake(Some(Box::new(handshake)));
            self.advance(peer, &[])?;
        }
        self.flush().map_err(|error| tls_failure(peer, &error.to_string()))?;
        while !matches!(self.stage, Stage::Open(_)) {
            let read = match self.tcp.read(&mut scratch.incoming) {
                Ok(0) => return Err(tls_failure(peer, "the server closed the connection during the handshake")),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(tls_failure(peer, &error.to_string())),
            };
            self.advance(peer, &scratch.incoming[..read])?;
        }
        self.opening.open = Some(Instant::now());
        Ok(true)
    }

    fn advance(&mut self, peer: &Peer, read: &[u8]) -> Result<(), Failure> {
        let Stage::Handshake(handshake) = &mut self.stage else { return Ok(()) };
        let Some(handshake) = handshake.take() else { return Ok(()) };
        let step = handshake.advance(read, peer.resumption, &mut self.outgoing);
        // Also after a failure: the alert tells the server the reason. If it cannot be written, the result is the same.
        let flushed = self.flush();
        match step.map_err(|why| tls_failure(peer, &why))? {
            Step::More(handshake) => self.stage = Stage::Handshake(Some(handshake)),
            Step::Done(session, behind) => {
                self.stage = Stage::Open(session);
                self.partial = behind;
            }
        }
        flushed.map_err(|error| tls_failure(peer, &error.to_string()))
    }

    /// Seals the bytes of `parts` and writes as much as the socket accepts.
    pub(super) fn send(&mut self, parts: &[&[u8]], scratch: &mut Scratch) -> Result<(), SendError> {
        let Stage::Open(session) = &mut self.stage else {
            return Err(SendError { unsent: true, failure: Failure::http("the connection is not open".to_owned()) });
        };
        let sealed = &mut scratch.outgoing;
        sealed.clear();
        session.seal(parts, sealed).map_err(|broken| SendError { unsent: true, failure: tls_broken(broken) })?;
        let error = if self.outgoing.is_empty() {
            match write_once(&mut self.tcp, sealed) {
                Ok(written) => {
                    self.outgoing.extend_from_slice(&sealed[written..]);
                    None
                }
                Err(error) => Some((true, error)),
            }
        } else {
            self.outgoing.extend_from_slice(sealed);
            self.flush().err().map(|error| (false, error))
        };
        match error {
            None => Ok(()),
            Some((unsent, error)) => {
                let text = format!("the connection broke while the request was written: {error}");
                Err(SendError { unsent, failure: Failure::http(text) })
            }
        }
    }

    /// Writes as much of the sealed data as the socket accepts.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.written < self.outgoing.len() {
            match write_once(&mut self.tcp, &self.outgoing[self.written..])? {
                0 => return Ok(()),
                written => self.written += written,
            }
        }
        self.outgoing.clear();
        self.outgoing.shrink_to(READ_BYTES);
        self.written = 0;
        Ok(())
    }

    /// Reads available data and passes its plaintext on, as it comes. If `closing` is set, the server has closed the
    /// connection, so reading goes on to the end, also in later calls.
    pub(super) fn receive(
        &mut self,
        closing: bool,
        scratch: &mut Scratch,
        mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<Came, Broken> {
        self.closing |= closing;
        for _ in 0..READS_A_TURN {
            let kept = self.partial.len();
            scratch.incoming[..kept].copy_from_slice(&self.partial);
            let space = &mut scratch.incoming[kept..];
            let (read, full) = match self.tcp.read(space) {
                Ok(0) => return Ok(Came::End),
                Ok(read) => (read, read == space.len()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Came::All),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Broken::Tcp(error)),
            };
            if self.records(&mut scratch.incoming[..kept + read], &mut take).map_err(Broken::Failed)? {
                return Ok(Came::End);
            }
            if !full && !self.closing {
                return Ok(Came::All);
            }
        }
        Ok(Came::More)
    }

    /// Passes on data that arrived with the end of the handshake, for which the poll reports no event. Returns true if
    /// the server has ended its data.
    pub(super) fn receive_early(
        &mut self,
        scratch: &mut Scratch,
        mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let filled = self.partial.len();
        scratch.incoming[..filled].copy_from_slice(&self.partial);
        self.records(&mut scratch.incoming[..filled], &mut take)
    }

    /// Sends a closing alert, if the socket accepts it at once.
    pub(crate) fn close(mut self, scratch: &mut Scratch) {
        if let Stage::Open(session) = &mut self.stage
            && self.outgoing.is_empty()
        {
            scratch.outgoing.clear();
            if session.seal_end(&mut scratch.outgoing).is_ok() {
                // The server may have closed already, which is harmless now.
                let _ = self.tcp.write(&scratch.outgoing);
            }
        }
    }

    /// Decrypts every complete record, and keeps the remaining bytes. Returns true if the server announced the end of
    /// its data.
    fn records(
        &mut self,
        filled: &mut [u8],
        take: &mut impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let Stage::Open(session) = &mut self.stage else { return Ok(false) };
        self.partial.clear();
        let mut at = 0;
        let mut ended = false;
        while let Some(length) = record::length(&filled[at..]).map_err(tls_broken)?
            && let Some(record) = filled.get_mut(at..at + length)
            && !ended
        {
            at += length;
            match session.open(record, &mut self.outgoing).map_err(tls_broken)? {
                Opened::Data(data) => take(data)?,
                Opened::Nothing => {}
                Opened::End => ended = true,
            }
        }
        if !ended {
            self.partial.extend_from_slice(&filled[at..]);
        }
        self.flush().map_err(|error| Failure::http(format!("the connection broke before an answer: {error}")))?;
        Ok(ended)
    }
}

/// Writes once, and returns the number of accepted bytes, or 0 if the write would block.
fn write_once(tcp: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match tcp.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => return Ok(written),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn connect_failure(peer: &Peer, error: &io::Error) -> Failure {
    Failure { class: Class::Connect, text: format!("{}: {error}", peer.at) }
}

fn tls_failure(peer: &Peer, why: &str) -> Failure {
    Failure { class: Class::Tls, text: format!("{}: {why}", peer.at) }
}

fn tls_broken(broken: record::Broken) -> Failure {
    Failure { class: Class::Tls, text: broken.0.to_owned() }
}
