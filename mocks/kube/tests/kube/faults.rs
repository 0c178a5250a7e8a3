//! Tests of all faults over real connections: effects, hits, and that other clients are spared.

mod cuts;
mod effects;
mod requests;
mod views;
mod writes;

use std::time::Duration;

use facts::Change;
use mock_faults::{Fault, FaultId, Form, Name, NewStreams};
use mock_kube::Delivery;
use serde_json::json;
use units::Span;

use crate::client::{Lines, Protocol, World};
use crate::{PACKAGES, package, revision};

const ID: FaultId = FaultId(7);
const RESOURCE: &str = "packages.longhaul.dev";

/// A fault that lasts long enough to hit streams that open after it begins.
fn fault(name: Name) -> Fault {
    let lasts = Some(Span::from_secs(60));
    Fault { resource: Some(RESOURCE.to_owned()), lasts, ..Fault::new(name, Span::default()) }
}

async fn watch(world: &World, protocol: Protocol, user: &str) -> Lines {
    let mut client = world.client(protocol, user).await;
    let (_, list) = client.get(PACKAGES).await;
    client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={}", revision(&list))).await
}

/// Starts a server with a fault that targets the subject.
async fn with(fault: &Fault) -> World {
    let world = World::aimed().await;
    world.server.faults().begin(ID, fault).unwrap();
    world
}

/// Waits until a fault has this many hits.
async fn hits(world: &World, id: FaultId, wanted: u64) {
    let faults = world.server.faults();
    let struck = async {
        while faults.hits(id) < wanted {
            faults.struck().await;
        }
    };
    let waited = tokio::time::timeout(crate::client::PATIENCE, struck).await;
    assert!(waited.is_ok(), "{} hits of {wanted}", faults.hits(id));
}

/// The texts of an error's causes, joined.
fn causes(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Checks that a fault spares the harness's client: the client lists, writes, and sees the change at once.
async fn harness_is_spared(world: &World, name: &str) {
    let mut client = world.client(Protocol::Http1, "harness").await;
    let (status, list) = client.get(PACKAGES).await;
    assert_eq!(status, 200);
    let mut lines = client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={}", revision(&list))).await;
    let written = write(world, name).await;
    assert_eq!(lines.event().await, ("ADDED".to_owned(), name.to_owned(), written));
}

async fn write(world: &World, name: &str) -> u64 {
    let mut writer = world.client(Protocol::Http1, "harness").await;
    revision(&writer.post(PACKAGES, &package(name)).await.1)
}

#[tokio::test]
async fn a_reset_breaks_the_subjects_streams_only() {
    let world = World::aimed().await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let id = FaultId(u32::from(protocol == Protocol::Http2));
        let mut hit = watch(&world, protocol, "subject").await;
        let mut spared = watch(&world, protocol, "harness").await;
        world.server.faults().begin(id, &fault(Name::WatchReset)).unwrap();
        let broken = hit.next().await.unwrap_err();
        if protocol == Protocol::Http1 {
            let mut cause: &dyn std::error::Error = &broken;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            assert!(cause.to_string().contains("reset"), "RST, not FIN: {cause}");
        }
        world.server.faults().end(id);
        assert_eq!(world.server.faults().hits(id), 1);
        let name = format!("after-{}", id.0);
        write(&world, &name).await;
        assert_eq!(spared.event().await.1, name);
        watch(&world, protocol, "subject").await;
    }
    assert_eq!(world.server.faults().take_hits().len(), 2);
}

#[tokio::test]
async fn a_410_comes_in_both_forms_and_a_relist_helps() {
    let world = World::aimed().await;
    let mut lines = watch(&world, Protocol::Http1, "subject").await;
    let from = world.server.revision();
    world.server.faults().begin(ID, &fault(Name::Watch410)).unwrap();
    assert_eq!(lines.next().await.unwrap(), None, "a clean end");
    let mut client = world.client(Protocol::Http1, "subject").await;
    let resume = format!("{PACKAGES}?watch=1&resourceVersion={from}");
    let (status, gone) = client.get(&resume).await;
    assert_eq!((status, &gone["reason"]), (410, &json!("Expired")));
    let mut in_stream = client.watch(&resume).await;
    assert_eq!(in_stream.next().await.unwrap().unwrap()["object"]["code"], json!(410));
    assert_eq!(world.server.faults().hits(ID), 2);
    let traffic = world.server.traffic("subject");
    assert_eq!((traffic.gone_http, traffic.gone_stream, traffic.gone_repeated), (1, 1, 1));
    world.server.faults().end(ID);
    let mut relisted = watch(&world, Protocol::Http1, "subject").await;
    write(&world, "after").await;
    assert_eq!(relisted.event().await.1, "after");
    let only_http = fault(Name::Watch410).set("form", Form::Http);
    world.server.faults().begin(FaultId(8), &only_http).unwrap();
    for _ in 0..2 {
        assert_eq!(client.get(&resume).await.0, 410);
    }
    assert_eq!((world.server.faults().hits(ID), world.server.faults().hits(FaultId(8))), (2, 2));
}

