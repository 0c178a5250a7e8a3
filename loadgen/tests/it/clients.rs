//! Tests of the three kinds of client, as the server sees them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use loadgen::admission::Load;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::server::{Server, until};
use crate::webhook::{self, H1, plan, right, run, target};

/// The request line and headers are those of kube-apiserver, also in their HTTP/2 form, and every call has its own uid.
#[tokio::test]
async fn requests_look_like_those_of_kube_apiserver() {
    look_like_those_of_kube_apiserver("apiserver", b"http/1.1", |_| "/mutate?timeout=20s HTTP/1.1".to_owned()).await;
    look_like_those_of_kube_apiserver("http2", b"h2", |host| format!("https://{host}/mutate?timeout=20s HTTP/2.0"))
        .await;
}

async fn look_like_those_of_kube_apiserver(client: &str, alpn: &[u8], line: fn(&str) -> String) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let server = Server::start(&[alpn], move |request: hyper::Request<Incoming>| {
        let log = Arc::clone(&log);
        async move {
            let header =
                |name: &str| request.headers().get(name).map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default();
            let head = format!("{} {} {:?}", request.method(), request.uri(), request.version());
            let headers = format!("{} | {} | {}", header("user-agent"), header("content-type"), header("accept"));
            let host = request.uri().authority().map_or_else(|| header("host"), ToString::to_string);
            let length = header("content-length");
            let review = webhook::body(request).await;
            assert_eq!(length, review.to_string().len().to_string());
            let uid = review["request"]["uid"].as_str().unwrap().to_owned();
            log.lock().push((head, headers, host, uid));
            webhook::json(&right(&review))
        }
    })
    .await;
    let address = server.address.to_string();
    run(plan(50, &format!(r#""client": "{client}""#)), &target(&server)).await;
    let seen = seen.lock();
    for (head, headers, host, _) in seen.iter() {
        assert_eq!(*head, format!("POST {}", line(&address)));
        assert_eq!(headers, "kube-apiserver-admission | application/json | application/json, */*");
        assert_eq!(*host, address);
    }
    assert_eq!(seen.iter().map(|(_, _, _, uid)| uid).collect::<BTreeSet<_>>().len(), 50);
}

/// Sixty simultaneous calls with the client `apiserver` need 60 connections. After the answers, 25 connections stay
/// open, and later calls use them.
#[tokio::test]
async fn the_apiserver_client_keeps_25_idle_connections() {
    let gate = Arc::new(Semaphore::new(0));
    let inside = Arc::new(AtomicUsize::new(0));
    let (door, count) = (Arc::clone(&gate), Arc::clone(&inside));
    let server = Server::start(H1, move |request: hyper::Request<Incoming>| {
        let (door, count) = (Arc::clone(&door), Arc::clone(&count));
        async move {
            let review = webhook::body(request).await;
            count.fetch_add(1, Ordering::SeqCst);
            let _open = door.acquire().await.unwrap();
            webhook::json(&right(&review))
        }
    })
    .await;
    // 60 requests are overdue at the start, the others follow two seconds apart.
    let overdue = Instant::now().checked_sub(Duration::from_secs(119)).unwrap();
    let load = Load::start(plan(64, r#""rate": "0.5/s", "timeout": "30s""#), &target(&server), overdue).unwrap();
    until("60 calls inside", || inside.load(Ordering::SeqCst) >= 60).await;
    assert!(server.open() >= 60);
    gate.add_permits(1000);
    until("the extra connections to be closed", || server.open() == 25).await;
    let (connections, calls) = (server.accepted(), inside.load(Ordering::SeqCst));
    until("another call", || inside.load(Ordering::SeqCst) > calls).await;
    assert_eq!((server.accepted(), server.open()), (connections, 25), "it used an idle connection");
    let interval = load.stop(Duration::from_secs(20)).await;
    assert_eq!(interval.errors(), 0, "{:?}", interval.examples);
    until("the idle connections to end with the load", || server.open() == 0).await;
}

/// `no-reuse` never uses a connection twice, and `http2` uses one connection for all calls. (Another test covers
/// `apiserver`.)
#[tokio::test]
async fn connections_by_client() {
    for (client, alpn, connections) in [("no-reuse", &[b"http/1.1".as_slice()], 100), ("http2", &[b"h2".as_slice()], 1)]
    {
        let server = Server::start(alpn, |request: hyper::Request<Incoming>| async move {
            webhook::json(&right(&webhook::body(request).await))
        })
        .await;
        let interval = run(plan(100, &format!(r#""client": "{client}""#)), &target(&server)).await;
        assert_eq!((interval.counts.sent, interval.errors()), (100, 0), "{client}: {:?}", interval.examples);
        assert_eq!(server.accepted(), connections, "{client}");
    }
}

/// A server that answers with `Connection: close` causes more connections, but no failed call.
#[tokio::test]
async fn connection_close_is_honoured() {
    let server = Server::start(H1, |request: hyper::Request<Incoming>| async move {
        let mut response = webhook::json(&right(&webhook::body(request).await));
        response.headers_mut().insert("Connection", "close".parse().unwrap());
        response
    })
    .await;
    let interval = run(plan(100, ""), &target(&server)).await;
    assert_eq!((interval.counts.sent, interval.errors()), (100, 0), "{:?}", interval.examples);
    assert_eq!(server.accepted(), 100);
}

/// With HTTP/2, calls beyond the server's limit of streams count as overflow, and do not wait in a hidden queue.
#[tokio::test]
async fn http2_stream_limit_is_overflow() {
    let server = Server::start(&[b"h2"], |_| async { std::future::pending().await }).await;
    let plan = plan(300, r#""client": "http2", "timeout": "30s", "maxInFlight": 1000"#);
    let load = Load::start(plan, &target(&server), Instant::now()).unwrap();
    until("every request to be planned", || load.planned_now() == 300).await;
    let interval = load.stop(Duration::from_millis(10)).await;
    webhook::assert_accounts(&interval);
    // hyper's server allows 200 streams.
    assert_eq!((interval.counts.sent, interval.counts.abandoned, interval.counts.overflow), (200, 200, 100));
}

/// Stopping or dropping the load leaves no connection and no thread, even if the server never answers.
#[tokio::test]
async fn dropping_ends_everything() {
    // The server reads the whole request: hyper stops reading when a body is dropped, and then never notices that the
    // client is gone.
    let server = Server::start(H1, |request: hyper::Request<Incoming>| async move {
        webhook::body(request).await;
        std::future::pending().await
    })
    .await;
    let load = Load::start(plan(50, r#""timeout": "30s""#), &target(&server), Instant::now()).unwrap();
    until("calls to be under way", || server.open() > 10).await;
    drop(load);
    until("connections to be closed", || server.open() == 0).await;
}
