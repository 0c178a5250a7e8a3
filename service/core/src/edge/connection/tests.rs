//! Tests of connections with hostile clients, which write frames by hand or leave answers unread. The clock advances
//! only when all tasks wait.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep};

use super::*;
use crate::edge::slots::Slots;
use crate::edge::{CallMemory, Drain, Limits, Metrics};

const ATTACKER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// The memory limit for open calls, in bytes, of a process whose own memory limit is unknown.
const ROOM_BYTES: usize = 3 << 20;
const PEER_BYTES: usize = ROOM_BYTES / 8 * 7;
const ANSWER_BYTES: usize = 24 << 10;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const REFUSED: [u8; 4] = [0, 0, 0, 7];
const CANCEL: [u8; 4] = [0, 0, 0, 8];
/// A client's SETTINGS with an initial window of 0.
const WINDOW_OF_NOTHING: [u8; 6] = [0, 4, 0, 0, 0, 0];

/// A listener without a socket, for tests.
struct Site {
    shared: Shared,
    slots: Arc<Slots>,
    drain: Drain,
    /// The number of calls whose handler started and was not dropped yet.
    calls: Arc<AtomicUsize>,
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Site {
    /// A listener that answers each call with [`ANSWER_BYTES`] bytes after the call's body has arrived.
    fn new() -> Self {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let handler: Handler = Arc::new(move |request: Request<Incoming>, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            let counted = Counted(Arc::clone(&counted));
            async move {
                let _ = request.into_body().collect().await;
                drop(counted);
                Response::new(Full::new(Bytes::from(vec![b'x'; ANSWER_BYTES])))
            }
            .boxed()
        });
        let (accounts, throttle) = (Accounts::default(), Throttle::default());
        let shared = Shared { handler, tls: None, accounts, metrics: Metrics::default().of("test"), throttle };
        let limits = Limits { connections: 100, connections_per_peer: 100, handshakes_per_peer: 100 };
        Self { shared, slots: Slots::new(limits), drain: Drain::new(), calls }
    }

    fn room(&self) -> &CallMemory {
        self.shared.metrics.room()
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    fn serve(&self, address: IpAddr, is_http2: bool, buffer: usize) -> (DuplexStream, JoinHandle<()>) {
        let (client, server) = duplex(buffer);
        let (slot, _) = self.slots.admit(address).unwrap();
        let caller = Caller::new(&self.shared, self.shared.accounts.peer(address, None), &slot);
        let phase = self.drain.follow();
        let served = tokio::spawn(async move {
            if is_http2 {
                serve_http2(server, caller, phase, &slot).await;
            } else {
                serve_http1(server, caller, phase, &slot).await;
            }
        });
        (client, served)
    }

    /// Connects an HTTP/2 client, which sends the preface and `settings`.
    async fn connect(&self, address: IpAddr, settings: &[u8]) -> Raw {
        let (io, served) = self.serve(address, true, 1 << 20);
        let mut raw = Raw { io, served };
        raw.io.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        raw.send(SETTINGS, 0, 0, settings).await;
        raw
    }
}

struct Raw {
    io: DuplexStream,
    served: JoinHandle<()>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The encoded head of a POST with one field for each length in `values`; the field's value has this length.
fn head(values: &[usize]) -> Vec<u8> {
    let mut block = vec![0x83, 0x87, 0x84, 0x01, 1, b'h'];
    for bytes in values {
        block.extend([0x00, 1, b'x']);
        // An integer of a prefix of seven bits (RFC 7541, section 5.1).
        if *bytes < 127 {
            block.push(u8::try_from(*bytes).unwrap());
        } else {
            let mut rest = bytes - 127;
            block.push(127);
            while rest >= 128 {
                block.push(u8::try_from(rest % 128).unwrap() | 128);
                rest /= 128;
            }
            block.push(u8::try_from(rest).unwrap());
        }
        block.resize(block.len() + bytes, b'v');
    }
    block
}

impl Raw {
    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        // A client that was cut off may still write.
        let _ = self.io.write_all(&frame(kind, flags, stream, payload)).await;
    }

