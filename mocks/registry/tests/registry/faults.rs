//! Tests that every fault has its effect, counts its hits, and leaves other requests unchanged.

use http::StatusCode;
use mock_faults::{Fault, FaultId, How, Name};
use mock_registry::{Config, Kind, Server};
use units::Span;

use crate::client::{Client, registry, registry_with, sha256};

const ID: FaultId = FaultId(1);
const CONTENT: &[u8] = b"the content of a blob that is long enough to be cut";

/// A registry with the tag `a:v1` and one blob, a client, and the paths of the manifest and the blob.
async fn stocked() -> (Server, Client, String, String) {
    let (server, client) = registry().await;
    let blob = client.push_blob("a", CONTENT).await;
    client.push_manifest("a", "v1", (&blob, CONTENT.len()), "").await;
    (server, client, "/v2/a/manifests/v1".to_owned(), format!("/v2/a/blobs/{blob}"))
}

fn begin(server: &Server, fault: &Fault) {
    server.faults().begin(ID, fault).unwrap();
}

/// Checks that a fault has no effect after its end and that the fault's hits stay readable.
async fn healthy_again(server: Server, client: &Client, paths: [&str; 2], hits: u64) {
    server.faults().end(ID);
    for path in paths {
        let reply = client.get(path).await;
        assert!(reply.status == StatusCode::OK && reply.complete, "{reply:?}");
        assert_eq!(sha256(&reply.body), reply.header("docker-content-digest"));
    }
    assert_eq!(server.faults().hits(ID), hits);
    let recorded = server.faults().take_hits();
    assert_eq!(recorded.len() as u64, hits);
    assert!(recorded.iter().all(|hit| hit.fault == ID && hit.detail.contains(" on /")));
    assert!(server.faults().take_hits().is_empty());
    server.shutdown().await;
}

#[tokio::test]
async fn auth_failing_refuses_everything_and_the_token_too() {
    let (server, client, manifest, blob) = stocked().await;
    begin(&server, &Fault::armed(Name::RegistryAuthFailing));
    for path in [manifest.as_str(), &blob, "/v2/", "/token?scope=repository:a:pull"] {
        let reply = client.get(path).await;
        assert_eq!((reply.status, reply.code()), (StatusCode::UNAUTHORIZED, "UNAUTHORIZED".to_owned()));
        assert!(reply.header("www-authenticate").starts_with("Bearer realm="));
    }
    healthy_again(server, &client, [&manifest, &blob], 4).await;
}

#[tokio::test]
async fn too_many_requests_says_when_to_come_back() {
    let (server, client, manifest, blob) = stocked().await;
    let fault = Fault { count: Some(2), ..Fault::armed(Name::RegistryError) }
        .set("status", 429)
        .set("retryAfter", Span::from_secs(7));
    begin(&server, &fault);
    for _ in 0..2 {
        let reply = client.get(&manifest).await;
        assert_eq!((reply.status, reply.header("retry-after")), (StatusCode::TOO_MANY_REQUESTS, "7"));
        assert_eq!(reply.code(), "TOOMANYREQUESTS");
    }
    assert_eq!(client.get(&manifest).await.status, StatusCode::OK, "after its count the fault is spent");
    healthy_again(server, &client, [&manifest, &blob], 2).await;
}

