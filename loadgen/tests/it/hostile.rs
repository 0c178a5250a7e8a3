//! Tests of servers that never end an answer, or that break off the connection. Each call to such a server has the
//! right outcome, and the client reads a bounded number of bytes. The server counts the bytes that the client accepted
//! before it closed the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::Response;
use hyper::body::{Frame, Incoming};
use loadgen::admission::{Interval, Target};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;

use crate::server::{Identity, Raw, Server};
use crate::webhook::{self, plan, run, target};

/// Number of calls in a test; each has its own connection.
const CALLS: u64 = 4;
/// Maximum number of bytes that a client may accept in one call: its own limit of 4 MiB, and the kernel's buffers on
/// both ends of a loopback connection (tcp(7): up to 6 MiB to receive, 4 MiB to send).
const ACCEPTED_BYTES_MAX: u64 = 16 << 20;
/// The bytes after which the server stops, long after the client should have closed the connection.
const GIVE_UP_BYTES: u64 = 256 << 20;
/// Load of only deletions, which a webhook may allow without a patch.
const DELETIONS: &str = r#""mix": {"deletePod": 1}"#;

/// A TLS connection; the bytes that are written to it are counted for the whole server.
struct Wire {
    stream: TlsStream<TcpStream>,
    written: Arc<AtomicU64>,
}

