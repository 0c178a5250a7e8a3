//! Tests of the complete record of a followed user's requests: each request appears once, but a watch twice: when it is
//! answered and when it ends.

use std::time::{Duration, Instant};

use mock_faults::{Fault, FaultId, Name};
use mock_kube::{EndedBy, RequestFact};
use serde_json::json;
use units::Span;

use crate::client::{Protocol, World};
use crate::{PACKAGES, package, revision};

async fn until(world: &World, last: impl Fn(&RequestFact) -> bool) -> Vec<RequestFact> {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut all = Vec::new();
    while !all.iter().any(&last) {
        assert!(Instant::now() < deadline, "never told; so far {all:#?}");
        let (facts, lost) = world.server.take_requests("subject");
        assert_eq!(lost, 0);
        all.extend(facts);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    all
}

fn ended(fact: &RequestFact, verb: &str) -> bool {
    fact.parameters().verb == verb && fact.ended.is_some()
}

async fn life_of_a_watch(protocol: Protocol) {
    let world = World::start().await;
    world.server.follow_requests("subject");
    world.server.faults().target_users(["subject"]);
    let mut writer = world.client(Protocol::Http1, "harness").await;
    let mut subject = world.client(protocol, "subject").await;
    let (_, list) = subject.get(&format!("{PACKAGES}?limit=500&labelSelector=a%3Db")).await;
    let start = revision(&list);
    let query = format!("watch=1&resourceVersion={start}&allowWatchBookmarks=true&timeoutSeconds=60");
    let mut lines = subject.watch(&format!("{PACKAGES}?{query}")).await;
    for name in ["one", "two"] {
        writer.post(PACKAGES, &package(name)).await;
        lines.event().await;
    }
    let newest = world.server.revision();
    let reset = Fault { resource: Some("packages".to_owned()), ..Fault::new(Name::WatchReset, Span::default()) };
    world.server.faults().begin(FaultId(1), &reset).unwrap();
    lines.next().await.unwrap_err();
    let facts = until(&world, |fact| ended(fact, "watch")).await;

    let [list, opened, over] = facts.as_slice() else { panic!("{facts:#?}") };
    let asked = list.parameters();
    assert_eq!(
        (asked.verb, &*asked.resource, asked.namespace.as_deref()),
        ("list", "packages.longhaul.dev", Some("default"))
    );
    assert_eq!((asked.limit, asked.labels.as_deref()), (Some(500), Some("a=b")));
    assert_eq!((list.record.status, list.about.revision, list.about.objects), (200, Some(start), 0));
    assert!(matches!(list.ended, Some((_, EndedBy::Server))), "{list:?}");
    let asked = opened.parameters();
    assert_eq!(
        (asked.verb, asked.revision, asked.bookmarks, asked.timeout_s),
        ("watch", Some(start.to_string()), true, Some(60))
    );
    assert_eq!((opened.ended, opened.about.objects, opened.record.status), (None, 0, 200));
    assert_eq!((over.number, over.about.objects, over.about.revision), (opened.number, 2, Some(newest)));
    let (ended_us, by) = over.ended.unwrap();
    let (first_us, last_us) = over.objects_us.unwrap();
    assert_eq!(by, EndedBy::Reset);
    assert!(opened.record.at_us <= first_us && first_us <= last_us && last_us <= ended_us, "{over:?}");
    assert!(world.server.take_requests("harness").0.is_empty(), "nobody follows the harness");
}

#[tokio::test]
async fn a_watch_is_told_when_it_opens_and_when_a_fault_resets_it() {
    life_of_a_watch(Protocol::Http1).await;
    life_of_a_watch(Protocol::Http2).await;
}

#[tokio::test]
async fn who_ended_a_watch_is_told() {
    let world = World::start().await;
    world.server.follow_requests("subject");
    let from = world.server.revision();
    for (protocol, query, by) in [
        (Protocol::Http1, "&timeoutSeconds=1", EndedBy::Server),
        (Protocol::Http2, "&timeoutSeconds=1", EndedBy::Server),
        (Protocol::Http1, "", EndedBy::Client),
        (Protocol::Http2, "", EndedBy::Client),
    ] {
        let mut client = world.client(protocol, "subject").await;
        let mut lines = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={from}{query}")).await;
        if by == EndedBy::Server {
            assert_eq!(lines.next().await.unwrap(), None);
        }
        drop((lines, client));
        let facts = until(&world, |fact| fact.ended.is_some()).await;
        assert_eq!(facts.last().unwrap().ended.unwrap().1, by, "{protocol:?}{query}");
    }
}

/// The record of a user's requests contains the reason of a refused write and the name of a created object, which the
/// audit's other records lack.
#[tokio::test]
async fn what_a_write_came_to_is_told_in_words() {
    let world = World::start().await;
    world.server.follow_requests("subject");
    let mut subject = world.client(Protocol::Http1, "subject").await;
    subject.post(PACKAGES, &package("one")).await;
    subject.post(PACKAGES, &package("one")).await;
    subject.post("/api/v1/namespaces/nowhere/configmaps", &json!({"metadata": {"name": "two"}})).await;
    let facts = until(&world, |fact| fact.record.path.contains("nowhere")).await;
    let said: Vec<(u16, &str, &str)> = facts
        .iter()
        .filter(|fact| fact.parameters().verb == "create")
        .map(|fact| {
            let said = fact.said.as_deref().unwrap();
            (fact.record.status, &*said.name, &*said.message)
        })
        .collect();
    let taken = "packages.longhaul.dev \"one\" already exists";
    assert_eq!(said[..2], [(201, "one", ""), (409, "one", taken)]);
    assert_eq!(said[2], (404, "nowhere", "namespaces \"nowhere\" not found"));
}

#[tokio::test]
async fn refusals_and_connections_are_told() {
    let world = World::start().await;
    world.server.follow_requests("subject");
    let from = world.server.revision();
    let mut writer = world.client(Protocol::Http1, "harness").await;
    writer.post(PACKAGES, &package("one")).await;
    world.server.compact(world.server.revision());
    let mut clients = Vec::new();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut client = world.client(protocol, "subject").await;
        client.get(&format!("{PACKAGES}?watch=1&resourceVersion={from}")).await;
        client.get("/apis/nothing/v1/here").await;
        client.get("/healthz").await;
        clients.push(client);
    }
    let facts = until(&world, |fact| fact.number == 6).await;
    let told: Vec<_> =
        facts.iter().map(|fact| (fact.parameters().verb, fact.record.status, fact.about.error_code)).collect();
    let each = [("watch", 200, Some(410)), ("list", 404, None), ("", 200, None)];
    assert_eq!(told, [each, each].concat());
    let traffic = world.server.traffic("subject");
    assert_eq!((traffic.connections, traffic.connections_open), (2, 2));
    clients.pop();
    let deadline = Instant::now() + Duration::from_secs(10);
    while world.server.traffic("subject").connections_open != 1 {
        assert!(Instant::now() < deadline, "{:?}", world.server.traffic("subject"));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(world.server.traffic("subject").connections, 2);
}

/// Begins a fault for the subject; `fault` is written as in a scenario.
fn begin(world: &World, number: u32, fault: serde_json::Value) {
    world.server.faults().target_users(["subject"]);
    let fault: Fault = serde_json::from_value(fault).unwrap();
    world.server.faults().begin(FaultId(number), &fault).unwrap();
}

#[tokio::test]
async fn an_error_in_a_stream_is_told_with_its_code() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let world = World::start().await;
        world.server.follow_requests("subject");
        let mut subject = world.client(protocol, "subject").await;
        let from = world.server.revision();
        begin(&world, 1, json!({"name": "error-event", "code": 500, "resource": "packages", "afterEvents": 1}));
        let mut lines = subject.watch(&format!("{PACKAGES}?watch=1&resourceVersion={from}")).await;
        world.client(Protocol::Http1, "harness").await.post(PACKAGES, &package("one")).await;
        lines.event().await;
        assert_eq!(lines.next().await.unwrap().unwrap()["object"]["code"], json!(500));
        let facts = until(&world, |fact| ended(fact, "watch")).await;
        let over = facts.last().unwrap();
        assert_eq!(
            (over.record.status, over.about.error_code, over.about.objects),
            (200, Some(500), 1),
            "{protocol:?}"
        );
    }
}

