//! Tests of the faults that show the store's state differently: old, compacted, in pages, or in another order.

use std::time::Duration;

use mock_faults::{Connections, Fault, FaultId, Form, Name, On};
use serde_json::{Value, json};
use units::Span;

use super::{ID, fault, harness_is_spared, hits, watch, with, write};
use crate::client::{Protocol, World};
use crate::{PACKAGES, revision};

const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

async fn world_with(objects: &[&str]) -> World {
    let world = World::aimed().await;
    for name in objects {
        write(&world, name).await;
    }
    world
}

#[tokio::test]
async fn a_compaction_forgets_and_open_watches_go_on() {
    let world = world_with(&["one"]).await;
    let from = world.server.revision();
    let mut open = watch(&world, Protocol::Http1, "subject").await;
    write(&world, "two").await;
    assert_eq!(open.event().await.1, "two");
    world.server.faults().begin(ID, &Fault::armed(Name::Compact)).unwrap();
    world.server.faults().end(ID);
    write(&world, "three").await;
    assert_eq!(open.event().await.1, "three", "it did not end");
    let now = world.server.revision();
    let mut client = world.client(Protocol::Http1, "subject").await;
    let mut resumed = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={now}")).await;
    write(&world, "four").await;
    assert_eq!(resumed.event().await.1, "four");
    let mut client = world.client(Protocol::Http1, "subject").await;
    let streaming = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut initial = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={from}&{streaming}")).await;
    assert_eq!(initial.event().await.1, "four");
    assert_eq!(world.server.faults().hits(ID), 0, "nobody asked for what is forgotten");
    let mut client = world.client(Protocol::Http1, "subject").await;
    let mut gone = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={from}")).await;
    assert_eq!(gone.next().await.unwrap().unwrap()["object"]["code"], json!(410));
    assert_eq!(world.server.faults().hits(ID), 1);
}

#[tokio::test]
async fn a_compaction_may_keep_the_newest_revisions() {
    let world = world_with(&["one", "two", "three"]).await;
    let now = world.server.revision();
    world.server.faults().begin(ID, &Fault::armed(Name::Compact).set("keep", 1)).unwrap();
    let mut client = world.client(Protocol::Http1, "subject").await;
    let mut kept = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={}", now - 1)).await;
    assert_eq!(kept.event().await.2, now);
    assert_eq!(world.server.faults().hits(ID), 0, "it was kept");
    let mut client = world.client(Protocol::Http1, "subject").await;
    let mut gone = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={}", now - 2)).await;
    assert_eq!(gone.next().await.unwrap().unwrap()["object"]["code"], json!(410));
}

#[tokio::test]
async fn an_old_state_is_shown_to_the_subject_until_the_fault_ends() {
    for protocol in BOTH {
        let world = world_with(&["one"]).await;
        let old = world.server.revision();
        world.server.faults().begin(ID, &fault(Name::StaleView)).unwrap();
        let mut client = world.client(protocol, "subject").await;
        let mut lines = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={old}")).await;
        assert_eq!(world.server.faults().hits(ID), 0, "nothing is old yet");
        harness_is_spared(&world, "two").await;
        hits(&world, ID, 1).await;
        let mut client = world.client(protocol, "subject").await;
        for query in ["", "?resourceVersion=0"] {
            let (status, list) = client.get(&format!("{PACKAGES}{query}")).await;
            assert_eq!((status, revision(&list), names(&list)), (200, old, vec!["one"]), "{query}");
        }
        assert_eq!(client.get(&format!("{PACKAGES}/two")).await.0, 404);
        assert_eq!(world.server.faults().hits(ID), 4);
        assert!(lines.is_silent(Duration::from_millis(30)).await);
        world.server.faults().end(ID);
        assert_eq!(lines.event().await.1, "two", "it catches up");
        assert_eq!(names(&client.get(PACKAGES).await.1), ["one", "two"]);
    }
}

