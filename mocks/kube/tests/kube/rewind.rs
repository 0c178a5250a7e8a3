//! Tests of a store that is restored from an older backup.

use std::time::Duration;

use http::Method;
use mock_faults::{Fault, FaultId, Name, Newer, Watches};
use mock_kube::RewindError;
use serde_json::json;
use units::Span;

use crate::client::{Protocol, World};
use crate::{MERGE, PACKAGES, package, revision};

#[tokio::test]
async fn objects_and_the_counter_go_back_and_the_feed_says_so() {
    let world = World::start().await;
    let mut tail = world.server.tail();
    let mut client = world.client(Protocol::Http1, "harness").await;
    let (_, kept) = client.post(PACKAGES, &package("kept")).await;
    client.post(PACKAGES, &package("deleted-later")).await;
    let backup = world.server.revision();
    client.patch(&format!("{PACKAGES}/kept"), MERGE, &json!({"spec": {"image": "b"}})).await;
    client.delete(&format!("{PACKAGES}/deleted-later")).await;
    client.post(PACKAGES, &package("made-later")).await;
    let before = world.server.revision();
    let objects = world.server.object_count();

    let rewound = world.server.rewind(backup, Newer::Silent, Watches::Kept).unwrap();
    assert_eq!((rewound.from, rewound.to, rewound.undone, rewound.timeline), (before, backup, 3, 1));
    assert_eq!((world.server.revision(), world.server.object_count()), (backup, objects));
    assert_eq!(client.get(&format!("{PACKAGES}/kept")).await.1, kept);
    assert_eq!(client.get(&format!("{PACKAGES}/deleted-later")).await.0, 200);
    assert_eq!(client.get(&format!("{PACKAGES}/made-later")).await.0, 404);
    let (status, refused) = client.get(&format!("{PACKAGES}?resourceVersion={before}")).await;
    assert_eq!((status, &refused["details"]["causes"][0]["reason"]), (504, &json!("ResourceVersionTooLarge")));
    let (_, again) = client.post(PACKAGES, &package("made-again")).await;
    assert_eq!(revision(&again), backup + 1, "revisions are handed out a second time");

    let commits = tail.try_batch(100).unwrap();
    let seen: Vec<(u64, u32)> = commits.iter().map(|commit| (commit.revision, commit.timeline)).collect();
    assert!(
        commits.windows(2).all(|pair| pair[1].commit.order == pair[0].commit.order.next()),
        "the order goes on, whatever revisions do"
    );
    let first = (backup - 1..=before).map(|revision| (revision, 0));
    assert_eq!(seen, first.chain([(backup + 1, 1)]).collect::<Vec<_>>());
    assert_eq!(world.server.rewinds(), [rewound]);

    let future = world.server.rewind(before + 100, Newer::Silent, Watches::Kept);
    assert_eq!(future, Err(RewindError::NotYet { to: before + 100, current: backup + 1 }));
    world.server.compact(backup);
    let past = world.server.rewind(backup - 1, Newer::Silent, Watches::Kept);
    assert_eq!(past, Err(RewindError::Compacted { to: backup - 1, floor: backup }));
}

#[tokio::test]
async fn a_kept_watch_hears_nothing_until_the_counter_has_passed_it() {
    let world = World::with(|config| config.bookmarks_every = Duration::from_millis(30)).await;
    let mut writer = world.client(Protocol::Http1, "harness").await;
    let backup = world.server.revision();
    let query = format!("{PACKAGES}?watch=1&allowWatchBookmarks=true&resourceVersion={backup}");
    let mut lines = world.client(Protocol::Http1, "subject").await.watch(&query).await;
    for name in ["one", "two", "three"] {
        writer.post(PACKAGES, &package(name)).await;
    }
    let mut newest = backup;
    while newest < backup + 3 {
        newest = lines.event().await.2;
    }
    world.server.rewind(backup, Newer::Silent, Watches::Kept).unwrap();
    let mut resumed = world.client(Protocol::Http1, "subject").await;
    let mut resumed = resumed.watch(&format!("{PACKAGES}?watch=1&resourceVersion={newest}")).await;
    for name in ["four", "five", "six"] {
        let (_, made) = writer.post(PACKAGES, &package(name)).await;
        assert!(revision(&made) <= newest);
    }
    assert!(resumed.is_silent(Duration::from_millis(100)).await);
    let (_, seventh) = writer.post(PACKAGES, &package("seven")).await;
    let wanted = ("ADDED".to_owned(), "seven".to_owned(), revision(&seventh));
    assert_eq!(resumed.event().await, wanted);
    // Bookmarks may come, but none with an older revision.
    let mut event = lines.event().await;
    while event.0 == "BOOKMARK" {
        assert!(event.2 >= newest, "{event:?}");
        event = lines.event().await;
    }
    assert_eq!(event, wanted);
}

