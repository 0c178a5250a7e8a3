//! Tests of limits on the rates, sizes and times of calls of the API that scales Deployments.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::world::{World, replicas_path};
use crate::support::PATIENCE;
use crate::support::deployments::Deployments;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_calls_too_often_is_told_when_to_come_again() {
    let rate = ", rate: {client: {perSecond: 1, burst: 20}, all: {perSecond: 10000}}";
    let world = World::start(rate).await;
    let (client, reader) = (world.client("client").await, world.client("reader").await);
    let mut codes = Vec::new();
    for _ in 0..40 {
        codes.push(client.get("/api/v1/health").await);
    }
    let refused: Vec<_> = codes.iter().filter(|answer| answer.code == 429).collect();
    assert!((10..=20).contains(&refused.len()), "{}", refused.len());
    for answer in refused {
        assert_eq!(answer.header("retry-after"), "1");
        assert_eq!(answer.error(), "calls come too often");
    }
    let second = world.client("client").await;
    assert_eq!(second.get("/api/v1/health").await.code, 429, "the limit is the client's, not the connection's");
    assert_ne!(reader.get("/api/v1/health").await.code, 429, "another client has its own");
    let metrics = world.metrics().await;
    assert!(metrics.contains("longhaul_replicas_limited_total{limit=\"client\"} "), "{metrics}");
    let waiting = async { while client.get("/api/v1/health").await.code == 429 {} };
    timeout(PATIENCE, waiting).await.expect("a token comes");
    // A higher rate is allowed while the process runs.
    let more = ", rate: {client: {perSecond: 1000, burst: 1000}, all: {perSecond: 10000}}";
    std::fs::write(world.path("service.yaml"), World::config(&world.api, world.folder.path(), more)).unwrap();
    world.shows("longhaul_config_generation 2\n").await;
    for _ in 0..100 {
        assert_ne!(client.get("/api/v1/health").await.code, 429);
    }
    world.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_together_have_a_limit() {
    let rate = ", rate: {client: {perSecond: 1000}, all: {perSecond: 1, burst: 10}}";
    let world = World::start(rate).await;
    let (client, reader) = (world.client("client").await, world.client("reader").await);
    let mut refused = 0;
    for _ in 0..10 {
        refused += u32::from(client.get("/api/v1/health").await.code == 429);
        refused += u32::from(reader.get("/api/v1/health").await.code == 429);
    }
    assert!((5..=10).contains(&refused), "{refused}");
    assert!(world.metrics().await.contains("longhaul_replicas_limited_total{limit=\"all\"} "));
    world.app.stop().await;
}

/// The number of calls at one time is limited, including calls that wait until the cache shows a change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_work_have_a_limit() {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    let world = World::start_over(api, ", maxInFlight: 1, timeout: 5s").await.listed().await;
    super::world::wait_for_request(&world.api, "watch=true").await;
    world.api.trouble(crate::support::deployments::Trouble::Swallow);
    let (waiting, other) = (world.client("client").await, world.client("reader").await);
    let call =
        tokio::spawn(async move { waiting.put(&replicas_path("team/web"), r#"{"replicaCount": 4}"#).await.code });
    super::world::wait_for_request(&world.api, "PUT ").await;
    let answer = other.get("/api/v1/health").await;
    assert_eq!((answer.code, answer.header("retry-after")), (429, "1"));
    assert_eq!(call.await.unwrap(), 504, "the deadline of the call");
    assert_eq!(other.get("/api/v1/health").await.code, 200);
    world.app.stop().await;
}

async fn raw(world: &World) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut tls = world.tls("client");
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let tcp = TcpStream::connect(world.address()).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(tls));
    connector.connect("localhost".try_into().unwrap(), tcp).await.unwrap()
}

async fn read_answer(stream: &mut tokio_rustls::client::TlsStream<TcpStream>) -> String {
    let mut said = vec![0; 4096];
    let count = timeout(PATIENCE, stream.read(&mut said)).await.expect("an answer").unwrap_or(0);
    String::from_utf8_lossy(&said[..count]).into_owned()
}

/// If a body is too large or not expected, the client gets the answer even while it is still sending the body.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sends_too_much_is_told_so() {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    let world = World::start_over(api, "").await.listed().await;
    for (method, status) in [("PUT", "413"), ("DELETE", "405")] {
        let mut stream = raw(&world).await;
        let head = format!(
            "{method} {} HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 300000\r\n\r\n",
            replicas_path("team/web")
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..300 {
            stream.write_all(&[b'x'; 1000]).await.expect("the service reads on");
            tokio::task::yield_now().await;
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer and an end");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    world.app.stop().await;
}

/// A request must name exactly one host, as HTTP/1.1 demands (RFC 9112, section 3.2), because proxies choose
/// differently between two hosts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_names_one_host() {
    let world = World::start_over(Deployments::start().await, "").await.listed().await;
    for (hosts, status) in
        [("host: h\r\n", 200), ("", 400), ("host: h\r\nhost: h\r\n", 400), ("host: h\r\nHost: i\r\n", 400)]
    {
        let mut stream = raw(&world).await;
        let head = format!("GET /api/v1/health HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let said = read_answer(&mut stream).await;
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{hosts:?}: {said}");
    }
    world.app.stop().await;
}

/// A body that is announced as too large is refused without being read. A body that grows too large is cut off. A call
/// whose body does not arrive is ended at its deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_and_heads_have_limits_and_deadlines() {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    let world = World::start_over(api, ", timeout: 500ms").await.listed().await;
    let head = |more: &str| {
        format!(
            "PUT {} HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n{more}\r\n\r\n",
            replicas_path("team/web")
        )
    };
    let mut stream = raw(&world).await;
    stream.write_all(head("content-length: 1073741824").as_bytes()).await.unwrap();
    assert!(read_answer(&mut stream).await.starts_with("HTTP/1.1 413 "));
    let mut stream = raw(&world).await;
    stream.write_all(head("transfer-encoding: chunked").as_bytes()).await.unwrap();
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
    stream.write_all(chunk.as_bytes()).await.unwrap();
    stream.write_all(chunk.as_bytes()).await.unwrap();
    assert!(read_answer(&mut stream).await.starts_with("HTTP/1.1 413 "));
    let mut stream = raw(&world).await;
    stream.write_all(head("content-length: 10").as_bytes()).await.unwrap();
    let begun = std::time::Instant::now();
    assert!(read_answer(&mut stream).await.starts_with("HTTP/1.1 408 "));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let mut stream = raw(&world).await;
    let _ = stream.write_all(head(&format!("x: {}", "y".repeat(200_000))).as_bytes()).await;
    let answer = read_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let mut stream = raw(&world).await;
    let many: Vec<String> = (0..200).map(|index| format!("x-{index}: y")).collect();
    let many = many.join("\r\n");
    stream.write_all(head(&many).as_bytes()).await.unwrap();
    assert!(read_answer(&mut stream).await.starts_with("HTTP/1.1 431 "));
    world.app.stop().await;
}
