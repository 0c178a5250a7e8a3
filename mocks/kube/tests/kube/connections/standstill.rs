//! Tests of the fault `freeze`: sockets stay open and transfer no bytes.

use std::time::Duration;

use mock_faults::{Fault, FaultId, How, Name, NewConnections, Nth};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::frames::Raw;
use super::{ID, RESOURCE, Scene, at_once, until};
use crate::client::Protocol;

/// A wait that is long enough for bytes over loopback and short enough for a test.
const MOMENT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_frozen_connection_moves_nothing_and_everything_beside_it_does() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let scene = Scene::start().await;
        let mut frozen = scene.watch(scene.address(), protocol, "subject").await;
        let mut beside = scene.watch(scene.world.server.address(), protocol, "harness").await;
        scene.begin(&at_once(Name::Freeze));
        assert_eq!(scene.hits(), 0, "nothing was withheld yet");
        let mut fresh = scene.watch(scene.address(), protocol, "subject").await;
        scene.write("during").await;
        assert_eq!(beside.event().await.1, "during");
        assert_eq!(fresh.event().await.1, "during", "new connections are healthy");
        assert_eq!(scene.lists(protocol).await, 1);
        assert!(frozen.is_silent(MOMENT).await);
        assert_eq!(scene.hits(), 1);
        let details = scene.details();
        assert!(
            details[0].contains("of packages.longhaul.dev by subject): bytes to the client withheld"),
            "{details:?}"
        );
        scene.world.server.faults().end(ID);
        scene.write("later").await;
        assert!(frozen.is_silent(MOMENT).await, "a dead path does not come back");
        assert_eq!(fresh.event().await.1, "later");
        drop(frozen);
        drop(fresh);
        until("the server lets go of what its client has left", || scene.open_at_server() == 0).await;
    }
}

#[tokio::test]
async fn a_frozen_connection_may_heal_and_loses_nothing() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let scene = Scene::start().await;
        let mut frozen = scene.watch(scene.address(), protocol, "subject").await;
        scene.begin(&at_once(Name::Freeze).set("heals", true));
        let kept_back = scene.write("kept-back").await;
        assert!(frozen.is_silent(MOMENT).await);
        scene.world.server.faults().end(ID);
        assert_eq!(frozen.event().await.2, kept_back);
    }
}

#[tokio::test]
async fn new_connections_may_be_frozen_too_once_they_carry_a_watch() {
    let scene = Scene::start().await;
    // Armed before any client comes, and only for the second watch.
    let second = Fault { resource: Some(RESOURCE.to_owned()), count: Some(1), ..Fault::armed(Name::Freeze) };
    scene.begin(&second.set("newConnections", NewConnections::Frozen));
    assert_eq!(scene.lists(Protocol::Http1).await, 0, "no watch, no fault");
    let mut client = scene.world.client_at(scene.address(), Protocol::Http1, "subject").await;
    let path = format!("{}?watch=1&resourceVersion={}", crate::PACKAGES, scene.world.server.revision());
    let opening = client.send(http::Method::GET, &path, "");
    assert!(tokio::time::timeout(MOMENT, opening).await.is_err(), "not even headers come");
    let mut spared = scene.watch(scene.address(), Protocol::Http1, "subject").await;
    scene.write("one").await;
    assert_eq!(spared.event().await.1, "one", "the count is used up");
    assert_eq!(scene.hits(), 1);
}

#[tokio::test]
async fn other_resources_users_and_endpoints_are_not_frozen() {
    let scene = Scene::start().await;
    let elsewhere = Fault { resource: Some("pods".to_owned()), ..at_once(Name::Freeze) };
    let another = Fault { endpoint: Some(9), ..at_once(Name::Freeze) };
    let mut lines = scene.watch(scene.address(), Protocol::Http2, "subject").await;
    let mut harness = scene.watch(scene.address(), Protocol::Http2, "harness").await;
    scene.begin(&elsewhere);
    scene.world.server.faults().begin(FaultId(8), &another).unwrap();
    scene.write("one").await;
    assert_eq!(lines.event().await.1, "one");
    scene.world.server.faults().begin(FaultId(9), &at_once(Name::Freeze)).unwrap();
    scene.write("two").await;
    assert_eq!(harness.event().await.1, "one");
    assert_eq!(harness.event().await.1, "two", "a user who is no target is spared on the same endpoint");
    assert!(lines.is_silent(MOMENT).await);
    assert_eq!(scene.hits() + scene.world.server.faults().hits(FaultId(8)), 0);
}

#[tokio::test]
async fn a_frozen_connection_answers_no_ping_while_the_kernel_acknowledges() {
    let scene = Scene::start().await;
    let mut raw = Raw::connect(&scene, "h2").await;
    let _watch = raw.watch(&scene).await;
    raw.ping().await.unwrap();
    scene.begin(&at_once(Name::Freeze));
    assert!(tokio::time::timeout(MOMENT, raw.ping()).await.is_err(), "no PONG");
    until("the kernel has acknowledged what was sent", || unacknowledged(raw.port()) == Some(0)).await;
    assert_eq!(scene.hits(), 1);
    assert!(scene.details()[0].contains("bytes of the client not read"));
}

