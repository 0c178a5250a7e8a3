//! Tests of attacks on a real HTTP/2 server: each attack takes place at its time, and ends with its run.

use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use hyper::Request;
use hyper::body::Incoming;
use loadgen::admission::attack::{Attack, Attackers, Counts, Name};
use serde_json::json;

use crate::server::{Server, respond, until};
use crate::webhook::target;

/// A server that answers each request with 40 KiB after the request's body has come.
async fn server() -> Server {
    let answer = |request: Request<Incoming>| async move {
        let _ = request.into_body().collect().await;
        respond(200, "application/json", vec![b' '; 40 << 10])
    };
    Server::start(&[b"h2"], answer).await
}

fn attack(name: &str, at: &str) -> Attack {
    serde_json::from_value(json!({"name": name, "at": at, "for": "1m", "connections": 3})).unwrap()
}

fn counts(attackers: &Attackers, name: Name) -> Counts {
    attackers.counts().into_iter().find(|(attack, _)| attack.name == name).unwrap().1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_opened_and_answers_left_unread() {
    let server = server().await;
    let attacks = [attack("open-streams", "0s"), attack("unread-answers", "0s")];
    let mut attackers = Attackers::begin(&attacks, &target(&server), "nginx", Instant::now()).unwrap();
    until("both attacks", || {
        let (streams, unread) = (counts(&attackers, Name::OpenStreams), counts(&attackers, Name::UnreadAnswers));
        streams.hits(Name::OpenStreams) > 60 && unread.hits(Name::UnreadAnswers) > 15
    })
    .await;
    let (streams, unread) = (counts(&attackers, Name::OpenStreams), counts(&attackers, Name::UnreadAnswers));
    assert_eq!((server.accepted(), streams.connections, unread.connections), (6, 3, 3), "{streams:?} {unread:?}");
    assert_eq!((streams.trouble, unread.trouble), (None, None));
    attackers.stop();
    until("the end of all connections", || server.open() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attack_waits_for_its_time() {
    let server = server().await;
    let attacks = [attack("open-streams", "0s"), attack("unread-answers", "30m")];
    let attackers = Attackers::begin(&attacks, &target(&server), "nginx", Instant::now()).unwrap();
    until("the first attack", || counts(&attackers, Name::OpenStreams).streams > 60).await;
    assert_eq!((server.accepted(), counts(&attackers, Name::UnreadAnswers)), (3, Counts::default()));
    let began = Instant::now();
    drop(attackers);
    assert!(began.elapsed() < Duration::from_secs(5), "nobody waits for what has not begun");
}