impl Wire {
    /// Reads a request and returns the uid of its review; `None` if the client has closed the connection.
    async fn request(&mut self) -> Option<String> {
        let mut seen = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = self.stream.read(&mut buffer).await.ok().filter(|&read| read > 0)?;
            seen.extend_from_slice(&buffer[..read]);
            let text = String::from_utf8_lossy(&seen);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse::<usize>().ok()?;
            if body.len() >= length {
                return Some(body.split_once(r#""uid":""#)?.1[..36].to_owned());
            }
        }
    }

    /// Sends bytes; false if the client has closed the connection.
    async fn send(&mut self, bytes: &[u8]) -> bool {
        self.written.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Sends the beginning of an answer, then the same bytes until the client closes the connection.
    async fn send_for_ever(&mut self, begin: &str, bytes: &[u8]) {
        let mut sent = 0;
        let mut more = self.send(begin.as_bytes()).await;
        while more && sent < GIVE_UP_BYTES {
            more = self.send(bytes).await;
            sent += bytes.len() as u64;
        }
    }
}

struct Hostile {
    target: Target,
    written: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
    _raw: Option<Raw>,
}

impl Hostile {
    /// A server that passes its connections to a handler after the TLS handshake.
    async fn tls<H, F>(handler: H) -> Self
    where
        H: Fn(Wire) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (identity, written) = (Identity::new(), Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&written);
        let handler = move |stream, _| handler(Wire { stream, written: Arc::clone(&count) });
        let raw = Raw::start(identity.config(&[]), identity.pem, handler).await;
        Self { target: raw.target.clone(), written, _tasks: JoinSet::new(), _raw: Some(raw) }
    }

    /// A server that passes its connections to a handler before any byte is read.
    async fn tcp<H, F>(handler: H) -> Self
    where
        H: Fn(TcpStream) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/mutate", listener.local_addr().unwrap());
        // A certificate of another authority.
        let ca_pem = Identity::new().pem;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                while serving.try_join_next().is_some() {}
                serving.spawn(handler(tcp));
            }
        });
        let target = Target { url, ca_pem, ..Target::default() };
        Self { target, written: Arc::new(AtomicU64::new(0)), _tasks: tasks, _raw: None }
    }

    /// Sends [`CALLS`] deletions to the server, with a timeout of `timeout_s` seconds.
    async fn meets(&self, timeout_s: u64) -> Interval {
        run(plan(CALLS, &format!(r#"{DELETIONS}, "timeout": "{timeout_s}s""#)), &self.target).await
    }

    fn assert_bounded(&self, what: &str) {
        let mib = self.written.load(Ordering::SeqCst) >> 20;
        assert!(mib <= (CALLS * ACCEPTED_BYTES_MAX) >> 20, "{what}: {CALLS} calls took in {mib} MiB");
    }
}

fn assert_example(interval: &Interval, expected: &str) {
    let examples = &interval.examples;
    assert!(examples.iter().any(|text| text.contains(expected)), "`{expected}` is not in {examples:#?}");
}

fn answer(uid: &str, headers: &str) -> String {
    let body = webhook::answer(&serde_json::json!({"request": {"uid": uid}}), serde_json::json!({"allowed": true}))
        .to_string();
    format!(
        "HTTP/1.1 200 OK\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// An endless head, in lines or as one line, is cut off long before the deadline. A call with such a head counts as a
/// broken exchange.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_heads_are_cut_off() {
    for (what, begin, line) in [
        ("lines", "HTTP/1.1 200 OK\r\n", format!("X-Filler: {}\r\n", "a".repeat(1000))),
        ("one line", "HTTP/1.1 200 OK\r\nX-Filler: ", "a".repeat(16 << 10)),
        ("status line", "HTTP/1.1 200 ", "a".repeat(16 << 10)),
    ] {
        let server = Hostile::tls(move |mut wire: Wire| {
            let line = line.clone();
            async move {
                if wire.request().await.is_some() {
                    wire.send_for_ever(begin, line.as_bytes()).await;
                }
            }
        })
        .await;
        let interval = server.meets(20).await;
        assert_eq!((interval.counts.http_error, interval.errors()), (CALLS, CALLS), "{what}: {:?}", interval.examples);
        server.assert_bounded(what);
    }
}

/// A large head of an answer is allowed: Go's client, and so kube-apiserver, accepts up to 10 MiB (net/http,
/// Transport).
#[tokio::test]
async fn a_large_head_is_an_answer() {
    let server = Hostile::tls(|mut wire: Wire| async move {
        let filler = "a".repeat(4 << 10);
        let headers =
            ["1", "2", "3", "4", "5", "6", "7", "8"].map(|i| ["X-Filler-", i, ": ", &filler, "\r\n"].concat()).concat();
        while let Some(uid) = wire.request().await {
            if !wire.send(answer(&uid, &headers).as_bytes()).await {
                return;
            }
        }
    })
    .await;
    let interval = server.meets(20).await;
    assert_eq!((interval.counts.allowed, interval.counts.wrong_verdicts), (CALLS, 0), "{:?}", interval.examples);
}

/// A body of 1 GiB is refused at 4 MiB, whether its length is announced, it is chunked, or it ends with the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_a_gibibyte_is_refused() {
    for (what, framing) in [
        ("announced", "Content-Length: 1073741824\r\n"),
        ("chunked", "Transfer-Encoding: chunked\r\n"),
        ("until close", ""),
    ] {
        let server = Hostile::tls(move |mut wire: Wire| async move {
            if wire.request().await.is_some() {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{framing}\r\n");
                let spaces = " ".repeat(64 << 10);
                let piece = if what == "chunked" { format!("10000\r\n{spaces}\r\n") } else { spaces };
                wire.send_for_ever(&head, piece.as_bytes()).await;
            }
        })
        .await;
        let interval = server.meets(20).await;
        assert_eq!(
            (interval.counts.invalid_response, interval.errors()),
            (CALLS, CALLS),
            "{what}: {:?}",
            interval.examples
        );
        let said = if what == "announced" { " (Content-Length: 1073741824)" } else { "" };
        assert_example(&interval, &format!("the body is larger than 4 MiB{said}"));
        server.assert_bounded(what);
    }
}

/// A body of 1 GiB is refused over HTTP/2 too, where flow control bounds the server's data.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_a_gibibyte_is_refused_on_http2() {
    const PIECE: usize = 64 << 10;
    let made = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&made);
    let server = Server::start(&[b"h2"], move |_: hyper::Request<Incoming>| {
        let made = Arc::clone(&count);
        async move {
            let frames = (0..(1 << 30) / PIECE).map(move |_| {
                made.fetch_add(PIECE as u64, Ordering::SeqCst);
                Ok(Frame::data(Bytes::from(vec![b' '; PIECE])))
            });
            Response::new(StreamBody::new(stream::iter(frames)).boxed())
        }
    })
    .await;
    let config = format!(r#"{DELETIONS}, "client": "http2""#);
    let interval = run(plan(CALLS, &config), &target(&server)).await;
    assert_eq!((interval.counts.invalid_response, interval.errors()), (CALLS, CALLS), "{:?}", interval.examples);
    let mib = made.load(Ordering::SeqCst) >> 20;
    assert!(mib <= (CALLS * ACCEPTED_BYTES_MAX) >> 20, "{CALLS} calls took in {mib} MiB");
}

/// An exchange that continues slowly for ever, or in which the server sends nothing, ends at the deadline. The error
/// names the phase that the exchange had reached.
#[tokio::test]
async fn what_never_ends_is_a_timeout() {
    for (what, begin, byte, expected) in [
        (
            "a body",
            "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
            " ",
            "the status line came, the body did not end",
        ),
        ("a head", "HTTP/1.1 200 OK\r\nX-Filler: ", "a", "no status line came"),
        ("interim answers", "", "HTTP/1.1 102 Processing\r\n\r\n", "no status line came"),
        ("silence", "", "", "no status line came"),
    ] {
        let server = Hostile::tls(move |mut wire: Wire| async move {
            if wire.request().await.is_some() {
                let mut more = wire.send(begin.as_bytes()).await;
                while more {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    more = wire.send(byte.as_bytes()).await;
                }
            }
        })
        .await;
        let interval = server.meets(1).await;
        assert_eq!((interval.counts.timeout, interval.errors()), (CALLS, CALLS), "{what}: {:?}", interval.examples);
        assert_example(&interval, expected);
    }
}

/// The handshake fails if the server closes the connection, speaks plain HTTP, or sends endless random bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_and_noise_in_the_handshake_are_tls_failures() {
    for noise in ["", "HTTP/1.1 400 Bad Request\r\n\r\nClient sent an HTTP request?\n", "~endless~"] {
        let server = Hostile::tcp(move |mut tcp: TcpStream| async move {
            let mut hello = [0; 512];
            if tcp.read(&mut hello).await.is_err() {
                return;
            }
            while tcp.write_all(noise.as_bytes()).await.is_ok() && noise == "~endless~" {
                tokio::task::yield_now().await;
            }
            // A client that has hung up already is fine.
            let _ = tcp.shutdown().await;
        })
        .await;
        let interval = server.meets(20).await;
        assert_eq!((interval.counts.tls, interval.errors()), (CALLS, CALLS), "{noise:?}: {:?}", interval.examples);
        assert_example(&interval, "tls: 127.0.0.1:");
    }
}
