//! Every fault does what its name says, counts what it did, and leaves the rest alone.

use http::StatusCode;
use mocks::registry::{Config, Fault, FaultId, FaultName, Kind, Server};
use units::Span;

use crate::client::{Client, registry, registry_with, sha256};

const ID: FaultId = FaultId(1);
const CONTENT: &[u8] = b"the content of a blob that is long enough to be cut";

/// A registry with the tag `a:v1` and one blob; the paths of both.
async fn stocked() -> (Server, Client, String, String) {
    let (server, client) = registry().await;
    let blob = client.push_blob("a", CONTENT).await;
    client.push_manifest("a", "v1", (&blob, CONTENT.len()), "").await;
    (server, client, "/v2/a/manifests/v1".to_owned(), format!("/v2/a/blobs/{blob}"))
}

fn begin(server: &Server, fault: &Fault) {
    server.faults().begin(ID, fault).unwrap();
}

/// After its end a fault has left nothing behind, and its hits are still known.
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
    begin(&server, &Fault::new(FaultName::AuthFailing));
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
    let fault =
        Fault { retry_after: Some(Span::from_secs(7)), count: Some(2), ..Fault::new(FaultName::TooManyRequests) };
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
    begin(&server, &Fault { status: Some(502), ..Fault::new(FaultName::ServerError) });
    assert_eq!(client.get(&manifest).await.status, StatusCode::BAD_GATEWAY);
    server.faults().end(ID);
    server
        .faults()
        .begin(FaultId(2), &Fault { repository: Some("b*".into()), ..Fault::new(FaultName::ServerError) })
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
    begin(&server, &Fault::new(FaultName::Hang));
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
    assert_eq!(server.recent().last().unwrap().fault.as_deref(), Some("hang"));
    healthy_again(server, &client, [&manifest, &blob], 1).await;
}

#[tokio::test]
async fn shutdown_does_not_wait_for_hung_requests() {
    let (server, client, manifest, _) = stocked().await;
    begin(&server, &Fault::new(FaultName::Hang));
    let waiting = tokio::spawn(async move { client.try_send(http::Method::GET, &manifest, &[], "").await });
    while server.faults().hits(ID) == 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::timeout(std::time::Duration::from_secs(5), server.shutdown()).await.expect("shutdown is bounded");
    assert!(waiting.await.unwrap().is_err());
}

#[tokio::test]
async fn truncated_blob_ends_before_its_promise() {
    let (server, client, manifest, blob) = stocked().await;
    begin(&server, &Fault { count: Some(1), ..Fault::new(FaultName::TruncatedBlob) });
    let reply = client.get(&blob).await;
    assert_eq!(reply.header("content-length"), CONTENT.len().to_string());
    assert!(!reply.complete);
    assert_eq!(reply.body, CONTENT[..CONTENT.len() / 2]);
    assert_eq!(client.head(&blob).await.status, StatusCode::OK);
    healthy_again(server, &client, [&manifest, &blob], 1).await;
}

#[tokio::test]
async fn wrong_digest_serves_other_bytes_than_the_header_names() {
    let (server, client, manifest, blob) = stocked().await;
    begin(&server, &Fault::new(FaultName::WrongDigest));
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
    begin(&server, &Fault { count: Some(1), ..Fault::new(FaultName::TagMoved) });
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
    begin(&server, &Fault::new(FaultName::RedirectLoop));
    let mut next = blob.clone();
    for _ in 0..3 {
        let reply = client.get(&next).await;
        assert_eq!(reply.status, StatusCode::TEMPORARY_REDIRECT);
        next = reply.location();
    }
    assert_eq!(next, blob);
    assert_eq!(client.get(&manifest).await.status, StatusCode::OK, "manifests do not redirect");
    healthy_again(server, &client, [&manifest, &blob], 3).await;
}

#[tokio::test]
async fn referrers_404_takes_the_api_away() {
    let (server, client, manifest, blob) = stocked().await;
    let subject = client.head(&manifest).await.header("docker-content-digest").to_owned();
    let path = format!("/v2/a/referrers/{subject}");
    begin(&server, &Fault { user_agent: Some("old".into()), ..Fault::new(FaultName::Referrers404) });
    let old = client.send(http::Method::GET, &path, &[("user-agent", "old client")], "").await;
    assert_eq!(old.status, StatusCode::NOT_FOUND);
    assert_eq!(client.get(&path).await.status, StatusCode::OK, "another client is left alone");
    assert_eq!(server.requests().count(Kind::Referrers), 2);
    healthy_again(server, &client, [&manifest, &blob], 1).await;
}

#[tokio::test]
async fn probability_comes_from_the_seed() {
    let mut patterns = Vec::new();
    for seed in [1, 1, 2] {
        let (server, client) = registry_with(Config { seed, ..Config::new() }).await;
        begin(&server, &Fault { probability: Some(0.5), ..Fault::new(FaultName::ServerError) });
        let mut pattern = Vec::new();
        for _ in 0..24 {
            pattern.push(client.get("/v2/").await.status.as_u16());
        }
        assert!(pattern.contains(&200) && pattern.contains(&503));
        patterns.push(pattern);
        server.shutdown().await;
    }
    assert_eq!(patterns[0], patterns[1]);
    assert_ne!(patterns[0], patterns[2]);
}

#[tokio::test]
async fn a_fault_without_a_hit_says_so_and_a_number_runs_once() {
    let (server, client, _, _) = stocked().await;
    begin(&server, &Fault::new(FaultName::TruncatedBlob));
    let twice = server.faults().begin(ID, &Fault::new(FaultName::Hang)).unwrap_err();
    assert_eq!(twice.to_string(), "fault 1 is running already");
    assert_eq!(client.get("/v2/").await.status, StatusCode::OK);
    server.faults().end(ID);
    server.faults().end(ID);
    assert_eq!(server.faults().hits(ID), 0);
    assert_eq!(server.faults().hits(FaultId(9)), 0);
    server.shutdown().await;
}