#[tokio::test]
async fn a_server_with_frozen_connections_still_shuts_down() {
    let scene = Scene::start().await;
    let mut frozen = scene.watch(scene.address(), Protocol::Http2, "subject").await;
    scene.begin(&at_once(Name::Freeze));
    scene.write("one").await;
    assert!(frozen.is_silent(MOMENT).await);
    let began = std::time::Instant::now();
    scene.door.shutdown().await;
    assert!(began.elapsed() < Duration::from_millis(1500), "without waiting for the drain time");
    assert!(frozen.next().await.is_err());
}

#[tokio::test]
async fn a_connection_that_hangs_is_never_served() {
    let scene = Scene::start().await;
    scene.begin(&Fault::armed(Name::RefuseConnections).set("how", How::Hang));
    let mut tcp = tokio::net::TcpStream::connect(scene.address()).await.unwrap();
    tcp.write_all(&[0x16, 3, 1, 0, 5]).await.unwrap();
    until("it was accepted", || scene.hits() == 1).await;
    scene.world.server.faults().end(ID);
    let mut byte = [0];
    assert!(tokio::time::timeout(MOMENT, tcp.read(&mut byte)).await.is_err(), "also not when the fault is over");
    assert_eq!(scene.lists(Protocol::Http1).await, 0, "a new one is");
    assert_eq!(scene.hits(), 1);
    drop(tcp);
    until("the server lets go", || scene.open_at_server() == 0).await;
}

#[tokio::test]
async fn a_server_that_loses_patience_with_a_frozen_connection_does_not_show_it() {
    let scene = Scene::start().await;
    let mut frozen = scene.watch(scene.address(), Protocol::Http2, "subject").await;
    scene.begin(&at_once(Name::Freeze).set("heals", true));
    scene.write("one").await;
    // The server's own PING after 30 s cannot be sent, and 15 s later it gives the connection up.
    tokio::time::pause();
    for _ in 0..60 {
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
    until("it has given up", || scene.world.server.traffic("subject").watches_open == 0).await;
    assert!(frozen.is_silent(MOMENT).await, "no end either");
    assert_eq!(scene.open_at_server(), 1);
    scene.world.server.faults().end(ID);
    // The path works again: written data arrives, and then the server has gone.
    while let Ok(Some(line)) = frozen.next().await {
        assert_eq!(line["object"]["metadata"]["name"], serde_json::json!("one"));
    }
    until("it is closed", || scene.open_at_server() == 0).await;
}

/// Number of bytes that this machine has sent from a port and the receiver has not acknowledged.
fn unacknowledged(port: u16) -> Option<u64> {
    // `man 5 proc`: the fifth column is the send queue and the receive queue, in hex.
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let local = format!(":{port:04X}");
    let line = table.lines().find(|line| line.split_whitespace().nth(1).is_some_and(|at| at.ends_with(&local)))?;
    u64::from_str_radix(line.split_whitespace().nth(4)?.split(':').next()?, 16).ok()
}

#[tokio::test]
async fn the_third_event_arrives_and_the_fourth_does_not() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let scene = Scene::start().await;
        let after = |name| Fault { resource: Some(RESOURCE.to_owned()), after_events: Some(3), ..Fault::armed(name) };
        scene.begin(&after(Name::Freeze));
        scene.world.server.faults().begin(FaultId(8), &after(Name::Goaway)).unwrap();
        let mut lines = scene.watch(scene.address(), protocol, "subject").await;
        for name in ["one", "two", "three"] {
            scene.write(name).await;
            assert_eq!(lines.event().await.1, name);
        }
        scene.write("four").await;
        assert!(lines.is_silent(MOMENT).await);
        assert_eq!(scene.hits(), 1);
        assert_eq!(scene.lists(protocol).await, 4);
        let mut second = scene.watch(scene.address(), protocol, "subject").await;
        scene.write("five").await;
        assert_eq!(second.event().await.1, "five", "a new watch has three events of its own");
    }
}

#[tokio::test]
async fn the_nth_watch_may_be_meant() {
    let scene = Scene::start().await;
    let second = Fault { resource: Some(RESOURCE.to_owned()), nth: Some(Nth::one(2)), ..Fault::armed(Name::Freeze) };
    scene.begin(&second);
    let mut first = scene.watch(scene.address(), Protocol::Http2, "subject").await;
    let mut client = scene.world.client_at(scene.address(), Protocol::Http2, "subject").await;
    let path = format!("{}?watch=1&resourceVersion={}", crate::PACKAGES, scene.world.server.revision());
    let opening = client.send(http::Method::GET, &path, "");
    assert!(tokio::time::timeout(MOMENT, opening).await.is_err());
    let mut third = scene.watch(scene.address(), Protocol::Http2, "subject").await;
    scene.write("one").await;
    assert_eq!((first.event().await.1, third.event().await.1), ("one".to_owned(), "one".to_owned()));
    assert_eq!(scene.hits(), 1);
}
