//! Tests of the generator's own HTTP/2 with servers that send wrong frames, and with another implementation (nghttpd).
//! Tests without sockets, deadlines or pools are beside the tested code.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use loadgen::admission::{Load, Target};
use tokio::net::{TcpListener, TcpStream};

use crate::frames::{
    DATA, DELETIONS, END_HEADERS, GOAWAY, HEADERS, OK, RST_STREAM, Raw, SETTINGS, Wire, assert_example, frame,
};
use crate::server::{Identity, Server, until};
use crate::webhook::{self, assert_accounts, plan, run, target};

/// An endless answer ends with a timeout, and the error names the phase that the call had reached. The stream of the
/// endless answer is reset, and the connection continues.
#[tokio::test]
#[ignore = "slow"]
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
        let interval = run(plan(2, &more), server.target()).await;
        assert_eq!((interval.counts.timeout, interval.counts.allowed), (1, 1), "{what}: {:?}", interval.examples);
        assert_example(&interval, expected);
        assert_eq!(server.accepted(), 1, "{what}");
    }
}

/// A flood of frames without content ends its call and its connection long before the deadline. The last frame that the
/// server gets has the reason.
#[tokio::test]
async fn a_flood_is_told_to_calm_down() {
    let (heard, mut last) = tokio::sync::mpsc::channel(1);
    let server = Raw::start(move |mut wire: Wire| {
        let heard = heard.clone();
        async move {
            wire.welcome().await?;
            let (stream, uid) = wire.request().await?;
            if wire.number > 1 {
                wire.allow(stream, &uid).await?;
                while wire.frame().await.is_some() {}
                return None;
            }
            wire.send(HEADERS, END_HEADERS, stream, OK).await?;
            let flood = frame(DATA, 0, stream, b"").repeat(20_000);
            wire.send_bytes(&flood).await?;
            let mut said = None;
            while let Some(frame) = wire.frame().await {
                said = Some(frame);
            }
            heard.send(said).await.ok()
        }
    })
    .await;
    let more = format!(r#"{DELETIONS}, "timeout": "20s", "rate": "1/s""#);
    let interval = run(plan(2, &more), server.target()).await;
    assert_eq!((interval.counts.http_error, interval.counts.allowed), (1, 1), "{:?}", interval.examples);
    assert_example(&interval, "it sends frame after frame that brings nothing (ENHANCE_YOUR_CALM)");
    let (kind, _, stream, payload) = last.recv().await.flatten().unwrap();
    assert_eq!((kind, stream, &payload[..]), (GOAWAY, 0, &[0, 0, 0, 0, 0, 0, 0, 11][..]));
}

/// A server that never opens its flow-control windows gets only as much of the request as it allows. The error of the
/// timeout names the flow-control window.
#[tokio::test]
async fn a_window_that_stays_shut_is_told() {
    let server = Raw::start(|mut wire| async move {
        wire.preface().await?;
        wire.send(SETTINGS, 0, 0, &[]).await?;
        let mut received = 0;
        while let Some((kind, _, _, payload)) = wire.frame().await {
            received += if kind == DATA { payload.len() } else { 0 };
            // Both windows have their initial size.
            assert!(received <= 65_535, "{received}");
        }
        None
    })
    .await;
    let large =
        r#""client": "http2", "timeout": "1s", "mix": {"createPod": 1}, "size": {"median": "99KiB", "max": "99KiB"}"#;
    let interval = run(plan(3, large), server.target()).await;
    assert_eq!((interval.counts.timeout, interval.errors()), (3, 3), "{:?}", interval.examples);
    assert_example(&interval, "HTTP/2's flow control let only a part of the request through");
}

/// If a server closes its connections and opens its port again, the calls on them are errors, and later calls use a new
/// connection.
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
    let interval = run(plan(20, &format!(r#"{DELETIONS}, "rate": "20/s""#)), server.target()).await;
    assert!(interval.counts.http_error >= 1 && interval.counts.allowed >= 10, "{interval:?}");
    assert_eq!((interval.errors(), server.accepted()), (interval.counts.http_error, 2));
    assert_example(&interval, "the connection broke before an answer");
}

/// If the address has no listener, or the listener never speaks TLS, every call that waits for the connection fails.
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

/// A closed loop never has more calls in flight than the server allows, and no call is overflow.
#[tokio::test]
async fn a_closed_loop_keeps_to_the_limit_of_streams() {
    let server = Server::start(&[b"h2"], |request: hyper::Request<Incoming>| async move {
        webhook::json(&webhook::right(&webhook::body(request).await))
    })
    .await;
    // hyper's server allows 200 streams, on the connection of each thread.
    let load = Load::saturate(plan(2000, r#""client": "http2", "threads": 2"#), &target(&server), 500).unwrap();
    until("the plan to be used up", || load.planned_now() == 2000).await;
    let interval = load.stop(Duration::from_secs(20)).await;
    assert_accounts(&interval);
    assert_eq!(
        (interval.counts.sent, interval.counts.overflow, interval.errors()),
        (2000, 0, 0),
        "{:?}",
        interval.examples
    );
    assert_eq!((interval.closed_loop, server.accepted()), (true, 2));
}

/// The program nghttpd, which is ended with the test.
struct Nghttpd(Child);

impl Drop for Nghttpd {
    fn drop(&mut self) {
        // The server may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// With nghttp2 as the server, which sends every request's body back, every answer is the whole review of its request.
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
        assert_eq!(interval.examples, ["invalid response: webhook response was absent"]);
    }
}