#[tokio::test]
async fn a_silent_watch_stays_silent_and_what_it_withheld_is_known() {
    let world = World::with(|config| config.bookmarks_every = Duration::from_millis(50)).await;
    world.server.faults().target_users(["subject"]);
    let mut client = world.client(Protocol::Http1, "subject").await;
    let query = format!("watch=1&allowWatchBookmarks=true&resourceVersion={}", world.server.revision());
    let mut silent = client.watch(&format!("{PACKAGES}?{query}")).await;
    assert_eq!(silent.event().await.0, "BOOKMARK");
    world.server.faults().begin(ID, &fault(Name::SilentWatch)).unwrap();
    assert_eq!(world.server.faults().hits(ID), 0, "no event was withheld yet");
    let mut fresh = watch(&world, Protocol::Http1, "subject").await;
    let during = write(&world, "during").await;
    assert_eq!(fresh.event().await, ("ADDED".to_owned(), "during".to_owned(), during));
    assert_eq!(world.server.faults().hits(ID), 1);
    world.server.faults().end(ID);
    write(&world, "later").await;
    // At most the bookmark that was on its way when the silence began.
    while let Ok(line) = tokio::time::timeout(Duration::from_millis(200), silent.next()).await {
        assert_eq!(line.unwrap().unwrap()["type"], json!("BOOKMARK"));
    }
    assert_eq!(world.server.traffic("subject").watches_open, 2);
    assert!(matches!(world.server.delivery("subject", RESOURCE, during), Delivery::Sent { .. }), "on the other watch");
}

#[tokio::test]
async fn a_silent_watch_may_heal_and_new_ones_may_be_silent() {
    let world = World::aimed().await;
    let mut lines = watch(&world, Protocol::Http2, "subject").await;
    let heals = fault(Name::SilentWatch).set("heals", true).set("newStreams", NewStreams::Silent);
    world.server.faults().begin(ID, &heals).unwrap();
    let mut newer = watch(&world, Protocol::Http1, "subject").await;
    let kept_back = write(&world, "kept-back").await;
    assert!(lines.is_silent(Duration::from_millis(100)).await);
    assert!(newer.is_silent(Duration::from_millis(10)).await);
    let withheld = world.server.delivery("subject", RESOURCE, kept_back);
    assert_eq!(withheld, Delivery::Withheld { fault: ID });
    assert_eq!(world.server.faults().hits(ID), 2);
    world.server.faults().end(ID);
    assert_eq!(lines.event().await.2, kept_back);
    assert_eq!(newer.event().await.2, kept_back);
}

#[tokio::test]
async fn a_dropped_event_is_never_sent_and_the_stream_goes_on() {
    let world = World::aimed().await;
    let mut lines = watch(&world, Protocol::Http1, "subject").await;
    let only_deletions = fault(Name::EventDropped).set("change", Change::Deleted);
    world.server.faults().begin(ID, &only_deletions).unwrap();
    write(&world, "one").await;
    assert_eq!(lines.event().await.1, "one");
    let mut writer = world.client(Protocol::Http1, "harness").await;
    writer.delete(&format!("{PACKAGES}/one")).await;
    let dropped = world.server.revision();
    write(&world, "two").await;
    assert_eq!(lines.event().await.1, "two");
    writer.delete(&format!("{PACKAGES}/two")).await;
    assert_eq!(lines.event().await.0, "DELETED", "one is the default count");
    assert_eq!(world.server.faults().hits(ID), 1);
    assert_eq!(world.server.delivery("subject", RESOURCE, dropped), Delivery::Withheld { fault: ID });
}

#[tokio::test]
async fn faults_touch_nobody_without_a_target_and_only_what_they_name() {
    let world = World::start().await;
    let mut lines = watch(&world, Protocol::Http1, "subject").await;
    world.server.faults().begin(ID, &fault(Name::WatchReset)).unwrap();
    world.server.faults().end(ID);
    world.server.faults().target_users(["subject"]);
    let elsewhere = Fault { resource: Some("pods".to_owned()), ..Fault::new(Name::WatchReset, Span::default()) };
    world.server.faults().begin(FaultId(8), &elsewhere).unwrap();
    let agent = Fault { user_agent: Some("another/".to_owned()), ..Fault::new(Name::WatchReset, Span::default()) };
    world.server.faults().begin(FaultId(9), &agent).unwrap();
    write(&world, "one").await;
    assert_eq!(lines.event().await.1, "one");
    for id in [ID, FaultId(8), FaultId(9)] {
        assert_eq!(world.server.faults().hits(id), 0, "a fault that hit nothing says so");
    }
}

#[test]
fn a_fault_says_which_key_is_wrong() {
    let form = fault(Name::WatchReset).set("form", Form::Http);
    let message = form.check().unwrap_err().to_string();
    assert_eq!(message, "`form` has no meaning for `watch-reset`: it belongs to `watch-410` and `too-large`");
    assert!(Fault { probability: Some(1.5), ..fault(Name::EventDropped) }.check().is_err());
    assert!(Fault { count: Some(0), ..fault(Name::EventDropped) }.check().is_err());
    let parsed: Fault = serde_json::from_value(json!({
        "name": "silent-watch", "at": "5s", "for": "10s", "newStreams": "silent", "userAgent": "x",
    }))
    .unwrap();
    assert_eq!((parsed.name, parsed.lasts), (Name::SilentWatch, Some(Span::from_secs(10))));
    assert!(serde_json::from_value::<Fault>(json!({"name": "watch-410", "at": "5s", "from": "http"})).is_err());
}
