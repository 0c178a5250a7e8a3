//! Tests of watches: their events, the order, and their end; and of the harness's view of them.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{PATIENCE, Protocol, World};
use crate::{CONFIG_MAPS, MERGE, PACKAGES, config_map, package, revision};

fn event(kind: &str, name: &str, revision: u64) -> (String, String, u64) {
    (kind.to_owned(), name.to_owned(), revision)
}

#[tokio::test]
async fn a_watch_gets_everything_after_its_revision_over_both_protocols() {
    let world = World::start().await;
    let mut writer = world.client(Protocol::Http1, "harness").await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut watcher = world.client(protocol, "subject").await;
        let (_, list) = watcher.get(PACKAGES).await;
        let from = revision(&list);
        let (_, one) = writer.post(PACKAGES, &package("one")).await;
        let mut lines = watcher.watch(&format!("{PACKAGES}?watch=true&resourceVersion={from}")).await;
        assert_eq!(lines.event().await, event("ADDED", "one", revision(&one)));
        let image = json!({"spec": {"image": "a:2"}});
        let (_, two) = writer.patch(&format!("{PACKAGES}/one"), MERGE, &image).await;
        assert_eq!(lines.event().await, event("MODIFIED", "one", revision(&two)));
        writer.post(CONFIG_MAPS, &config_map("other")).await;
        writer.delete(&format!("{CONFIG_MAPS}/other")).await;
        writer.delete(&format!("{PACKAGES}/one")).await;
        let last = lines.next().await.unwrap().unwrap();
        assert_eq!(last["type"], json!("DELETED"));
        assert_eq!(last["object"]["spec"]["image"], json!("a:2"), "the last state");
        assert_eq!(revision(&last["object"]), world.server.revision(), "under the revision of the deletion");
        assert!(lines.is_silent(Duration::from_millis(50)).await);
    }
}

#[tokio::test]
async fn bookmarks_come_when_they_are_allowed_and_the_end_is_clean() {
    let world = World::with(|config| config.bookmarks_every = Duration::from_millis(100)).await;
    let mut writer = world.client(Protocol::Http1, "harness").await;
    let mut watcher = world.client(Protocol::Http1, "subject").await;
    let mut plain = world.client(Protocol::Http1, "subject").await;
    let from = world.server.revision();
    writer.post(CONFIG_MAPS, &config_map("elsewhere")).await;
    let query = format!("watch=1&resourceVersion={from}&timeoutSeconds=1");
    let mut without = plain.watch(&format!("{PACKAGES}?{query}")).await;
    let mut lines = watcher.watch(&format!("{PACKAGES}?{query}&allowWatchBookmarks=true")).await;
    let bookmark = lines.next().await.unwrap().unwrap();
    assert_eq!((&bookmark["type"], &bookmark["object"]["kind"]), (&json!("BOOKMARK"), &json!("Package")));
    assert_eq!(revision(&bookmark["object"]), from + 1, "up to here everything was sent");
    let mut more = 0;
    while lines.next().await.unwrap().is_some() {
        more += 1;
    }
    assert!(more >= 2, "one every 100 ms in a second, got {more}");
    assert_eq!(without.next().await.unwrap(), None, "no bookmark, a clean end");
}

