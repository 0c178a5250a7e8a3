//! Tests of how the generator opens, seals, shares and gives up connections.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use loadgen::admission::{ClientCertificate, Interval, Load, Plan, Target};
use parking_lot::Mutex;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedCipherSuite};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::server::{Body, Identity, Raw, Server, until};
use crate::webhook::{self, H1, assert_accounts, plan, right, run, target};

async fn rightly(request: hyper::Request<Incoming>) -> hyper::Response<Body> {
    webhook::json(&right(&webhook::body(request).await))
}

/// The configuration of a server that has only the cipher suite `suite`.
fn config_with(identity: &Identity, suite: SupportedCipherSuite) -> ServerConfig {
    let provider = CryptoProvider { cipher_suites: vec![suite], ..aws_lc_rs::default_provider() };
    ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[suite.version()])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())
        .unwrap()
}

/// Sends the plan over one connection, each request after the previous answer, so that the number of connections does
/// not depend on the machine's load.
async fn one_by_one(plan: Plan, target: &Target) -> Interval {
    let planned = plan.total();
    let load = Load::saturate(plan, target, 1).unwrap();
    until("every request to be sent", || load.planned_now() == planned).await;
    let interval = load.stop(Duration::from_secs(20)).await;
    assert_accounts(&interval);
    interval
}

fn assert_right(interval: &Interval, requests: u64) {
    assert_eq!(
        (interval.counts.sent, interval.errors(), interval.counts.wrong_verdicts),
        (requests, 0, 0),
        "{:?}",
        interval.examples
    );
}

/// Every cipher suite of TLS 1.2 and 1.3 carries requests of several records.
#[tokio::test]
async fn every_cipher_suite_carries_large_requests() {
    for suite in aws_lc_rs::ALL_CIPHER_SUITES {
        let identity = Identity::new();
        // The certificate's key is of the elliptic kind; suites for RSA have the same records.
        if format!("{:?}", suite.suite()).contains("RSA") {
            continue;
        }
        let config = config_with(&identity, *suite);
        let server = Server::with(config, identity.pem, rightly).await;
        let large = r#""mix": {"createPod": 1}, "size": {"median": "40KiB", "max": "100KiB"}"#;
        let interval = one_by_one(plan(6, large), &target(&server)).await;
        assert_right(&interval, 6);
        assert_eq!(server.accepted(), 1, "{:?}: the connection is used again", suite.suite());
    }
}

/// A server that passes each connection to a handler.
async fn raw<F: Future<Output = ()> + Send + 'static>(handler: fn(TlsStream<TcpStream>) -> F) -> Raw {
    let identity = Identity::new();
    Raw::start(identity.config(&[]), identity.pem, move |stream, _| handler(stream)).await
}

/// Reads until the received text is enough; `None` if the client has closed the connection.
async fn read_until<T>(stream: &mut TlsStream<TcpStream>, enough: impl Fn(&str) -> Option<T>) -> Option<T> {
    let (mut seen, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let read = stream.read(&mut buffer).await.ok().filter(|&read| read > 0)?;
        seen.extend_from_slice(&buffer[..read]);
        if let Some(found) = enough(&String::from_utf8_lossy(&seen)) {
            return Some(found);
        }
    }
}

async fn allow(stream: &mut TlsStream<TcpStream>, uid: &str) {
    let review = json!({"request": {"uid": uid}});
    let answer = webhook::answer(&review, json!({"allowed": true})).to_string();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
}

