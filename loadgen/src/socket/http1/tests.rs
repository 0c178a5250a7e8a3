//! Tests of a connection with a server that runs in the same thread and decides how bytes are cut, when they are sent
//! and when they are read. The test calls the client as the generator does: once for each event of the poll, and at no
//! other time. A lost wake-up therefore shows as a poll that gets no event.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use rustls::crypto::aws_lc_rs;
use rustls::{ServerConfig, ServerConnection};
use rustls_pki_types::PrivatePkcs8KeyDer;

use super::*;
use crate::failure::Class;
use crate::socket::Peer;
use crate::wire::{Endpoint, Tls};

/// Maximum time that a test waits for an event; a longer wait means that an event was missed.
const PATIENCE: Duration = Duration::from_secs(20);
const REQUEST: &[&[u8]] = &[b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n", b"{}"];

/// Client and server of one connection; the client is first a channel.
struct Line<C> {
    poll: Poll,
    peer: Peer,
    scratch: Scratch,
    client: C,
    tcp: TcpStream,
    tls: ServerConnection,
    /// Bytes that the server has made but not sent yet.
    held: Vec<u8>,
}

impl<C> Line<C> {
    /// The next event of the poll, if one comes. The value says whether the server has closed the connection.
    fn event(&mut self, patience: Duration) -> Option<bool> {
        let mut events = Events::with_capacity(4);
        self.poll.poll(&mut events, Some(patience)).unwrap();
        events.iter().next().map(mio::event::Event::is_read_closed)
    }

    fn hear_some(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        while self.tls.read_tls(&mut self.tcp).is_ok_and(|read| read > 0) {
            self.tls.process_new_packets().unwrap();
            // An empty buffer is no end.
            let _ = self.tls.reader().read_to_end(&mut text);
        }
        text
    }

    /// Lets the server read until `enough` holds, and returns the plaintext.
    fn hear(&mut self, enough: impl Fn(&ServerConnection, &[u8]) -> bool) -> Vec<u8> {
        let mut text = Vec::new();
        let limit = Instant::now() + PATIENCE;
        while !enough(&self.tls, &text) {
            assert!(Instant::now() < limit, "the server waits in vain");
            text.extend(self.hear_some());
            std::thread::yield_now();
        }
        text
    }

    /// The bytes that the server wants to send.
    fn written(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.held);
        while self.tls.wants_write() {
            self.tls.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// One record for each of these plaintexts; `None` stands for a change of keys.
    fn records(&mut self, pieces: &[Option<&str>]) -> Vec<u8> {
        for piece in pieces {
            match piece {
                Some(text) => self.tls.writer().write_all(text.as_bytes()).unwrap(),
                None => self.tls.refresh_traffic_keys().unwrap(),
            }
            self.held = self.written();
        }
        std::mem::take(&mut self.held)
    }
}

impl Line<Channel> {
    fn dial() -> Self {
        let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key.into())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let tls = Tls { alpn: b"http/1.1", resumption: true, identity: None, pace: None };
        let endpoint = Endpoint::with(&format!("https://{address}/"), "", &certified.cert.pem(), tls).unwrap();
        let (poll, peer) = (Poll::new().unwrap(), endpoint.peer().unwrap());
        let dialled = Channel::dial(&peer, address, poll.registry(), Token(0), Instant::now());
        let client = dialled.unwrap_or_else(|failure| panic!("{}", failure.text));
        let (tcp, _) = listener.accept().unwrap();
        tcp.set_nodelay(true).unwrap();
        tcp.set_nonblocking(true).unwrap();
        let tls = ServerConnection::new(Arc::new(config)).unwrap();
        Self { poll, peer, scratch: Scratch::new(), client, tcp, tls, held: Vec::new() }
    }

    fn opens_further(&mut self) -> bool {
        self.event(PATIENCE).expect("an event while the connection opens");
        self.client.open_further(&self.peer, &mut self.scratch).unwrap_or_else(|failure| panic!("{}", failure.text))
    }
}

impl Line<Connection> {
    /// Connects client and server, and does the handshake. The server sends its handshake `piece` bytes at a time, and
    /// its tickets with its first data.
    fn open(piece: usize) -> Self {
        let mut line = Line::dial();
        while line.client.opening().connected.is_none() {
            line.opens_further();
        }
        line.hear(|tls, _| tls.wants_write());
        let flight = line.written();
        let mut open = false;
        for piece in flight.chunks(piece) {
            line.tcp.write_all(piece).unwrap();
            open |= line.opens_further();
        }
        while !open {
            open = line.opens_further();
        }
        line.hear(|tls, _| !tls.is_handshaking());
        let held = line.written();
        assert!(!held.is_empty(), "the tickets are held back");
        let Line { poll, peer, mut scratch, client, tcp, tls, .. } = line;
        let client = Connection::new(client, &mut scratch).unwrap_or_else(|failure| panic!("{}", failure.text));
        Self { poll, peer, scratch, client, tcp, tls, held }
    }

    /// Handles an event of a connection with a call as the generator does.
    fn on_event(&mut self, closing: bool) -> Result<Received, Failure> {
        self.client.flush().unwrap();
        let mut received = self.client.receive(closing, &mut self.scratch)?;
        while received == Received::More {
            received = self.client.receive(false, &mut self.scratch)?;
        }
        Ok(received)
    }

    /// Waits for data until an answer is complete or the connection has ended.
    fn outcome(&mut self) -> Result<Received, Failure> {
        loop {
            let closing = self.event(PATIENCE).expect("there is something to read, and nobody was woken");
            let received = self.on_event(closing)?;
            if received != Received::Nothing {
                return Ok(received);
            }
        }
    }

    /// Sends a request and lets the server read the whole request.
    fn ask(&mut self) {
        assert!(self.client.send(REQUEST, &mut self.scratch).is_ok());
        let request = REQUEST.concat();
        assert_eq!(self.hear(|_, text| text.len() >= request.len()), request);
    }

    /// Sends bytes to the client, cut at these positions. The client reads the bytes before each cut before the server
    /// sends those after it, and the answer is complete with the last byte.
    fn answer(&mut self, bytes: &[u8], cuts: &[usize]) {
        let ends = cuts.iter().copied().filter(|&cut| cut > 0);
        let mut begin = 0;
        for end in ends {
            self.tcp.write_all(&bytes[begin..end]).unwrap();
            begin = end;
            let closing = self.event(PATIENCE).expect("there is something to read, and nobody was woken");
            let received = self.on_event(closing).map_err(|failure| failure.text);
            assert_eq!(received, Ok(Received::Nothing), "cut at {end}");
        }
        self.tcp.write_all(&bytes[begin..]).unwrap();
        assert_eq!(self.outcome().map_err(|failure| failure.text), Ok(Received::Answer));
    }
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

/// However the records of an answer are cut, each answer is complete with its last byte, and the connection continues.
/// In this test, changes of keys come between records, and tickets before them.
#[test]
fn cuts_do_not_matter() {
    let mut line = Line::open(usize::MAX);
    let pieces = [Some(HEAD), None, Some("Content-Length: 5\r\n\r\nhe"), Some("l"), None, Some("lo")];
    let mut exchange = |cuts: &dyn Fn(usize) -> Vec<usize>| {
        line.ask();
        let bytes = line.records(&pieces);
        line.answer(&bytes, &cuts(bytes.len()));
        assert_eq!(line.client.answer().body, b"hello");
        line.client.rest();
        assert!(line.client.reusable());
        bytes.len()
    };
    exchange(&|length| (1..length).collect());
    let length = exchange(&|length| (1..length).collect());
    for cut in 0..length {
        exchange(&|_| vec![cut]);
    }
}

/// A handshake that arrives in single bytes succeeds, as do tickets that come while no answer is expected.
#[test]
fn a_handshake_in_single_bytes_is_one() {
    let mut line = Line::open(1);
    assert!(line.client.opening().open.is_some() && !line.client.answer_begun());
    line.ask();
    let bytes = line.records(&[Some(HEAD), Some("Content-Length: 0\r\n\r\n")]);
    line.answer(&bytes, &[]);
}

/// A record with data after the end of the answer is unrequested data, so no further request uses the connection.
#[test]
fn what_nobody_asked_for_ends_the_use_of_a_connection() {
    for more in ["", "HTTP/1.1 200 OK\r\n\r\n"] {
        let mut line = Line::open(usize::MAX);
        line.ask();
        let mut bytes = line.records(&[Some(HEAD), Some("Content-Length: 2\r\n\r\n{}")]);
        bytes.extend(if more.is_empty() { vec![23, 3, 3] } else { line.records(&[Some(more)]) });
        line.answer(&bytes, &[]);
        assert_eq!(line.client.answer().body, b"{}");
        line.client.rest();
        assert!(!line.client.reusable(), "{more:?}");
    }
}

/// A request that the kernel does not accept at once is written later. The reply to a change of keys comes after the
/// request, not in its middle.
#[test]
fn a_request_that_does_not_fit_is_sent_later() {
    let mut line = Line::open(usize::MAX);
    let body = vec![b'x'; 24 << 20];
    assert!(line.client.send(&[b"POST / HTTP/1.1\r\n\r\n", &body], &mut line.scratch).is_ok());
    assert!(line.client.channel.backlog() > 0, "the buffers of the kernel are smaller than this");
    let bytes = line.records(&[None, Some(HEAD), Some("Content-Length: 0\r\n\r\n")]);
    line.answer(&bytes, &[]);
    line.client.rest();
    assert!(!line.client.reusable(), "the rest of the request would be taken for the next one");
    let (mut seen, limit) = (Vec::new(), Instant::now() + PATIENCE);
    while seen.len() < body.len() + 19 {
        assert!(Instant::now() < limit, "there is room to write, and nobody was woken");
        seen.extend(line.hear_some());
        if line.event(Duration::from_millis(1)).is_some() {
            line.client.flush().unwrap();
        }
    }
    assert!(seen.len() == body.len() + 19 && seen[19..] == body[..]);
    assert_eq!(line.client.channel.backlog(), 0);
    // The keys have changed on both sides.
    line.client.rest();
    line.ask();
}

/// A body that ends with the connection is complete, however much of it is unread when the server closes the
/// connection.
#[test]
fn the_end_of_a_connection_is_seen_behind_a_large_body() {
    let mut line = Line::open(usize::MAX);
    line.ask();
    let text = "x".repeat(16 << 10);
    let pieces: Vec<Option<&str>> =
        [Some(HEAD), Some("\r\n")].into_iter().chain(std::iter::repeat_n(Some(&*text), 200)).collect();
    let mut bytes = line.records(&pieces);
    line.tls.send_close_notify();
    bytes.extend(line.written());
    // The kernel's window grows while the client reads, and then holds more than one turn takes.
    let mut sent = 0;
    while sent < bytes.len() {
        match line.tcp.write(&bytes[sent..]) {
            Ok(written) => sent += written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let closing = line.event(PATIENCE).expect("there is something to read, and nobody was woken");
                let received = line.on_event(closing).unwrap_or_else(|failure| panic!("{}", failure.text));
                assert_eq!(received, Received::Nothing);
            }
            Err(error) => panic!("{error}"),
        }
    }
    line.tcp.shutdown(Shutdown::Write).unwrap();
    assert_eq!(line.outcome().map_err(|failure| failure.text), Ok(Received::Answer));
    assert_eq!(line.client.answer().body.len(), 200 << 14);
    assert!(!line.client.reusable());
}

/// A connection may end without a closing alert; an end in the middle of a record is an error.
#[test]
fn ends_are_told_from_breaks() {
    let until_close = [Some(HEAD), Some("\r\n"), Some("some")];
    for (lost, expected) in
        [(0, Ok(Received::Answer)), (1, Err("the body broke off: the connection ended in a TLS record"))]
    {
        let mut line = Line::open(usize::MAX);
        line.ask();
        let bytes = line.records(&until_close);
        line.tcp.write_all(&bytes[..bytes.len() - lost]).unwrap();
        line.tcp.shutdown(Shutdown::Write).unwrap();
        let outcome = line.outcome().map_err(|failure| failure.text);
        assert_eq!(outcome, expected.map_err(str::to_owned), "{lost} bytes are missing");
    }
    let mut line = Line::open(usize::MAX);
    line.tcp.shutdown(Shutdown::Write).unwrap();
    assert_eq!(line.outcome().map_err(|failure| failure.text), Ok(Received::Closed), "while nothing is expected");
}

/// Data after the closing alert of a connection is ignored. A record with a wrong seal is a TLS failure.
#[test]
fn nothing_counts_behind_the_good_bye_and_broken_seals_are_noticed() {
    let mut line = Line::open(usize::MAX);
    line.ask();
    let mut bytes = line.records(&[Some(HEAD), Some("\r\n"), Some("all")]);
    line.tls.send_close_notify();
    bytes.extend(line.written());
    bytes.extend([23, 3, 3, 0, 20].iter().chain(&[0; 20]));
    line.tcp.write_all(&bytes).unwrap();
    assert_eq!(line.outcome().map_err(|failure| failure.text), Ok(Received::Answer));
    assert_eq!(line.client.answer().body, b"all");

    let mut line = Line::open(usize::MAX);
    line.ask();
    let mut bytes = line.records(&[Some(HEAD)]);
    *bytes.last_mut().unwrap() ^= 1;
    line.tcp.write_all(&bytes).unwrap();
    let failure = line.outcome().unwrap_err();
    assert_eq!((failure.class, &*failure.text), (Class::Tls, "a record's seal is broken"));
}

/// A server that changes its keys without end is cut off: each change needs a reply, and replies pile up if the server
/// reads nothing.
#[test]
fn keys_are_not_changed_without_end() {
    let body = [None, Some("x")].repeat(2_000);
    for (pieces, expected) in [
        (vec![None; 200], "record after record came without data"),
        (
            [vec![Some(HEAD), Some("Content-Length: 2000\r\n\r\n")], body].concat(),
            "the server asks for new keys without end",
        ),
    ] {
        let mut line = Line::open(usize::MAX);
        line.ask();
        let bytes = line.records(&pieces);
        line.tcp.set_nonblocking(false).unwrap();
        line.tcp.write_all(&bytes).unwrap();
        assert_eq!(line.outcome().map_err(|failure| failure.text), Err(expected.to_owned()));
    }
}