    async fn open(&mut self, index: u32, flags: u8, head: &[u8]) {
        self.send(HEADERS, END_HEADERS | flags, 2 * index + 1, head).await;
    }

    /// Receives frames until every task waits. Each frame is returned as type, flags, stream and payload.
    async fn frames(&mut self) -> Vec<(u8, u8, u32, Vec<u8>)> {
        settle().await;
        let mut bytes = Vec::new();
        let mut piece = vec![0; 1 << 16];
        while let Some(Ok(count)) = self.io.read(&mut piece).now_or_never() {
            if count == 0 {
                break;
            }
            bytes.extend_from_slice(&piece[..count]);
            settle().await;
        }
        let mut frames = Vec::new();
        while let Some((head, rest)) = bytes.split_at_checked(9) {
            let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
            frames.push((head[3], head[4], stream, rest[..length].to_vec()));
            bytes = rest[length..].to_vec();
        }
        frames
    }

    async fn resets(&mut self, code: [u8; 4]) -> usize {
        let frames = self.frames().await;
        frames.iter().filter(|(kind, _, _, payload)| *kind == RST_STREAM && *payload == code).count()
    }

    async fn is_over(&self) -> bool {
        settle().await;
        self.served.is_finished()
    }

    /// Sends a complete request and waits for its answer.
    async fn prove(&mut self) {
        self.open(0, END_STREAM, &head(&[])).await;
        assert!(self.frames().await.iter().any(|(kind, _, stream, _)| (*kind, *stream) == (HEADERS, 1)));
    }
}

/// Lets all tasks run without advancing the clock.
async fn settle() {
    for _ in 0..50 {
        yield_now().await;
    }
}

/// Sixty connections of one address, each with 249 streams and heads of two sizes but no bodies, hold no more memory
/// than the limit.
#[tokio::test(start_paused = true)]
async fn streams_without_a_body_hold_no_more_than_the_room() {
    for values in [&[60][..], &[7000]] {
        let (site, block) = (Site::new(), head(values));
        let (mut clients, mut refused) = (Vec::new(), 0);
        for _ in 0..60 {
            let mut client = site.connect(ATTACKER, &[]).await;
            // Refused where earlier connections have taken all of one peer's share.
            client.open(0, END_STREAM, &head(&[])).await;
            client.frames().await;
            for index in 1..250 {
                client.open(index, 0, &block).await;
            }
            refused += client.resets(REFUSED).await;
            clients.push(client);
        }
        let (held, fits) = (site.room().held_bytes(), PEER_BYTES / (4096 + block.len()));
        assert!(held <= PEER_BYTES && held > PEER_BYTES / 4 * 3, "{held}");
        assert!(site.calls() <= fits && site.calls() > fits / 2, "{} of {fits}", site.calls());
        assert_eq!(site.calls() + refused, 60 * 249);
        let mut other = site.connect(OTHER, &[]).await;
        other.prove().await;
        drop((clients, other));
        settle().await;
        assert_eq!((site.room().held_bytes(), site.calls(), site.slots.open()), (0, 0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_has_few_streams_until_one_request_of_it_is_whole() {
    let site = Site::new();
    let mut client = site.connect(ATTACKER, &[]).await;
    for index in 0..30 {
        client.open(index, 0, &head(&[])).await;
    }
    assert_eq!((client.resets(REFUSED).await, site.calls()), (10, 20));
    client.send(DATA, END_STREAM, 1, b"{}").await;
    assert!(client.frames().await.iter().any(|(kind, _, stream, _)| (*kind, *stream) == (DATA, 1)));
    for index in 30..230 {
        client.open(index, 0, &head(&[])).await;
    }
    assert_eq!((client.resets(REFUSED).await, site.calls()), (0, 219));
}

/// A connection whose streams are all refused is closed.
#[tokio::test(start_paused = true)]
async fn a_connection_that_never_brings_a_request_is_ended() {
    let site = Site::new();
    let mut client = site.connect(ATTACKER, &[]).await;
    for index in 0..270 {
        client.open(index, 0, &head(&[])).await;
        settle().await;
    }
    assert!(!client.is_over().await);
    client.open(270, 0, &head(&[])).await;
    client.frames().await;
    client.open(271, 0, &head(&[])).await;
    assert!(client.is_over().await);
    assert_eq!((site.room().held_bytes(), site.calls()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_head_has_eight_kibibytes() {
    let site = Site::new();
    let mut client = site.connect(ATTACKER, &[]).await;
    client.open(0, 0, &head(&[7900])).await;
    client.frames().await;
    assert_eq!(site.calls(), 1);
    client.open(1, 0, &head(&[4000, 4200])).await;
    let frames = client.frames().await;
    assert!(frames.iter().any(|(kind, _, stream, _)| (*kind, *stream) == (HEADERS, 3)), "431: {frames:?}");
    assert_eq!(site.calls(), 1);
    client.send(HEADERS, 0, 5, &head(&[])).await;
    for _ in 0..3 {
        // The beginning of a value that is announced as far longer.
        client.send(CONTINUATION, 0, 5, &[&[0x00, 1, b'x', 127, 0xff, 0xff, 0x03][..], &[b'v'; 12_000]].concat()).await;
    }
    assert!(client.is_over().await);
}

/// A client that stores values in the HPACK table, although the service set the table's size to 0, gets a GOAWAY. If
/// the client stores further values after the GOAWAY, its connection ends.
#[tokio::test(start_paused = true)]
async fn a_client_that_fills_the_table_is_sent_away() {
    let site = Site::new();
    let kept = [&head(&[])[..], &[0x40, 1, b'x', 1, b'y']].concat();
    let mut client = site.connect(ATTACKER, &[]).await;
    let settings = client.frames().await.into_iter().find(|(kind, _, _, _)| *kind == SETTINGS).unwrap().3;
    assert!(settings.chunks(6).any(|setting| setting == [0, 1, 0, 0, 0, 0]), "{settings:?}");
    for index in 0..20 {
        client.open(index, END_STREAM, &kept).await;
        assert!(client.frames().await.iter().all(|(kind, _, _, _)| *kind != GOAWAY), "{index}");
    }
    client.open(20, END_STREAM, &kept).await;
    assert!(client.frames().await.iter().any(|(kind, _, _, _)| *kind == GOAWAY));
    // Its calls end first: nobody reads their answers.
    sleep(Duration::from_secs(10)).await;
    assert!(client.is_over().await);

    // One that empties the table with its next head, as clients do that have read the settings, stays.
    let mut client = site.connect(OTHER, &[]).await;
    for index in 0..60 {
        let emptied = [&[0x20][..], &kept].concat();
        client.open(index, END_STREAM, if index < 10 { &kept } else { &emptied }).await;
        assert!(client.frames().await.iter().all(|(kind, _, _, _)| *kind != GOAWAY), "{index}");
    }
    assert!(!client.is_over().await);
    let mut busy = site.connect(ATTACKER, &[]).await;
    for index in 0..45 {
        busy.open(index, 0, &kept).await;
    }
    assert!(busy.is_over().await);
}

#[tokio::test(start_paused = true)]
async fn floods_of_frames_end_the_connection() {
    let site = Site::new();
    let floods: [(u8, u32, &[u8]); 6] = [
        (PRIORITY, 3, &[0, 0, 0, 0, 1]),
        (WINDOW_UPDATE, 0, &[0, 0, 0, 1]),
        (SETTINGS, 0, &[0, 4, 0, 0, 0xff, 0xff]),
        (PING, 0, &[0; 8]),
        (DATA, 1, &[]),
        (0xfa, 0, &[]),
    ];
    for (kind, stream, payload) in floods {
        let mut client = site.connect(ATTACKER, &[]).await;
        client.open(0, 0, &head(&[])).await;
        for _ in 0..30 {
            let _ = client.io.write_all(&frame(kind, 0, stream, payload).repeat(50)).await;
            client.frames().await;
        }
        assert!(client.is_over().await, "{kind}");
        assert_eq!((site.room().held_bytes(), site.calls()), (0, 0), "{kind}");
    }
}

/// Answers to a client with a window of 0 stay within the memory limit, and unread streams are reset.
#[tokio::test(start_paused = true)]
async fn answers_that_are_not_read_hold_no_more_than_the_room_and_are_reset() {
    let site = Site::new();
    let mut clients = Vec::new();
    for _ in 0..11 {
        let mut client = site.connect(ATTACKER, &WINDOW_OF_NOTHING).await;
        for index in 0..20 {
            client.open(index, END_STREAM, &head(&[])).await;
        }
        client.frames().await;
        clients.push(client);
    }
    let (began, held) = (Instant::now(), site.room().held_bytes());
    let waiting = held / (4096 + ANSWER_BYTES);
    assert!(held <= PEER_BYTES && waiting > 80, "{held}");
    sleep(Duration::from_millis(4900)).await;
    assert_eq!(site.room().held_bytes(), held, "a place is free when its stream is gone");
    let mut reset = 0;
    sleep(Duration::from_millis(200)).await;
    for client in &mut clients {
        reset += client.resets(CANCEL).await;
    }
    assert_eq!((reset, site.room().held_bytes()), (waiting, 0));
    assert!(began.elapsed() < Duration::from_secs(6));
    // The connections still work as before.
    clients[0].send(SETTINGS, 0, 0, &[0, 4, 0, 0, 0xff, 0xff]).await;
    clients[0].open(30, END_STREAM, &head(&[])).await;
    assert!(clients[0].frames().await.iter().any(|(kind, _, stream, _)| (*kind, *stream) == (DATA, 61)));
}

/// If the client's window lets one byte of an answer through, hyper no longer controls the stream, so the whole
/// connection is ended.
#[tokio::test(start_paused = true)]
async fn a_connection_that_takes_a_byte_of_an_answer_and_no_more_is_ended() {
    let site = Site::new();
    let mut client = site.connect(ATTACKER, &[0, 4, 0, 0, 0, 1]).await;
    client.open(0, END_STREAM, &head(&[])).await;
    client.frames().await;
    assert_eq!(site.room().held_bytes(), 4096 + ANSWER_BYTES);
    sleep(Duration::from_millis(5900)).await;
    assert_eq!(site.room().held_bytes(), 4096 + ANSWER_BYTES);
    sleep(Duration::from_millis(2200)).await;
    assert!(client.is_over().await);
    assert_eq!((site.room().held_bytes(), site.slots.open()), (0, 0));
}

/// Answers over HTTP/1.1 count against the memory limit until they are sent; a slow but steady reader gets the whole
/// answer.
#[tokio::test(start_paused = true)]
async fn an_answer_over_http1_is_counted_until_it_is_taken() {
    let site = Site::new();
    let request = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n";
    let (mut slow, _served) = site.serve(OTHER, false, 2 << 10);
    let (mut still, ended) = site.serve(ATTACKER, false, 2 << 10);
    slow.write_all(request).await.unwrap();
    still.write_all(request).await.unwrap();
    settle().await;
    assert_eq!(site.room().held_bytes(), 2 * (4096 + ANSWER_BYTES));
    let mut taken = vec![0; ANSWER_BYTES / 2];
    slow.read_exact(&mut taken).await.unwrap();
    sleep(Duration::from_secs(4)).await;
    slow.read_exact(&mut taken[..ANSWER_BYTES / 4]).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    settle().await;
    assert!(ended.is_finished());
    assert_eq!(site.room().held_bytes(), 4096 + ANSWER_BYTES);
    slow.read_exact(&mut taken[..ANSWER_BYTES / 4]).await.unwrap();
    settle().await;
    assert_eq!(site.room().held_bytes(), 0);
    drop(still);
}

/// A call over HTTP/1.1 that the memory limit refuses gets an answer.
#[tokio::test(start_paused = true)]
async fn a_call_without_room_is_shed_over_http1() {
    let site = Site::new();
    let mut held = Vec::new();
    let peer = site.shared.accounts.peer(ATTACKER, None);
    while let Ok(hold) = site.shared.metrics.room().hold(&peer, 30_000) {
        held.push(hold);
    }
    let (mut client, _served) = site.serve(ATTACKER, false, 1 << 16);
    let request = format!("GET / HTTP/1.1\r\nhost: h\r\nx: {}\r\n\r\n", "x".repeat(30_000));
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 429");
    drop(held);
    settle().await;
    assert_eq!(site.room().held_bytes(), 0);
}