#[tokio::test]
async fn server_error_has_the_status_that_was_asked_for() {
    let (server, client, manifest, blob) = stocked().await;
    begin(&server, &Fault::armed(Name::RegistryError).set("status", 502));
    assert_eq!(client.get(&manifest).await.status, StatusCode::BAD_GATEWAY);
    server.faults().end(ID);
    server
        .faults()
        .begin(FaultId(2), &Fault { repository: Some("b*".into()), ..Fault::armed(Name::RegistryError) })
        .unwrap();
    assert_eq!(client.get("/v2/bc/tags/list").await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(client.get(&manifest).await.status, StatusCode::OK, "another repository is left alone");
    server.faults().end(FaultId(2));
    assert_eq!(server.faults().hits(FaultId(2)), 1);
    assert_eq!(server.faults().take_hits().len(), 2);
    assert_eq!(server.faults().hits(ID), 1);
    assert_eq!(client.get(&blob).await.status, StatusCode::OK);
    server.shutdown().await;
}

#[tokio::test]
async fn hang_answers_nothing_until_it_ends() {
    let (server, client, manifest, blob) = stocked().await;
    begin(&server, &Fault::armed(Name::RegistryHang));
    let (asking, path) = (client.clone(), manifest.clone());
    let waiting = tokio::spawn(async move { asking.try_send(http::Method::GET, &path, &[], "").await });
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    while server.faults().hits(ID) == 0 {
        assert!(tokio::time::Instant::now() < deadline, "the request never arrived");
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    server.faults().end(ID);
    assert!(waiting.await.unwrap().is_err(), "the connection closes without an answer");
    assert_eq!(server.recent().last().unwrap().status, 0);
    assert_eq!(server.recent().last().unwrap().fault.as_deref(), Some("registry-hang"));
    healthy_again(server, &client, [&manifest, &blob], 1).await;
}

#[tokio::test]
async fn shutdown_does_not_wait_for_hung_requests() {
    let (server, client, manifest, _) = stocked().await;
    begin(&server, &Fault::armed(Name::RegistryHang));
    let waiting = tokio::spawn(async move { client.try_send(http::Method::GET, &manifest, &[], "").await });
    while server.faults().hits(ID) == 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::timeout(std::time::Duration::from_secs(5), server.shutdown()).await.expect("shutdown is bounded");
    assert!(waiting.await.unwrap().is_err());
}

#[tokio::test]
async fn a_cut_body_ends_before_its_promise() {
    let (server, client, manifest, blob) = stocked().await;
    begin(&server, &Fault { count: Some(2), ..Fault::armed(Name::RegistryCut) });
    let reply = client.get(&blob).await;
    assert_eq!(reply.header("content-length"), CONTENT.len().to_string());
    assert!(!reply.complete);
    assert_eq!(reply.body, CONTENT[..CONTENT.len() / 2]);
    let headless = client.try_send(http::Method::HEAD, &manifest, &[], "").await;
    assert!(headless.is_err(), "what has no body is not sent at all: {headless:?}");
    assert_eq!(client.head(&blob).await.status, StatusCode::OK, "spent");
    healthy_again(server, &client, [&manifest, &blob], 2).await;
}

#[tokio::test]
async fn wrong_digest_serves_other_bytes_than_the_header_names() {
    let (server, client, manifest, blob) = stocked().await;
    begin(&server, &Fault::armed(Name::RegistryWrongDigest));
    for path in [&manifest, &blob] {
        let reply = client.get(path).await;
        assert!(reply.status == StatusCode::OK && reply.complete);
        assert_ne!(sha256(&reply.body), reply.header("docker-content-digest"));
    }
    let manifest_reply = client.get(&manifest).await;
    assert_eq!(manifest_reply.json()["schemaVersion"], 2, "only a client that checks notices");
    healthy_again(server, &client, [&manifest, &blob], 3).await;
}

#[tokio::test]
async fn tag_moved_shows_only_to_who_reads_twice() {
    let (server, client, manifest, blob) = stocked().await;
    begin(&server, &Fault { count: Some(1), ..Fault::armed(Name::RegistryTagMoved) });
    let first = client.head(&manifest).await.header("docker-content-digest").to_owned();
    assert_eq!(server.faults().hits(ID), 0, "one reading is no hit");
    let by_digest = client.get(&format!("/v2/a/manifests/{first}")).await;
    assert_eq!((by_digest.status, server.faults().hits(ID)), (StatusCode::OK, 0));
    let second = client.get(&manifest).await;
    assert_ne!(second.header("docker-content-digest"), first);
    assert_eq!(sha256(&second.body), second.header("docker-content-digest"), "the moved image is a good one");
    let third = client.get(&manifest).await;
    assert_eq!(third.header("docker-content-digest"), second.header("docker-content-digest"), "spent");
    healthy_again(server, &client, [&manifest, &blob], 1).await;
}

#[tokio::test]
async fn redirect_loop_leads_nowhere() {
    let (server, client, manifest, blob) = stocked().await;
    begin(&server, &Fault::armed(Name::RegistryRedirectLoop));
    for path in [&blob, &manifest] {
        let mut next = path.clone();
        for _ in 0..3 {
            let reply = client.get(&next).await;
            assert_eq!(reply.status, StatusCode::TEMPORARY_REDIRECT);
            next = reply.location();
        }
        assert_eq!(next, *path);
    }
    assert_eq!(client.get("/v2/").await.status, StatusCode::OK, "only what can be stored elsewhere redirects");
    healthy_again(server, &client, [&manifest, &blob], 6).await;
}

#[tokio::test]
async fn referrers_404_takes_the_api_away() {
    let (server, client, manifest, blob) = stocked().await;
    let subject = client.head(&manifest).await.header("docker-content-digest").to_owned();
    let path = format!("/v2/a/referrers/{subject}");
    begin(&server, &Fault { user_agent: Some("old".into()), ..Fault::armed(Name::RegistryReferrers404) });
    let old = client.send(http::Method::GET, &path, &[("user-agent", "old client")], "").await;
    assert_eq!(old.status, StatusCode::NOT_FOUND);
    assert_eq!(client.get(&path).await.status, StatusCode::OK, "another client is left alone");
    assert_eq!(server.requests().count(Kind::Referrers), 2);
    healthy_again(server, &client, [&manifest, &blob], 1).await;
}

#[tokio::test]
async fn slow_comes_late_and_trickles() {
    let (server, client, manifest, blob) = stocked().await;
    let slow = Fault { repository: Some("a".to_owned()), ..Fault::armed(Name::RegistrySlow) }
        .set("delay", Span::from_millis(150))
        .set("rate", "200B/s");
    begin(&server, &slow);
    let began = std::time::Instant::now();
    let reply = client.get(&blob).await;
    // 51 bytes in pieces of 20, each 100 ms after the one before.
    let (took, least) = (began.elapsed(), std::time::Duration::from_millis(150 + 300));
    assert!(reply.complete && reply.body == CONTENT && took >= least, "{took:?}");
    assert_eq!(client.get("/v2/").await.status, StatusCode::OK, "it is about a repository only");
    healthy_again(server, &client, [&manifest, &blob], 1).await;
}

/// Each variant of `registry-down` ends an open connection and does not serve a new one.
#[tokio::test]
async fn down_ends_connections_and_lets_none_in() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    for how in [How::Reset, How::Close, How::Hang] {
        let (server, client, manifest, _) = stocked().await;
        let ask = format!("GET {manifest} HTTP/1.1\r\nhost: x\r\n\r\n");
        let mut open = tokio::net::TcpStream::connect(server.address()).await.unwrap();
        open.write_all(ask.as_bytes()).await.unwrap();
        assert!(open.read_u8().await.is_ok(), "it is healthy");
        begin(&server, &Fault::armed(Name::RegistryDown).set("how", how));
        let mut new = tokio::net::TcpStream::connect(server.address()).await.unwrap();
        let mut all = Vec::new();
        let waits = std::time::Duration::from_millis(200);
        let ended = |read: Result<std::io::Result<usize>, _>| match read {
            Ok(Ok(_)) => Some(How::Close),
            Ok(Err(error)) => (error.kind() == std::io::ErrorKind::ConnectionReset).then_some(How::Reset),
            Err(_) => Some(How::Hang),
        };
        assert_eq!(ended(tokio::time::timeout(waits, new.read_to_end(&mut all)).await), Some(how), "a new one");
        assert_eq!(ended(tokio::time::timeout(waits, open.read_to_end(&mut all)).await), Some(how), "an open one");
        server.faults().end(ID);
        assert_eq!(client.get(&manifest).await.status, StatusCode::OK);
        let told: Vec<String> = server.faults().take_hits().into_iter().map(|hit| hit.detail).collect();
        assert!(told.len() == 2 && told[0].starts_with("open connection") && told[1].starts_with("new"), "{told:?}");
        server.shutdown().await;
    }
}

/// The harness uses the registry's second address, at which no fault has an effect and no request is counted.
#[tokio::test]
async fn the_own_door_knows_no_fault() {
    let config = Config { own_door: true, ..Config::new() };
    let (server, client) = registry_with(config).await;
    begin(&server, &Fault::armed(Name::RegistryDown).set("how", How::Reset));
    server.faults().begin(FaultId(2), &Fault::armed(Name::RegistryError)).unwrap();
    let own = Client::to(server.own_address().unwrap());
    assert_eq!(own.get("/v2/").await.status, StatusCode::OK);
    assert_eq!((server.requests().total(), server.faults().hits(ID)), (0, 0));
    assert!(client.try_send(http::Method::GET, "/v2/", &[], "").await.is_err());
    server.shutdown().await;
}

#[tokio::test]
async fn who_wants_to_know_is_told_of_a_move_before_it_can_be_read() {
    let (server, client, manifest, _) = stocked().await;
    let told = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let heard = told.clone();
    server.on_move(move |reference, digest| heard.lock().push((reference.to_owned(), digest.to_owned())));
    begin(&server, &Fault { count: Some(1), ..Fault::armed(Name::RegistryTagMoved) });
    client.head(&manifest).await;
    let moved = client.head(&manifest).await.header("docker-content-digest").to_owned();
    assert_eq!(*told.lock(), [(format!("{}/a:v1", server.host()), moved)]);
    assert_eq!((server.requests().tags, server.requests().most_of_one_tag), (1, 2));
    server.shutdown().await;
}