#[tokio::test]
async fn whoever_comes_from_the_future_is_told_what_was_asked_for() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http2, "subject").await;
    client.post(PACKAGES, &package("old")).await;
    let backup = world.server.revision();
    client.post(PACKAGES, &package("lost")).await;
    let newest = world.server.revision();
    let mut open = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={newest}")).await;
    world.server.rewind(backup, Newer::Gone, Watches::Cut).unwrap();
    assert!(open.next().await.is_err(), "cut means reset");
    let resume = format!("{PACKAGES}?watch=1&resourceVersion={newest}");
    let gone = client.watch(&resume).await.next().await.unwrap().unwrap();
    assert_eq!((&gone["type"], &gone["object"]["code"]), (&json!("ERROR"), &json!(410)));
    let never = format!("{PACKAGES}?watch=1&resourceVersion={}", newest + 1);
    assert_eq!(client.get(&never).await.0, 504, "that revision was never handed out");

    client.post(PACKAGES, &package("lost-too")).await;
    let body = json!({"revision": backup, "newer": "too-large"});
    let (status, done) = world.client(Protocol::Http1, "harness").await.post("/longhaul/rewind", &body).await;
    assert_eq!((status, &done["undone"], &done["timeline"]), (200, &json!(1), &json!(2)));
    let (status, refused) = client.get(&resume).await;
    assert_eq!((status, &refused["details"]["causes"][0]["reason"]), (504, &json!("ResourceVersionTooLarge")));
}

#[tokio::test]
async fn the_fault_counts_who_sees_what_it_undid_and_who_comes_from_beyond() {
    let world = World::aimed().await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    client.post(PACKAGES, &package("old")).await;
    let id = FaultId(3);
    let fault = |age| Fault::new(Name::Rewind, Span::default()).set("age", age);
    world.server.faults().begin(id, &fault(Span::from_secs(0))).unwrap();
    assert_eq!(client.get(PACKAGES).await.0, 200);
    assert_eq!(world.server.faults().hits(id), 0, "nothing was undone, which is no hit");
    world.server.faults().end(id);

    let newest = world.server.revision();
    world.server.faults().begin(id, &fault(Span::from_secs(3600))).unwrap();
    assert_eq!(world.server.faults().hits(id), 0, "nobody has asked since");
    assert_eq!(client.get(&format!("{PACKAGES}/old")).await.0, 404);
    assert_eq!(world.server.revision(), 1, "the history reaches back to the beginning");
    world.server.faults().end(id);
    // The definition of packages is gone as well; pods are built in.
    let resume = format!("/api/v1/pods?watch=1&resourceVersion={newest}");
    assert_eq!(client.send(Method::GET, &resume, "").await.status(), 200);
    assert_eq!(world.server.faults().hits(id), 1);
    let mut lists = world.client(Protocol::Http1, "subject").await;
    for _ in 0..2 {
        assert_eq!(lists.get("/api/v1/pods").await.0, 200);
        assert_eq!(world.server.faults().hits(id), 2, "the first list shows it");
    }
    let hits: Vec<String> = world.server.faults().take_hits().into_iter().map(|hit| hit.detail).collect();
    assert!(hits[0].contains("of pods by subject on connection "), "{hits:?}");
    assert!(hits[1].starts_with("revision 1 restored at"), "{hits:?}");
    let wrong = Fault::new(Name::WatchReset, Span::default()).set("newer", Newer::Gone);
    assert_eq!(
        wrong.check().unwrap_err().to_string(),
        "`newer` has no meaning for `watch-reset`: it belongs to `rewind`"
    );
}