#[tokio::test]
async fn the_tail_shows_every_commit_and_the_audit_what_was_sent() {
    let world = World::start().await;
    let mut tail = world.server.tail();
    let mut writer = world.client(Protocol::Http1, "harness").await;
    let mut watcher = world.client(Protocol::Http1, "subject").await;
    let (_, list) = watcher.get(PACKAGES).await;
    let start = revision(&list);
    let mut lines = watcher.watch(&format!("{PACKAGES}?watch=1&resourceVersion={start}")).await;
    assert_eq!(world.server.traffic("subject").watches_open, 1);
    assert_eq!(world.server.traffic("subject").idle_us, None);
    let (_, made) = writer.post(PACKAGES, &package("one")).await;
    writer.delete(&format!("{PACKAGES}/one")).await;
    let mut commits = Vec::new();
    while commits.len() < 2 {
        commits.extend(tokio::time::timeout(PATIENCE, tail.next_batch(1)).await.unwrap().unwrap());
    }
    assert_eq!(&*commits[0].commit.resource, "packages.longhaul.dev");
    assert_eq!((&*commits[0].commit.namespace, &*commits[0].commit.name), ("default", "one"));
    assert_eq!(json!(commits[0].commit.uid.as_str()), made["metadata"]["uid"]);
    assert_eq!((commits[0].revision, commits[1].revision), (revision(&made), world.server.revision()));
    assert_eq!(commits[1].commit.change, facts::Change::Deleted);
    assert_eq!(tail.try_batch(10), Ok(Vec::new()));

    lines.event().await;
    let (_, _, deleted) = lines.event().await;
    let sent = world.server.delivery("subject", "packages.longhaul.dev", deleted);
    assert!(matches!(sent, mock_kube::Delivery::Sent { .. }), "{sent:?}");
    let never = world.server.delivery("harness", "packages.longhaul.dev", deleted);
    assert_eq!(never, mock_kube::Delivery::NotSent);
    let wanted = mock_kube::Wanted { revision: deleted, name: Some("one"), at_us: 0 };
    let wire = world.server.wire("subject", &wanted, 1);
    assert_eq!(wire.len(), 2);
    let text = &wire[1].text;
    assert!(text.contains("\"DELETED\"") && text.contains("\"name\":\"one\""), "{wire:?}");
    assert!(wire.iter().all(|line| line.text.chars().count() < 500), "{wire:?}");
    let sent = world.server.sendings("subject", "packages.longhaul.dev", &[deleted], 0);
    assert_eq!((sent.len(), sent[0].watch, sent[0].withheld_by), (1, wire[1].watch, None));

    let gaps = world.server.gaps("subject");
    assert_eq!(gaps.len(), 1, "the first list closes everything before it");
    assert_eq!((gaps[0].after, gaps[0].through), (0, start));
    drop((lines, watcher));
    writer.post(PACKAGES, &package("in-the-gap")).await;
    let mut again = world.client(Protocol::Http1, "subject").await;
    let (_, list) = again.get(PACKAGES).await;
    let from = revision(&list);
    let _lines = again.watch(&format!("{PACKAGES}?watch=1&resourceVersion={from}")).await;
    let gaps = world.server.gaps("subject");
    assert_eq!(gaps.iter().map(|gap| (gap.after, gap.through)).collect::<Vec<_>>(), [(deleted, from)]);
    let requests = world.server.requests();
    let watch = requests.iter().rev().find(|request| request.query.contains("watch=1")).unwrap();
    assert_eq!((&*watch.user, &*watch.user_agent, watch.http_version, watch.status), ("subject", "test/1", 1, 200));
}

#[tokio::test]
async fn many_events_arrive_complete_and_in_order() {
    let world = World::start().await;
    let mut writer = world.client(Protocol::Http2, "harness").await;
    let mut streams = Vec::new();
    let from = world.server.revision();
    for index in 0..20 {
        let protocol = if index % 2 == 0 { Protocol::Http1 } else { Protocol::Http2 };
        let mut client = world.client(protocol, "subject").await;
        let lines = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={from}")).await;
        streams.push((client, lines));
    }
    let mut written = Vec::new();
    for index in 0..200 {
        let (_, made) = writer.post(PACKAGES, &package(&format!("p{index}"))).await;
        written.push(revision(&made));
    }
    for (_, lines) in &mut streams {
        for expected in &written {
            assert_eq!(lines.event().await.2, *expected);
        }
    }
}

#[tokio::test]
async fn shutting_down_ends_watches_cleanly_and_frees_the_port() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    let mut lines = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={}", world.server.revision())).await;
    let address = world.server.address();
    let taken = mock_kube::Config { listen: address, ..mock_kube::Config::new() };
    let error = mock_kube::Server::start(taken, &world.authority).await.unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    tokio::time::timeout(PATIENCE, world.server.shutdown()).await.expect("a bounded shutdown");
    assert_eq!(lines.next().await.unwrap(), None, "a clean end");
    tokio::net::TcpListener::bind(address).await.expect("the port is free");
}

/// Waits until the subject has no open watch.
async fn until_no_watch_is_open(world: &World) {
    let deadline = Instant::now() + PATIENCE;
    while world.server.traffic("subject").watches_open > 0 {
        assert!(Instant::now() < deadline, "{:?}", world.server.traffic("subject"));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed() {
    let world = World::start().await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut client = world.client(protocol, "subject").await;
        let lines = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={}", world.server.revision())).await;
        assert_eq!(world.server.traffic("subject").watches_open, 1);
        drop((lines, client));
        until_no_watch_is_open(&world).await;
        let traffic = world.server.traffic("subject");
        assert_eq!(traffic.requests_open, 0);
        assert!(traffic.idle_us.is_some(), "nobody is asking");
    }
}
