//! Tests that faults of watches affect WebSocket watches like others.

use std::io::ErrorKind;

use futures_util::StreamExt as _;
use mock_faults::{Fault, FaultId, Form, Name};
use mock_kube::{Delivery, EndedBy};
use tokio_tungstenite::tungstenite::{Error, Message};
use units::Span;

use super::{HEADERS, RESOURCE, Socket, added, ask, nobody_watches, write};
use crate::PACKAGES;
use crate::client::{PATIENCE, World};

const ID: FaultId = FaultId(7);

fn fault(name: Name) -> Fault {
    let lasts = Some(Span::from_secs(60));
    Fault { resource: Some(RESOURCE.to_owned()), lasts, ..Fault::new(name, Span::default()) }
}

async fn with(fault: &Fault) -> World {
    let world = World::aimed().await;
    world.server.faults().begin(ID, fault).unwrap();
    world
}

/// The error with which a socket breaks off.
async fn broken(socket: &mut Socket) -> Error {
    match socket.next().await {
        Some(Err(error)) => error,
        other => panic!("an end without a goodbye: {other:?}"),
    }
}

#[tokio::test]
async fn a_reset_is_one_of_the_connection() {
    let world = with(&Fault { after_events: Some(1), ..fault(Name::WatchReset) }).await;
    world.server.follow_requests("subject");
    let mut socket = Socket::now(&world).await;
    write(&world, "one").await;
    assert_eq!(socket.event().await, added("one"), "what was sent before arrives");
    match broken(&mut socket).await {
        Error::Io(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
        other => panic!("{other}"),
    }
    nobody_watches(&world).await;
    let (facts, _) = world.server.take_requests("subject");
    assert!(facts.iter().any(|fact| matches!(fact.ended, Some((_, EndedBy::Reset)))), "{facts:?}");
    assert_eq!(world.server.faults().hits(ID), 1);
}

#[tokio::test]
async fn a_watch_may_end_cleanly_or_without_a_goodbye() {
    let world = with(&fault(Name::WatchEnd)).await;
    Socket::now(&world).await.goodbye().await;

    let world = with(&fault(Name::WatchEof).set("midLine", true)).await;
    let mut socket = Socket::now(&world).await;
    write(&world, "one").await;
    match broken(&mut socket).await {
        Error::Io(error) => assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "no close_notify: {error}"),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_silent_watch_answers_pings_and_sends_nothing() {
    let world = World::aimed().await;
    let mut socket = Socket::now(&world).await;
    world.server.faults().begin(ID, &fault(Name::SilentWatch).set("heals", true)).unwrap();
    let one = write(&world, "one").await;
    let withheld = async {
        while world.server.delivery("subject", RESOURCE, one) != (Delivery::Withheld { fault: ID }) {
            tokio::task::yield_now().await;
        }
    };
    // The socket is polled meanwhile, so that an event would be noticed.
    tokio::select! {
        () = async { tokio::time::timeout(PATIENCE, withheld).await.expect("in time") } => {}
        message = socket.0.next() => panic!("{message:?}"),
    }
    socket.answers_pings().await;
    world.server.faults().end(ID);
    assert_eq!(socket.event().await, added("one"));
}

#[tokio::test]
async fn a_revision_that_is_gone_is_told_in_both_forms() {
    let world = World::aimed().await;
    let start = world.server.revision();
    write(&world, "one").await;
    world.server.compact(world.server.revision());
    let query = format!("resourceVersion={start}&pretty=true");
    let mut socket = Socket::open(&world, &query).await;
    let line = socket.line().await;
    assert_eq!((&line["type"], &line["object"]["code"]), (&"ERROR".into(), &410.into()));
    socket.goodbye().await;
    let traffic = world.server.traffic("subject");
    assert_eq!((traffic.gone_stream, traffic.requests_open), (1, 0));

    let http = fault(Name::Watch410).set("form", Form::Http);
    world.server.faults().begin(ID, &http).unwrap();
    let headers = [HEADERS.as_slice(), &[("Authorization", "Bearer subject-token")]].concat();
    let answered = ask(&world, &format!("{PACKAGES}?watch=1&{query}"), &headers).await;
    assert!(answered.head.starts_with("http/1.1 410 "), "{}", answered.head);
}

#[tokio::test]
async fn a_refusal_and_an_empty_answer_come_as_they_do_to_others() {
    let world = with(&fault(Name::Empty200)).await;
    let query = format!("resourceVersion={}", world.server.revision());
    Socket::open(&world, &query).await.goodbye().await;

    let world = with(&fault(Name::HttpError)).await;
    let headers = [HEADERS.as_slice(), &[("Authorization", "Bearer subject-token")]].concat();
    let answered = ask(&world, &format!("{PACKAGES}?watch=1"), &headers).await;
    assert!(answered.head.starts_with("http/1.1 5") || answered.head.starts_with("http/1.1 4"), "{}", answered.head);
}

/// The bytes of one event over many frames are still one event.
#[tokio::test]
async fn an_event_in_pieces_is_one_message_in_fragments() {
    let world = with(&fault(Name::Split)).await;
    let mut socket = Socket::now(&world).await;
    write(&world, "one").await;
    assert_eq!(socket.event().await, added("one"));
    assert!(world.server.faults().hits(ID) >= 1);
}

#[tokio::test]
async fn a_line_that_breaks_off_is_a_message_and_late_events_come_in_order() {
    let world = with(&Fault { count: Some(1), ..fault(Name::TruncatedLine) }).await;
    let mut socket = Socket::now(&world).await;
    write(&world, "one").await;
    write(&world, "two").await;
    let half = socket.raw().await;
    assert!(half.ends_with('\n') && serde_json::from_str::<serde_json::Value>(&half).is_err(), "{half}");
    assert_eq!(socket.event().await, added("two"));

    let world = with(&fault(Name::EventDelayed).set("delay", Span::from_millis(50))).await;
    let mut socket = Socket::now(&world).await;
    write(&world, "one").await;
    write(&world, "two").await;
    assert_eq!((socket.event().await, socket.event().await), (added("one"), added("two")));
    assert!(world.server.faults().hits(ID) >= 2);
}

#[tokio::test]
async fn an_error_in_the_stream_is_a_message_and_then_the_goodbye() {
    let world = with(&fault(Name::ErrorEvent)).await;
    let mut socket = Socket::now(&world).await;
    assert_eq!(socket.line().await["object"]["code"], 410);
    assert!(!matches!(socket.next().await, Some(Ok(Message::Text(_)))));
}
