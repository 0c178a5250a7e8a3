//! HTTP/2 of the generator's own against servers that misbehave, frame by frame, and against another implementation.
//! What a pure test can play stands beside the code; here is what needs a socket, a deadline or a pool.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use loadgen::admission::{Interval, Load, Target};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::server::{Identity, Server, until};
use crate::webhook::{self, assert_accounts, plan, run, target};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200` in HPACK.
const OK: &[u8] = &[0x88];
const PREFACE_BYTES: usize = 24;
/// Deletions, which a webhook may simply allow.
const DELETIONS: &str = r#""client": "http2", "mix": {"deletePod": 1}"#;

/// A connection on which the test speaks HTTP/2 itself.
struct Wire {
    stream: TlsStream<TcpStream>,
    seen: Vec<u8>,
    /// Which of its server's connections this is, from 1.
    number: usize,
}

impl Wire {
    async fn preface(&mut self) -> Option<()> {
        while self.seen.len() < PREFACE_BYTES {
            self.read().await?;
        }
        self.seen.drain(..PREFACE_BYTES);
        Some(())
    }

    /// Reads the preface and says the first words.
    async fn welcome(&mut self) -> Option<()> {
        self.preface().await?;
        self.send(SETTINGS, 0, 0, &[]).await?;
        // Room for every request of a test.
        self.send(WINDOW_UPDATE, 0, 0, &[1, 0, 0, 0]).await
    }

    async fn read(&mut self) -> Option<()> {
        let mut buffer = vec![0; 64 << 10];
        let read = self.stream.read(&mut buffer).await.ok().filter(|&read| read > 0)?;
        self.seen.extend_from_slice(&buffer[..read]);
        Some(())
    }

    /// Type, flags, stream and payload of the next frame.
    async fn frame(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        loop {
            if let Some((head, rest)) = self.seen.split_first_chunk::<9>()
                && let Some(payload) = rest.get(..u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize)
            {
                let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
                let frame = (head[3], head[4], stream, payload.to_vec());
                self.seen.drain(..9 + frame.3.len());
                return Some(frame);
            }
            self.read().await?;
        }
    }

    /// The next request that is complete: its stream and its uid.
    async fn request(&mut self) -> Option<(u32, String)> {
        let mut bodies = std::collections::BTreeMap::<u32, Vec<u8>>::new();
        loop {
            let (kind, flags, stream, payload) = self.frame().await?;
            if kind == DATA {
                let body = bodies.entry(stream).or_default();
                body.extend_from_slice(&payload);
                if flags & END_STREAM != 0 {
                    let text = String::from_utf8_lossy(body).into_owned();
                    return Some((stream, text.split_once(r#""uid":""#)?.1[..36].to_owned()));
                }
            }
        }
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Option<()> {
        self.send_bytes(&frame(kind, flags, stream, payload)).await
    }

    async fn send_bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).await.ok()?;
        self.stream.flush().await.ok()
    }

    async fn allow(&mut self, stream: u32, uid: &str) -> Option<()> {
        self.send_bytes(&answer(stream, uid)).await
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn answer(stream: u32, uid: &str) -> Vec<u8> {
    let body = webhook::answer(&json!({"request": {"uid": uid}}), json!({"allowed": true})).to_string();
    [frame(HEADERS, END_HEADERS, stream, OK), frame(DATA, END_STREAM, stream, body.as_bytes())].concat()
}

/// A server whose connections, after the TLS handshake, are the handler's.
struct Raw {
    target: Target,
    accepted: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Raw {
    async fn start<H, F>(handler: H) -> Self
    where
        H: Fn(Wire) -> F + Send + 'static,
        F: Future<Output = Option<()>> + Send + 'static,
    {
        let identity = Identity::new();
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(identity.chain.clone(), identity.key.clone_key())
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/mutate", listener.local_addr().unwrap());
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                let stream = acceptor.accept(tcp).await.unwrap();
                let served = handler(Wire { stream, seen: Vec::new(), number });
                // A client that hangs up ends it early.
                serving.spawn(async move {
                    served.await;
                });
            }
        });
        Self { target: Target { url, ca_pem: identity.pem, ..Target::default() }, accepted, _tasks: tasks }
    }

    async fn meets(&self, calls: u64, timeout_s: u64) -> Interval {
        run(plan(calls, &format!(r#"{DELETIONS}, "timeout": "{timeout_s}s""#)), &self.target).await
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

fn assert_example(interval: &Interval, expected: &str) {
    let examples = &interval.examples;
    assert!(examples.iter().any(|text| text.contains(expected)), "`{expected}` is not in {examples:#?}");
}

/// Answers in the pieces that a very slow network makes of them are answers.
#[tokio::test]
async fn answers_byte_by_byte() {
    let server = Raw::start(|mut wire| async move {
        wire.welcome().await?;
        loop {
            let (stream, uid) = wire.request().await?;
            for byte in answer(stream, &uid) {
                wire.send_bytes(&[byte]).await?;
            }
        }
    })
    .await;
    let interval = server.meets(8, 20).await;
    assert_eq!((interval.counts.allowed, interval.errors()), (8, 0), "{:?}", interval.examples);
    assert_eq!(server.accepted(), 1);
}

/// A server that ends each connection after three requests with GOAWAY and takes no more: what it did not take goes over the
/// next connection, and no call is lost.
#[tokio::test]
async fn goaway_loses_no_call() {
    let server = Raw::start(|mut wire| async move {
        wire.welcome().await?;
        for _ in 0..3 {
            let (stream, uid) = wire.request().await?;
            wire.allow(stream, &uid).await?;
        }
        // The third request was stream 5.
        wire.send(GOAWAY, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 0]).await?;
        // Reads on until the client hangs up, as a server that drains does.
        while wire.frame().await.is_some() {}
        None
    })
    .await;
    let planned = plan(30, DELETIONS).planned();
    let load = Load::saturate(plan(30, DELETIONS), &server.target, 2).unwrap();
    until("every request to be sent", || load.planned_now() == planned).await;
    let interval = load.stop(Duration::from_secs(20)).await;
    assert_accounts(&interval);
    assert_eq!((interval.counts.allowed, interval.errors()), (30, 0), "{:?}", interval.examples);
    assert_eq!(server.accepted(), 10);
}

/// A stream that was refused was not looked at, so its call is tried again, but not for ever.
#[tokio::test]
async fn refused_streams_are_tried_again_within_bounds() {
    let server = Raw::start(|mut wire| async move {
        wire.welcome().await?;
        let mut refused = 0;
        loop {
            let (stream, uid) = wire.request().await?;
            if refused < 3 {
                refused += 1;
                wire.send(RST_STREAM, 0, stream, &[0, 0, 0, 7]).await?;
            } else {
                wire.allow(stream, &uid).await?;
            }
        }
    })
    .await;
    let interval = server.meets(1, 20).await;
    assert_eq!((interval.counts.allowed, interval.errors()), (1, 0), "{:?}", interval.examples);

    let server = Raw::start(|mut wire| async move {
        wire.welcome().await?;
        loop {
            let (stream, _) = wire.request().await?;
            wire.send(RST_STREAM, 0, stream, &[0, 0, 0, 7]).await?;
        }
    })
    .await;
    let interval = server.meets(4, 20).await;
    assert_eq!((interval.counts.http_error, interval.errors()), (4, 4), "{:?}", interval.examples);
    assert_example(&interval, "http error: the server reset the stream: REFUSED_STREAM");
    assert_eq!(server.accepted(), 1, "the connection is as good as before");
}

/// What never ends is a timeout that says how far it came. Its stream is reset and the connection goes on.
#[tokio::test]
async fn what_never_ends_is_a_timeout_of_its_stream() {
    for (what, begin, again, expected) in [
        ("silence", vec![], vec![], "no status line came"),
        ("a head alone", frame(HEADERS, END_HEADERS, 1, OK), vec![], "the body did not end"),
        ("empty data", frame(HEADERS, END_HEADERS, 1, OK), frame(DATA, 0, 1, b""), "the body did not end"),
        ("interim answers", vec![], frame(HEADERS, END_HEADERS, 1, b"\x08\x03103"), "no status line came"),
    ] {
        let server = Raw::start(move |mut wire: Wire| {
            let (begin, again) = (begin.clone(), again.clone());
            async move {
                wire.welcome().await?;
                let (first, _) = wire.request().await?;
                assert_eq!(first, 1);
                wire.send_bytes(&begin).await?;
                loop {
                    // Until the client gives the stream up.
                    wire.send_bytes(&again).await?;
                    let Ok(frame) = tokio::time::timeout(Duration::from_millis(20), wire.frame()).await else {
                        continue;
                    };
                    if let (RST_STREAM, _, stream, code) = frame? {
                        assert_eq!((stream, &code[..]), (1, &[0, 0, 0, 8][..]), "CANCEL");
                        break;
                    }
                }
                loop {
                    let (stream, uid) = wire.request().await?;
                    wire.allow(stream, &uid).await?;
                }
            }
        })
        .await;
        // One call, and another when the first has been given up.
        let more = format!(r#"{DELETIONS}, "timeout": "1s", "rate": "0.5/s""#);
        let interval = run(plan(2, &more), &server.target).await;
        assert_eq!((interval.counts.timeout, interval.counts.allowed), (1, 1), "{what}: {:?}", interval.examples);
        assert_example(&interval, expected);
        assert_eq!(server.accepted(), 1, "{what}");
    }
}

/// A server that never opens its windows gets as much of the request as it allows, and the timeout says so.
#[tokio::test]
async fn a_window_that_stays_shut_is_told() {
    let server = Raw::start(|mut wire| async move {
        wire.preface().await?;
        wire.send(SETTINGS, 0, 0, &[]).await?;
        let mut received = 0;
        while let Some((kind, _, _, payload)) = wire.frame().await {
            received += if kind == DATA { payload.len() } else { 0 };
            // Both windows are as large as they are at first.
            assert!(received <= 65_535, "{received}");
        }
        None
    })
    .await;
    let large =
        r#""client": "http2", "timeout": "1s", "mix": {"createPod": 1}, "size": {"median": "99KiB", "max": "99KiB"}"#;
    let interval = run(plan(3, large), &server.target).await;
    assert_eq!((interval.counts.timeout, interval.errors()), (3, 3), "{:?}", interval.examples);
    assert_example(&interval, "HTTP/2's flow control let only a part of the request through");
}

/// What is no HTTP/2, and what breaks off, is a broken exchange with a text that says what happened.
#[tokio::test]
async fn garbage_and_early_ends_are_http_errors() {
    for (bytes, expected) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "what came is no HTTP/2: a frame is longer than 16 KiB"),
        (frame(HEADERS, END_HEADERS, 1, OK), "what came is no HTTP/2: it does not begin with SETTINGS"),
        (vec![0; 100], "what came is no HTTP/2: a frame of a stream names none"),
        (vec![], "the connection broke before an answer: the server closed it"),
        (
            [frame(SETTINGS, 0, 0, &[]), frame(HEADERS, END_HEADERS, 1, OK)].concat(),
            "the body broke off: the server closed it",
        ),
        (
            [frame(SETTINGS, 0, 0, &[]), frame(GOAWAY, 0, 0, b"\0\0\0\x01\0\0\0\x0bslower")].concat(),
            "the server closed it (GOAWAY ENHANCE_YOUR_CALM: `slower`)",
        ),
        (
            [frame(SETTINGS, 0, 0, &[]), frame(HEADERS, END_HEADERS, 1, &[0xff; 9])].concat(),
            "the server does not keep to HTTP/2: a number is larger than any that makes sense (COMPRESSION_ERROR)",
        ),
    ] {
        let server = Raw::start(move |mut wire: Wire| {
            let bytes = bytes.clone();
            async move {
                wire.preface().await?;
                wire.request().await?;
                wire.send_bytes(&bytes).await?;
                wire.stream.shutdown().await.ok()
            }
        })
        .await;
        let interval = server.meets(1, 20).await;
        assert_eq!((interval.counts.http_error, interval.errors()), (1, 1), "{expected}: {:?}", interval.examples);
        assert_example(&interval, expected);
    }
}

/// A server that goes away and comes back: the calls that it left are errors, the next ones go over a new connection.
#[tokio::test]
async fn a_connection_that_broke_is_replaced() {
    let server = Raw::start(|mut wire| async move {
        wire.welcome().await?;
        loop {
            let (stream, uid) = wire.request().await?;
            if wire.number == 1 {
                return None;
            }
            wire.allow(stream, &uid).await?;
        }
    })
    .await;
    let interval = run(plan(20, &format!(r#"{DELETIONS}, "rate": "20/s""#)), &server.target).await;
    assert!(interval.counts.http_error >= 1 && interval.counts.allowed >= 10, "{interval:?}");
    assert_eq!((interval.errors(), server.accepted()), (interval.counts.http_error, 2));
    assert_example(&interval, "the connection broke before an answer");
}

/// No listener, and one that never speaks TLS: every call that waits for the connection is told.
#[tokio::test]
async fn what_never_opens_fails_every_call() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/mutate", free.local_addr().unwrap());
    let deaf = Target { url, ca_pem: Identity::new().pem, ..Target::default() };
    let interval = run(plan(5, r#""client": "http2", "timeout": "1s""#), &deaf).await;
    assert_eq!((interval.counts.timeout, interval.errors()), (5, 5), "{:?}", interval.examples);
    assert_example(&interval, "no connection was ready");
    drop(free);
    let interval = run(plan(5, r#""client": "http2""#), &deaf).await;
    assert_eq!((interval.counts.connect, interval.errors()), (5, 5), "{:?}", interval.examples);
    assert_example(&interval, "Connection refused");
}

/// A closed loop never has more calls under way than the server allows, and none of them overflows.
#[tokio::test]
async fn a_closed_loop_keeps_to_the_limit_of_streams() {
    let server = Server::start(&[b"h2"], |request: hyper::Request<Incoming>| async move {
        webhook::json(&webhook::right(&webhook::body(request).await))
    })
    .await;
    // hyper's server allows 200 streams.
    let load = Load::saturate(plan(2000, r#""client": "http2""#), &target(&server), 500).unwrap();
    until("the plan to be used up", || load.planned_now() == 2000).await;
    let interval = load.stop(Duration::from_secs(20)).await;
    assert_accounts(&interval);
    assert_eq!(
        (interval.counts.sent, interval.counts.overflow, interval.errors()),
        (2000, 0, 0),
        "{:?}",
        interval.examples
    );
}

/// nghttpd, ended with the test.
struct Nghttpd(Child);

impl Drop for Nghttpd {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// nghttp2 as the server: it sends every request back, so every answer is the review that was asked about, whole.
#[tokio::test]
async fn nghttpd_takes_every_request() {
    let identity = Identity::new();
    let directory = tempfile::tempdir().unwrap();
    let (key, certificate) = (directory.path().join("key"), directory.path().join("certificate"));
    std::fs::write(&key, &identity.key_pem).unwrap();
    std::fs::write(&certificate, &identity.pem).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let child = Command::new("nghttpd")
        .args(["--address=127.0.0.1", "--echo-upload", "--max-concurrent-streams=20", &port.to_string()])
        .args([&key, &certificate])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = child else {
        println!("skipped: needs nghttpd (Debian: `apt-get install nghttp2-server`)");
        return;
    };
    let _nghttpd = Nghttpd(child);
    let limit = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(Instant::now() < limit, "nghttpd does not listen");
        tokio::task::yield_now().await;
    }
    let url = format!("https://127.0.0.1:{port}/mutate");
    let target = Target { url, ca_pem: identity.pem, ..Target::default() };
    for size in ["4KiB", "200KiB"] {
        let more =
            format!(r#""client": "http2", "mix": {{"createPod": 1}}, "size": {{"median": "{size}", "max": "{size}"}}"#);
        let load = Load::saturate(plan(200, &more), &target, 30).unwrap();
        until("the plan to be used up", || load.planned_now() == 200).await;
        let interval = load.stop(Duration::from_secs(20)).await;
        assert_accounts(&interval);
        assert_eq!((interval.counts.sent, interval.counts.invalid_response), (200, 200), "{:?}", interval.examples);
        assert_eq!(interval.examples, ["invalid response: the AdmissionReview has no `response`"]);
    }
}