#[tokio::test]
async fn an_old_state_may_be_older_and_only_for_new_connections() {
    let world = world_with(&["one", "two"]).await;
    let mut before = world.client(Protocol::Http1, "subject").await;
    assert_eq!(before.get(PACKAGES).await.0, 200);
    let stale = fault(Name::StaleView).set("behind", 1).set("connections", Connections::New);
    world.server.faults().begin(ID, &stale).unwrap();
    assert_eq!(names(&before.get(PACKAGES).await.1), ["one", "two"]);
    assert_eq!(world.server.faults().hits(ID), 0);
    let mut after = world.client(Protocol::Http1, "subject").await;
    assert_eq!(names(&after.get(PACKAGES).await.1), ["one"]);
    // A snapshot in the stream is from the same state.
    let mut lines = after.watch(&format!("{PACKAGES}?watch=1")).await;
    assert_eq!(lines.event().await.1, "one");
    assert!(lines.is_silent(Duration::from_millis(30)).await);
    let aged = fault(Name::StaleView).set("age", Span::from_secs(3600));
    world.server.faults().end(ID);
    world.server.faults().begin(FaultId(8), &aged).unwrap();
    let mut client = world.client(Protocol::Http1, "subject").await;
    assert!(names(&client.get(PACKAGES).await.1).is_empty(), "an hour ago there was nothing");
}

/// With `cached`, only those requests get the old state that a real server answers from its cache.
#[tokio::test]
async fn an_old_state_may_spare_requests_for_the_newest() {
    let world = world_with(&["one"]).await;
    world.server.faults().begin(ID, &fault(Name::StaleView).set("cached", true)).unwrap();
    harness_is_spared(&world, "two").await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    for query in ["", "?resourceVersion=", "?limit=5"] {
        assert_eq!(names(&client.get(&format!("{PACKAGES}{query}")).await.1), ["one", "two"], "{query}");
    }
    assert_eq!(client.get(&format!("{PACKAGES}/two")).await.0, 200);
    assert_eq!(names(&client.get(&format!("{PACKAGES}?limit=5&resourceVersion=0")).await.1), ["one"]);
    assert_eq!(client.get(&format!("{PACKAGES}/two?resourceVersion=0")).await.0, 404);
}

#[tokio::test]
async fn whoever_knows_more_than_an_old_state_waits_or_is_refused() {
    for protocol in BOTH {
        let world = world_with(&["one", "two"]).await;
        let now = world.server.revision();
        world.server.faults().begin(ID, &fault(Name::StaleView).set("behind", 1)).unwrap();
        let mut client = world.client(protocol, "subject").await;
        let resume = format!("{PACKAGES}?watch=1&resourceVersion={now}");
        let mut lines = client.watch(&resume).await;
        write(&world, "three").await;
        assert!(lines.is_silent(Duration::from_millis(30)).await, "accepted, and silent");
        world.server.faults().end(ID);
        assert_eq!(lines.event().await.1, "three");
        let now = world.server.revision();
        world.server.faults().begin(ID, &fault(Name::StaleView).set("behind", 1)).unwrap();
        for (number, form, causes) in [(20, Form::Modern, true), (21, Form::Old, false)] {
            let refuse = fault(Name::TooLarge).set("form", form);
            world.server.faults().begin(FaultId(number), &refuse).unwrap();
            let mut client = world.client(protocol, "subject").await;
            for path in
                [format!("{PACKAGES}?watch=1&resourceVersion={now}"), format!("{PACKAGES}?resourceVersion={now}")]
            {
                let (status, refused) = client.get(&path).await;
                assert_eq!((status, &refused["reason"]), (504, &json!("Timeout")));
                assert!(refused["message"].as_str().unwrap().starts_with("Too large resource version"));
                assert_eq!(refused["details"]["causes"][0]["reason"] == json!("ResourceVersionTooLarge"), causes);
            }
            let (status, _) = client.get(&format!("{PACKAGES}?resourceVersion={}", now - 1)).await;
            assert_eq!(status, 200, "what the old state has is given");
            assert_eq!(world.server.faults().hits(FaultId(number)), 2);
            world.server.faults().end(FaultId(number));
        }
        harness_is_spared(&world, "four").await;
    }
}

#[tokio::test]
async fn a_list_waits_for_a_lagging_server_as_long_as_a_real_one_lets_it() {
    let world = world_with(&["one"]).await;
    let now = world.server.revision();
    world.server.faults().begin(ID, &fault(Name::StaleView).set("behind", 1)).unwrap();
    let mut client = world.client(Protocol::Http1, "subject").await;
    let path = format!("{PACKAGES}?resourceVersion={now}&resourceVersionMatch=NotOlderThan");
    let ends = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.server.faults().end(ID);
    };
    let ((status, list), ()) = tokio::join!(client.get(&path), ends);
    assert_eq!((status, names(&list)), (200, vec!["one"]), "it caught up in time");
    world.server.faults().begin(ID, &fault(Name::StaleView).set("behind", 1)).unwrap();
    let began = std::time::Instant::now();
    assert_eq!(client.get(&path).await.0, 504);
    assert!(began.elapsed() >= Duration::from_secs(3), "the time that kube-apiserver waits");
}

