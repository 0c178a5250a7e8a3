//! Tests of the faults on requests: other answers, late ones, and none.

use std::time::{Duration, Instant};

use http::Method;
use http_body_util::BodyExt;
use mock_faults::{ErrorBody, Fault, FaultId, Name, Nth, On};
use serde_json::json;
use units::Span;

use super::{ID, fault, harness_is_spared, hits, watch, with, write};
use crate::client::{Protocol, World};
use crate::{PACKAGES, package, revision};

const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];
/// Short enough for a test, long enough to be distinguished from no delay.
const LATE: Duration = Duration::from_millis(150);

fn on(name: Name, on: On) -> Fault {
    Fault { on: Some(on), ..fault(name) }
}

fn late(name: Name) -> Fault {
    fault(name).set("delay", Span(LATE))
}

#[tokio::test]
async fn an_error_has_the_reason_that_belongs_to_it_and_nothing_is_done() {
    for protocol in BOTH {
        let error = on(Name::HttpError, On::List).set("status", 429).set("retryAfter", Span::from_millis(1500));
        let world = with(&error).await;
        let mut client = world.client(protocol, "subject").await;
        let response = client.send(Method::GET, PACKAGES, "").await;
        assert_eq!((response.status().as_u16(), response.headers()["retry-after"].as_bytes()), (429, &b"2"[..]));
        let body: serde_json::Value =
            serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
        assert_eq!((&body["reason"], &body["details"]["retryAfterSeconds"]), (&json!("TooManyRequests"), &json!(2)));
        assert_eq!(client.get(&format!("{PACKAGES}/nobody")).await.0, 404, "a get is no list");
        watch(&world, protocol, "harness").await;
        harness_is_spared(&world, "one").await;
        world.server.faults().end(ID);
        assert_eq!(client.get(PACKAGES).await.0, 200, "it is over");
        assert_eq!(world.server.faults().hits(ID), 1);
        let detail = world.server.faults().take_hits().remove(0).detail;
        assert!(detail.starts_with("list of packages.longhaul.dev by subject on connection"), "{detail}");
    }
}