fn uid(text: &str) -> Option<String> {
    text.split_once(r#""uid":""#)?.1.get(..36).map(str::to_owned)
}

/// A server may change its keys after every answer, and request that the client changes its own (RFC 8446, section
/// 4.6.3).
#[tokio::test]
async fn key_updates_are_followed() {
    let server = raw(|mut stream| async move {
        let whole = |text: &str| {
            let (head, body) = text.split_once("\r\n\r\n")?;
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
            (body.len() >= length.parse().ok()?).then(|| uid(body))?
        };
        while let Some(uid) = read_until(&mut stream, whole).await {
            allow(&mut stream, &uid).await;
            stream.get_mut().1.refresh_traffic_keys().unwrap();
            stream.flush().await.unwrap();
        }
    })
    .await;
    let interval = one_by_one(plan(50, r#""mix": {"deletePod": 1}"#), &server.target).await;
    assert_right(&interval, 50);
    assert_eq!(server.accepted(), 1, "the connection outlives updates of its keys");
}

/// A connection whose server answers before it has the whole request is not used again, because the remaining bytes
/// would be read as the next request. In the test, the server stops reading, so that some of the request stays in the
/// client.
#[tokio::test]
async fn a_connection_that_was_answered_early_is_not_used_again() {
    // More than the kernel's buffers on both sides of a loopback connection hold (tcp(7): 6 MiB and 4 MiB).
    const BODY_BYTES: usize = 16 << 20;
    let server = raw(|mut stream| async move {
        read_until(&mut stream, |text| text.contains("\r\n\r\n").then_some(())).await.unwrap();
        stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        stream.flush().await.unwrap();
        std::future::pending::<()>().await;
    })
    .await;
    let config = serde_json::from_str(r#"{"rate": "1/s", "timeout": "20s"}"#).unwrap();
    let plan = loadgen::admission::bench::plan_of_one(&config, 7, Duration::from_secs(3), BODY_BYTES).unwrap();
    let calls = plan.total();
    assert!(calls > 1);
    let interval = one_by_one(plan, &server.target).await;
    assert_eq!((interval.counts.http_error, interval.errors()), (calls, calls), "{:?}", interval.examples);
    assert_eq!(server.accepted() as u64, calls);
}

/// A server that requires a client certificate answers a client with one. For a client without a certificate, the error
/// says that the certificate is missing.
#[tokio::test]
async fn client_certificates_are_shown() {
    let (identity, client) = (Identity::new(), Identity::new());
    let mut roots = RootCertStore::empty();
    roots.add(client.chain[0].clone()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())
        .unwrap();
    let server = Server::with(config, identity.pem, rightly).await;
    let certificate = ClientCertificate { chain_pem: client.pem, key_pem: client.key_pem };
    let known = Target { client_certificate: Some(certificate), ..target(&server) };
    assert_right(&run(plan(20, ""), &known).await, 20);
    let unknown = run(plan(20, ""), &target(&server)).await;
    assert_eq!((unknown.counts.tls, unknown.errors()), (20, 20), "{:?}", unknown.examples);
    assert!(unknown.examples[0].contains("the server wants a client certificate"), "{:?}", unknown.examples);

    let broken = ClientCertificate { chain_pem: "no pem".to_owned(), key_pem: String::new() };
    let broken = Target { client_certificate: Some(broken), ..target(&server) };
    let error = Load::start(plan(1, ""), &broken, Instant::now()).unwrap_err().to_string();
    assert!(error.contains("the client certificate cannot be used: there is no `BEGIN CERTIFICATE`"), "{error}");
    assert!(!format!("{known:?}").contains("PRIVATE KEY"), "keys are not printed");
}

/// TLS sessions are resumed only if that is configured. kube-apiserver does a full handshake for each connection.
#[tokio::test]
async fn sessions_are_resumed_only_on_request() {
    for resumption in [true, false] {
        let server = Server::start(H1, rightly).await;
        let more = format!(r#""callsPerConnection": 1, "tlsResumption": {resumption}"#);
        assert_right(&one_by_one(plan(50, &more), &target(&server)).await, 50);
        let resumed = server.connections.resumed.load(Ordering::SeqCst);
        assert_eq!(server.accepted(), 50);
        // The first connection has no ticket yet.
        assert_eq!(resumed, if resumption { 49 } else { 0 });
    }
}

/// A connection is closed after the configured number of calls (`callsPerConnection`).
#[tokio::test]
async fn connections_are_churned() {
    for (client, alpn) in [("apiserver", b"http/1.1".as_slice()), ("http2", b"h2")] {
        let server = Server::start(&[alpn], rightly).await;
        let more = format!(r#""callsPerConnection": 10, "client": "{client}""#);
        let interval = one_by_one(plan(100, &more), &target(&server)).await;
        assert_right(&interval, 100);
        assert_eq!(server.accepted(), 10, "{client}");
    }
}

/// With many HTTP/2 calls at a time, a connection that has carried its maximum number of calls ends with its last call,
/// and no call is lost.
#[tokio::test]
async fn shared_connections_are_churned_under_load() {
    let server = Server::start(&[b"h2"], rightly).await;
    let more = r#""callsPerConnection": 50, "client": "http2""#;
    let load = Load::saturate(plan(1000, more), &target(&server), 20).unwrap();
    until("the plan to be used up", || load.planned_now() == 1000).await;
    let interval = load.stop(Duration::from_secs(20)).await;
    assert_accounts(&interval);
    assert_right(&interval, 1000);
    assert_eq!(server.accepted(), 20);
    until("every connection to be closed", || server.open() == 0).await;
}

/// With several HTTP/2 connections, all of them are used.
#[tokio::test]
async fn calls_are_spread_over_connections() {
    let server = Server::start(&[b"h2"], |_| async { std::future::pending().await }).await;
    let more = r#""client": "http2", "connections": 3, "timeout": "30s", "maxInFlight": 1000"#;
    // All are overdue, so that none is dropped because a connection opens late.
    let begin = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
    let load = Load::start(plan(299, more), &target(&server), begin).unwrap();
    until("every request to be planned", || load.planned_now() == 299).await;
    until("three connections", || server.accepted() == 3).await;
    let interval = load.stop(Duration::from_secs(1)).await;
    assert_accounts(&interval);
    assert_eq!((interval.counts.sent, interval.counts.overflow, server.accepted()), (299, 0, 3));
}

/// Several threads send the plan together: every request is sent once, and each thread has its own connections.
#[tokio::test]
async fn threads_share_the_plan() {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let log = Arc::clone(&seen);
    let server = Server::start(H1, move |request: hyper::Request<Incoming>| {
        let log = Arc::clone(&log);
        async move {
            let review = webhook::body(request).await;
            log.lock().insert(review["request"]["uid"].as_str().unwrap().to_owned());
            webhook::json(&right(&review))
        }
    })
    .await;
    let interval = run(plan(200, r#""threads": 4, "rate": "200/s""#), &target(&server)).await;
    assert_right(&interval, 200);
    assert_eq!(seen.lock().len(), 200);
    assert!(server.accepted() >= 4, "{}", server.accepted());
    assert_eq!(interval.slowest.len(), loadgen::admission::SLOWEST);
}

/// A server that closes its idle connections causes more connections, but no failed call.
#[tokio::test]
async fn idle_connections_that_the_server_closed_are_not_used() {
    let close = Arc::new(AtomicBool::new(false));
    let closing = Arc::clone(&close);
    let server = Server::start(H1, move |request: hyper::Request<Incoming>| {
        let closing = closing.load(Ordering::SeqCst);
        async move {
            let mut response = rightly(request).await;
            if closing {
                response.headers_mut().insert("Connection", "close".parse().unwrap());
            }
            response
        }
    })
    .await;
    let load = Load::start(plan(60, r#""rate": "20/s""#), &target(&server), Instant::now()).unwrap();
    until("an idle connection", || server.open() > 0).await;
    close.store(true, Ordering::SeqCst);
    until("every request to be planned", || load.planned_now() == 60).await;
    let interval = load.stop(Duration::from_secs(20)).await;
    assert_right(&interval, 60);
    assert!(server.accepted() > 20, "{}", server.accepted());
}

/// A closed loop is marked in the interval, always has a call on each connection, and never has more calls in flight
/// than connections.
#[tokio::test]
async fn a_closed_loop_waits_for_answers() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (inside, peak) = (Arc::clone(&now), Arc::clone(&most));
    let server = Server::start(H1, move |request: hyper::Request<Incoming>| {
        let (inside, peak) = (Arc::clone(&inside), Arc::clone(&peak));
        async move {
            peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let response = rightly(request).await;
            inside.fetch_sub(1, Ordering::SeqCst);
            response
        }
    })
    .await;
    let load = Load::saturate(plan(400, r#""rate": "1/s", "threads": 2"#), &target(&server), 3).unwrap();
    until("the plan to be used up", || load.planned_now() == 400).await;
    let interval = load.stop(Duration::from_secs(20)).await;
    assert_accounts(&interval);
    assert_right(&interval, 400);
    assert!(interval.closed_loop);
    assert!(most.load(Ordering::SeqCst) <= 6, "{}", most.load(Ordering::SeqCst));
    // As with Go, a call without an idle connection dials one and takes the first free one: slow dials make more
    // connections.
    assert!(server.accepted() >= 6, "{}", server.accepted());
    let error = Load::saturate(plan(1, ""), &target(&server), 0).unwrap_err().to_string();
    assert!(error.contains("connections: is 0: write 1 to"), "{error}");
}

/// The slowest calls are reported with their phases.
#[tokio::test]
async fn slow_calls_are_told_by_phase() {
    let slowly = |request: hyper::Request<Incoming>| async move {
        let review = webhook::body(request).await;
        if review["request"]["operation"] == "DELETE" {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        webhook::json(&right(&review))
    };
    let server = Server::start(H1, slowly).await;
    let more = r#""mix": {"createPod": 9, "deletePod": 1}, "rate": "100/s""#;
    let interval = run(plan(100, more), &target(&server)).await;
    assert_right(&interval, 100);
    assert!(!interval.closed_loop);
    let slowest = &interval.slowest[0];
    assert!(slowest.label.starts_with("Pod DELETE "), "{slowest:?}");
    assert!(slowest.phases.wait >= Duration::from_millis(299), "{slowest:?}");
    let all: Vec<Duration> = interval.slowest.iter().map(|slow| slow.phases.response()).collect();
    assert!(all.is_sorted_by(|a, b| a >= b), "{all:?}");

    let http2 = Server::start(&[b"h2"], slowly).await;
    let more = r#""mix": {"createPod": 9, "deletePod": 1}, "rate": "100/s", "client": "http2""#;
    let interval = run(plan(100, more), &target(&http2)).await;
    assert_right(&interval, 100);
    let waited = |slow: &loadgen::admission::Slow| slow.phases.wait >= Duration::from_millis(299);
    assert!(waited(&interval.slowest[0]), "{:?}", interval.slowest);
    let interval = run(plan(1, r#""client": "http2""#), &target(&http2)).await;
    let opened = |slow: &loadgen::admission::Slow| !slow.phases.connect.is_zero() && !slow.phases.tls.is_zero();
    assert!(opened(&interval.slowest[0]), "the first call waits for its connection: {:?}", interval.slowest);

    let interval = run(plan(20, r#""client": "no-reuse", "rate": "100/s""#), &target(&server)).await;
    assert!(interval.slowest.iter().all(opened), "each had a connection of its own: {:?}", interval.slowest);
}