#[tokio::test]
async fn every_revision_may_be_too_large() {
    let world = with(&fault(Name::TooLarge).set("always", true)).await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    assert_eq!(client.get(&format!("{PACKAGES}?resourceVersion=1")).await.0, 504);
    for healthy in ["", "?resourceVersion=0"] {
        assert_eq!(client.get(&format!("{PACKAGES}{healthy}")).await.0, 200);
    }
    assert_eq!(world.server.faults().hits(ID), 1);
}

#[tokio::test]
async fn lists_come_in_pages_that_nobody_asked_for() {
    for protocol in BOTH {
        let world = world_with(&["a", "b", "c", "d", "e"]).await;
        world.server.faults().begin(ID, &fault(Name::ForcedPages).set("items", 2)).unwrap();
        let mut client = world.client(protocol, "subject").await;
        for query in ["", "limit=4&", "resourceVersion=0&"] {
            let (mut seen, mut token, mut pages) = (Vec::new(), String::new(), 0);
            loop {
                let path = if token.is_empty() {
                    format!("{PACKAGES}?{query}")
                } else {
                    format!("{PACKAGES}?continue={token}")
                };
                let (status, list) = client.get(&path).await;
                assert_eq!(status, 200);
                seen.extend(names(&list).into_iter().map(str::to_owned));
                pages += 1;
                match list["metadata"]["continue"].as_str() {
                    // The last page has an empty token, as a real server's pages of custom resources do.
                    None | Some("") => break,
                    Some(next) => token = next.to_owned(),
                }
                assert!(pages < 9, "a page leads back to an earlier one");
            }
            assert_eq!((seen.join(""), pages), ("abcde".to_owned(), 3), "{query}");
        }
        assert_eq!(world.server.faults().hits(ID), 6, "the last page is none");
        let mut harness = world.client(protocol, "harness").await;
        assert_eq!(names(&harness.get(PACKAGES).await.1).len(), 5);
    }
}

#[tokio::test]
async fn items_and_initial_events_come_newest_first() {
    let world = world_with(&["a", "b", "c"]).await;
    world.server.faults().begin(ID, &fault(Name::Unordered)).unwrap();
    let mut client = world.client(Protocol::Http1, "subject").await;
    assert_eq!(names(&client.get(PACKAGES).await.1), ["c", "b", "a"]);
    let mut lines = client.watch(&format!("{PACKAGES}?watch=1")).await;
    assert_eq!(lines.event().await.1, "a", "by default it is about lists");
    world.server.faults().end(ID);
    world.server.faults().begin(ID, &Fault { on: Some(On::Watch), ..fault(Name::Unordered) }).unwrap();
    let mut client = world.client(Protocol::Http2, "subject").await;
    let mut lines = client.watch(&format!("{PACKAGES}?watch=1")).await;
    let initial = [lines.event().await.1, lines.event().await.1, lines.event().await.1];
    assert_eq!(initial, ["c", "b", "a"]);
    write(&world, "d").await;
    assert_eq!(lines.event().await.1, "d");
    let mut harness = world.client(Protocol::Http1, "harness").await;
    assert_eq!(names(&harness.get(PACKAGES).await.1), ["a", "b", "c", "d"]);
    assert_eq!(world.server.faults().hits(ID), 2);
}

#[tokio::test]
async fn a_watch_that_resumes_gets_the_last_events_again() {
    for protocol in BOTH {
        let world = world_with(&["a", "b", "c"]).await;
        world.server.faults().begin(ID, &fault(Name::EventRepeated).set("events", 2)).unwrap();
        let mut lines = watch(&world, protocol, "subject").await;
        let mut spared = watch(&world, protocol, "harness").await;
        write(&world, "d").await;
        let seen = [lines.event().await.1, lines.event().await.1, lines.event().await.1];
        assert_eq!(seen, ["b", "c", "d"]);
        assert_eq!(spared.event().await.1, "d");
        assert_eq!(world.server.faults().hits(ID), 1);
    }
}