#[tokio::test]
async fn an_error_hits_the_requests_it_names() {
    let statuses = [
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (410, "Expired"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
    ];
    for (status, reason) in statuses {
        let world = with(&Fault { nth: Some(Nth::one(2)), ..on(Name::HttpError, On::Any) }.set("status", status)).await;
        let mut client = world.client(Protocol::Http1, "subject").await;
        assert_eq!(client.get(PACKAGES).await.0, 200);
        let (got, body) = client.post(PACKAGES, &package("one")).await;
        assert_eq!((got, &body["reason"]), (status, &json!(reason)));
        assert_eq!(client.post(PACKAGES, &package("one")).await.0, 201, "the refused one was not made");
        assert_eq!(world.server.faults().hits(ID), 1);
    }
}

#[tokio::test]
async fn an_error_may_be_a_proxys() {
    let world = with(&on(Name::HttpError, On::List).set("status", 502).set("body", ErrorBody::Text)).await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    let response = client.send(Method::GET, PACKAGES, "").await;
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/plain"));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "Bad Gateway\n");
    world.server.faults().end(ID);
    let empty = on(Name::HttpError, On::List).set("body", ErrorBody::Empty);
    world.server.faults().begin(ID, &empty).unwrap();
    let response = client.send(Method::GET, PACKAGES, "").await;
    assert_eq!(response.status(), 500);
    assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn a_request_stays_without_an_answer_until_the_fault_ends() {
    for protocol in BOTH {
        let world = with(&Fault { nth: Some(Nth::one(1)), ..fault(Name::NoAnswer) }).await;
        let mut client = world.client(protocol, "subject").await;
        let resume = format!("{PACKAGES}?watch=1&resourceVersion={}", world.server.revision());
        let waiting = client.try_send(Method::GET, &resume, "");
        let ending = async {
            hits(&world, ID, 1).await;
            let mut second = watch(&world, protocol, "subject").await;
            write(&world, "one").await;
            assert_eq!(second.event().await.1, "one", "the next watch is served");
            world.server.faults().end(ID);
        };
        let (answer, ()) = tokio::join!(waiting, ending);
        assert!(answer.is_err(), "closed without an answer");
        harness_is_spared(&world, "two").await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_unanswered_request_along() {
    let world = with(&on(Name::NoAnswer, On::List)).await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    let left = tokio::time::timeout(LATE, client.try_send(Method::GET, PACKAGES, "")).await;
    assert!(left.is_err(), "no answer");
    drop(client);
    let ends = Instant::now() + crate::client::PATIENCE;
    while world.server.traffic("subject").requests_open > 0 {
        assert!(Instant::now() < ends, "the request is still open");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(world.server.faults().hits(ID), 1);
}

#[tokio::test]
async fn a_late_list_shows_what_was_when_it_was_asked() {
    for protocol in BOTH {
        let world = with(&late(Name::DelayAnswer)).await;
        let before = world.server.revision();
        let mut client = world.client(protocol, "subject").await;
        let began = Instant::now();
        let meanwhile = async {
            hits(&world, ID, 1).await;
            write(&world, "meanwhile").await
        };
        let ((status, list), written) = tokio::join!(client.get(PACKAGES), meanwhile);
        assert!(began.elapsed() >= LATE);
        assert_eq!((status, revision(&list), list["items"].as_array().unwrap().len()), (200, before, 0));
        assert!(written > before, "the write came before the answer");
        let mut lines = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={before}")).await;
        assert_eq!(lines.event().await.2, written, "watches are not late");
        assert_eq!(world.server.faults().hits(ID), 1);
    }
}

#[tokio::test]
async fn a_late_watch_begins_later_and_misses_nothing() {
    let world = with(&Fault { on: Some(On::Watch), ..late(Name::DelayAnswer) }).await;
    let from = world.server.revision();
    let mut client = world.client(Protocol::Http1, "subject").await;
    let began = Instant::now();
    let meanwhile = async {
        hits(&world, ID, 1).await;
        assert_eq!(world.server.traffic("subject").watches_open, 0, "not opened yet");
        write(&world, "meanwhile").await
    };
    let resume = format!("{PACKAGES}?watch=1&resourceVersion={from}");
    let (mut lines, written) = tokio::join!(client.watch(&resume), meanwhile);
    assert!(began.elapsed() >= LATE);
    assert_eq!(lines.event().await.2, written);
}

#[tokio::test]
async fn held_headers_come_with_the_events_of_meanwhile() {
    for protocol in BOTH {
        let world = with(&late(Name::HoldHeaders)).await;
        let from = world.server.revision();
        let mut client = world.client(protocol, "subject").await;
        let began = Instant::now();
        let meanwhile = async {
            hits(&world, ID, 1).await;
            // A watch that is opened at once does not lose the events that are compacted now.
            let written = write(&world, "meanwhile").await;
            assert_eq!(world.server.traffic("subject").watches_open, 1);
            written
        };
        let resume = format!("{PACKAGES}?watch=1&resourceVersion={from}");
        let (mut lines, written) = tokio::join!(client.watch(&resume), meanwhile);
        assert!(began.elapsed() >= LATE);
        assert_eq!(lines.event().await.2, written);
        let mut other = world.client(protocol, "subject").await;
        assert_eq!(other.get(PACKAGES).await.0, 200, "lists are not held");
        assert_eq!(world.server.faults().hits(ID), 1);
    }
}

#[tokio::test]
async fn a_watch_is_answered_with_nothing() {
    for protocol in BOTH {
        let world = with(&fault(Name::Empty200)).await;
        let mut client = world.client(protocol, "subject").await;
        let resume = format!("{PACKAGES}?watch=1&resourceVersion={}", world.server.revision());
        for _ in 0..2 {
            let response = client.send(Method::GET, &resume, "").await;
            assert_eq!(response.status(), 200);
            assert!(response.headers().get("content-length").is_none(), "a stream has no length");
            assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
        }
        assert_eq!(client.get(PACKAGES).await.0, 200);
        assert_eq!(world.server.faults().hits(ID), 2);
        harness_is_spared(&world, "one").await;
    }
}

#[tokio::test]
async fn only_a_stale_watch_is_answered_with_nothing() {
    let world = with(&fault(Name::Empty200).set("stale", true)).await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    let from = world.server.revision();
    let resume = format!("{PACKAGES}?watch=1&resourceVersion={from}");
    let mut lines = client.watch(&resume).await;
    write(&world, "one").await;
    assert_eq!(lines.event().await.1, "one", "a watch from a known revision is healthy");
    assert_eq!(world.server.faults().hits(ID), 0);
    world.server.faults().begin(FaultId(8), &Fault::armed(Name::Compact)).unwrap();
    let mut client = world.client(Protocol::Http1, "subject").await;
    let mut nothing = client.watch(&resume).await;
    assert_eq!(nothing.next().await.unwrap(), None);
    assert_eq!(world.server.faults().hits(ID), 1);
    assert_eq!(world.server.faults().hits(FaultId(8)), 1, "without the compaction it would have been answered");
    let mut harness = world.client(Protocol::Http1, "harness").await.watch(&resume).await;
    assert_eq!(harness.next().await.unwrap().unwrap()["object"]["code"], json!(410), "others get the truth");
}

#[tokio::test]
async fn an_answer_comes_as_another_media_type() {
    let world = with(&on(Name::WrongContentType, On::List)).await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    let response = client.send(Method::GET, PACKAGES, "").await;
    assert_eq!((response.status().as_u16(), response.headers()["content-type"].as_bytes()), (200, &b"text/html"[..]));
    drop(response.into_body().collect().await.unwrap());
    let response = client.send(Method::GET, &format!("{PACKAGES}?watch=1&timeoutSeconds=1"), "").await;
    assert_eq!(response.headers()["content-type"].as_bytes(), b"application/json", "a watch is no list");
    assert_eq!(world.server.faults().hits(ID), 1);
}

#[tokio::test]
async fn chance_comes_from_the_seed_and_count_is_the_most() {
    let run = |seed: u64| async move {
        let world = World::with(|config| config.seed = seed).await;
        world.server.faults().target_users(["subject"]);
        let half = Fault { probability: Some(0.5), count: Some(5), ..on(Name::HttpError, On::List) };
        world.server.faults().begin(ID, &half).unwrap();
        let mut client = world.client(Protocol::Http1, "subject").await;
        let mut statuses = Vec::new();
        for _ in 0..30 {
            statuses.push(client.get(PACKAGES).await.0);
        }
        statuses
    };
    let (first, again, other) = (run(1).await, run(1).await, run(2).await);
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert_eq!(first.iter().filter(|status| **status == 500).count(), 5);
    assert!(first[..5].contains(&200), "not every one");
}

#[tokio::test]
async fn a_rotated_token_is_in_its_file_and_open_streams_live_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let file = path.clone();
    let world = World::with(|config| {
        config.token_files.insert("subject".to_owned(), file);
    })
    .await;
    world.server.faults().target_users(["subject"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "subject-token");
    assert!(world.server.kubeconfig("subject").unwrap().contains("tokenFile"));
    let mut lines = watch(&world, Protocol::Http1, "subject").await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    world.server.faults().begin(ID, &Fault::armed(Name::TokenRotated)).unwrap();
    assert_eq!(world.server.faults().hits(ID), 0, "nobody has noticed");
    let (status, body) = client.get(PACKAGES).await;
    assert_eq!((status, &body["reason"]), (401, &json!("Unauthorized")));
    assert_eq!(world.server.faults().hits(ID), 1, "the old token");
    let token = std::fs::read_to_string(&path).unwrap();
    assert_ne!(token, "subject-token");
    let mut client = client.with_token(&token);
    for _ in 0..2 {
        assert_eq!(client.get(PACKAGES).await.0, 200);
        assert_eq!(world.server.faults().hits(ID), 2, "the new token, the first time");
    }
    world.server.faults().end(ID);
    assert_eq!(client.with_token("subject-token").get(PACKAGES).await.0, 401, "the old one stays refused");
    harness_is_spared(&world, "one").await;
    assert_eq!(lines.event().await.1, "one");
}