#[tokio::test]
async fn a_request_without_an_answer_is_told_when_it_is_over() {
    for (protocol, client_leaves, by) in [
        (Protocol::Http1, true, EndedBy::Client),
        (Protocol::Http2, true, EndedBy::Client),
        (Protocol::Http1, false, EndedBy::Reset),
        (Protocol::Http2, false, EndedBy::Reset),
    ] {
        let world = World::start().await;
        world.server.follow_requests("subject");
        begin(&world, 1, json!({"name": "no-answer", "on": "list", "resource": "packages"}));
        let mut client = world.client(protocol, "subject").await;
        let asks = tokio::spawn(async move { client.try_send(http::Method::GET, PACKAGES, "").await.is_err() });
        let deadline = Instant::now() + Duration::from_secs(10);
        while world.server.faults().hits(FaultId(1)) == 0 {
            assert!(Instant::now() < deadline, "never asked");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(world.server.take_requests("subject").0.is_empty(), "it is not over");
        if client_leaves {
            asks.abort();
        } else {
            world.server.faults().end(FaultId(1));
        }
        let facts = until(&world, |fact| ended(fact, "list")).await;
        let told = (facts[0].record.status, facts[0].ended.unwrap().1);
        assert_eq!(told, (0, by), "{protocol:?}, client leaves: {client_leaves}");
    }
}

/// The requests of a client with an old token appear as requests of the client's user.
#[tokio::test]
async fn requests_with_an_old_token_are_their_users() {
    let world = World::start().await;
    world.server.follow_requests("subject");
    let mut client = world.client(Protocol::Http1, "subject").await;
    begin(&world, 1, json!({"name": "token-rotated"}));
    assert_eq!(client.get(PACKAGES).await.0, 401);
    let facts = until(&world, |fact| ended(fact, "list")).await;
    assert_eq!((facts.len(), facts[0].record.status), (1, 401));
    let mut stranger = world.bare(Protocol::Http1, None).await.with_token("nobody's");
    assert_eq!(stranger.get(PACKAGES).await.0, 401);
    assert!(world.server.take_requests("subject").0.is_empty());
}

/// If the old token stays valid for a while, a client that reads its token file in time is never refused. A client that
/// does not read the new token in time is refused.
#[tokio::test]
async fn an_old_token_may_stay_for_a_while() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    let began = Instant::now();
    begin(&world, 1, json!({"name": "token-rotated", "stays": "300ms"}));
    // Repeated until it is refused, so that no sleep decides the time.
    let refused = loop {
        match client.get(PACKAGES).await.0 {
            200 => assert!(began.elapsed() < Duration::from_secs(20)),
            status => break status,
        }
    };
    assert_eq!(refused, 401);
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
}
