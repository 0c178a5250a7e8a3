//! Tests of watches over a WebSocket, as fabric8's Java client opens them.

mod faults;
mod handshakes;

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use mock_kube::{Delivery, EndedBy};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::client::{PATIENCE, Protocol, World};
use crate::{PACKAGES, package, revision};

const RESOURCE: &str = "packages.longhaul.dev";
/// The headers of a handshake that every server accepts.
const HEADERS: [(&str, &str); 5] = [
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Origin", "https://localhost"),
];

/// The status line and headers of an answer in lower case, and the connection after them.
struct Answered {
    head: String,
    rest: Vec<u8>,
    io: TlsStream<TcpStream>,
}

struct Socket(WebSocketStream<TlsStream<TcpStream>>);

/// Sends a request with exactly these headers.
async fn ask(world: &World, path: &str, headers: &[(&str, &str)]) -> Answered {
    let mut io = world.dial(world.server.address(), Protocol::Http1, None).await;
    let mut request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in headers {
        request.extend([name, ": ", value, "\r\n"]);
    }
    io.write_all((request + "\r\n").as_bytes()).await.unwrap();
    let mut rest = Vec::new();
    let reading = async {
        loop {
            if let Some(end) = memchr::memmem::find(&rest, b"\r\n\r\n") {
                let head = String::from_utf8(rest[..end].to_vec()).unwrap().to_ascii_lowercase();
                rest.drain(..end + 4);
                break head;
            }
            assert!(io.read_buf(&mut rest).await.unwrap() > 0, "the connection ended before an answer");
        }
    };
    let head = tokio::time::timeout(PATIENCE, reading).await.expect("an answer in time");
    Answered { head, rest, io }
}

impl Socket {
    /// Opens a watch of packages by the subject, which must be accepted.
    async fn open(world: &World, query: &str) -> Self {
        let headers = [HEADERS.as_slice(), &[("Authorization", "Bearer subject-token")]].concat();
        let answered = ask(world, &format!("{PACKAGES}?watch=1&{query}"), &headers).await;
        assert!(answered.head.starts_with("http/1.1 101 "), "{}", answered.head);
        Self(WebSocketStream::from_partially_read(answered.io, answered.rest, Role::Client, None).await)
    }

    /// Opens a watch that begins now.
    async fn now(world: &World) -> Self {
        Self::open(world, &format!("resourceVersion={}", world.server.revision())).await
    }

    async fn next(&mut self) -> Option<Result<Message, Error>> {
        tokio::time::timeout(PATIENCE, self.0.next()).await.expect("a message in time")
    }

    /// The next WebSocket message as the server sent it, which must be an event.
    async fn raw(&mut self) -> String {
        match self.next().await {
            Some(Ok(Message::Text(text))) => text.as_str().to_owned(),
            other => panic!("an event: {other:?}"),
        }
    }

    async fn line(&mut self) -> Value {
        let text = self.raw().await;
        assert!(text.ends_with("}\n") && text.lines().count() == 1, "{text:?}");
        serde_json::from_str(&text).unwrap()
    }

    /// `(type, name)` of the next event.
    async fn event(&mut self) -> (String, String) {
        let line = self.line().await;
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (word(&line["type"]), word(&line["object"]["metadata"]["name"]))
    }

    /// Checks that the server sends its close frame now.
    async fn goodbye(&mut self) {
        match self.next().await {
            Some(Ok(Message::Close(Some(CloseFrame { code, .. })))) => assert_eq!(u16::from(code), 1000),
            other => panic!("a goodbye: {other:?}"),
        }
        assert!(self.next().await.is_none(), "and nothing behind it");
    }

    async fn answers_pings(&mut self) {
        self.0.send(Message::Ping("still there?".into())).await.unwrap();
        match self.next().await {
            Some(Ok(Message::Pong(said))) => assert_eq!(&said[..], b"still there?"),
            other => panic!("an answer to a ping: {other:?}"),
        }
    }
}

async fn write(world: &World, name: &str) -> u64 {
    let mut writer = world.client(Protocol::Http1, "harness").await;
    revision(&writer.post(PACKAGES, &package(name)).await.1)
}

/// Waits until the subject has no watch.
async fn nobody_watches(world: &World) {
    let over = async {
        while world.server.traffic("subject").watches_open > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, over).await.expect("the watch is over in time");
}

fn added(name: &str) -> (String, String) {
    ("ADDED".to_owned(), name.to_owned())
}

#[tokio::test]
async fn every_event_is_one_text_and_the_end_is_a_goodbye() {
    let world = World::start().await;
    world.server.follow_requests("subject");
    for name in ["one", "two"] {
        write(&world, name).await;
    }
    let mut socket = Socket::open(&world, "pretty=true").await;
    assert_eq!((socket.event().await, socket.event().await), (added("one"), added("two")));
    let three = write(&world, "three").await;
    assert_eq!(socket.event().await, added("three"));
    assert!(matches!(world.server.delivery("subject", RESOURCE, three), Delivery::Sent { .. }));
    drop(socket);
    nobody_watches(&world).await;
    let query = "timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion=";
    let mut socket = Socket::open(&world, &format!("{query}{}", three - 1)).await;
    assert_eq!(socket.event().await, added("three"));
    let bookmark = socket.line().await;
    assert_eq!((&bookmark["type"], revision(&bookmark["object"])), (&"BOOKMARK".into(), three));
    socket.goodbye().await;
    nobody_watches(&world).await;

    assert_eq!(world.server.traffic("subject").watches_opened, 2);
    let asked = world.server.requests().into_iter().find(|request| &*request.user == "subject").unwrap();
    assert_eq!((asked.status, asked.http_version), (200, 1));
    let (facts, _) = world.server.take_requests("subject");
    let over: Vec<_> = facts.iter().filter(|fact| fact.ended.is_some()).collect();
    let told = over.iter().map(|fact| (fact.ended.unwrap().1, fact.about.objects, fact.about.revision));
    assert!(told.eq([(EndedBy::Client, 3, Some(three)), (EndedBy::Server, 1, Some(three))]), "{over:?}");
}

#[tokio::test]
async fn a_burst_and_a_large_object_arrive_whole() {
    let world = World::start().await;
    let mut socket = Socket::now(&world).await;
    let mut writer = world.client(Protocol::Http1, "harness").await;
    let mut large = package("large");
    large["spec"]["text"] = Value::from("x".repeat(1024 * 1024));
    for number in 0..300 {
        writer.post(PACKAGES, &package(&format!("small-{number}"))).await;
    }
    assert_eq!(writer.post(PACKAGES, &large).await.0, 201);
    for number in 0..300 {
        assert_eq!(socket.event().await, added(&format!("small-{number}")));
    }
    assert_eq!(socket.event().await, added("large"));
}

#[tokio::test]
async fn a_client_that_says_goodbye_is_answered_and_forgotten() {
    let world = World::start().await;
    let mut socket = Socket::now(&world).await;
    socket.answers_pings().await;
    socket.0.send(Message::text("nobody listens to this")).await.unwrap();
    write(&world, "one").await;
    assert_eq!(socket.event().await, added("one"));
    socket.0.close(Some(CloseFrame { code: 1000.into(), reason: "".into() })).await.unwrap();
    socket.goodbye().await;
    nobody_watches(&world).await;
}

#[tokio::test]
async fn a_client_that_leaves_without_a_word_is_noticed() {
    let world = World::start().await;
    let socket = Socket::now(&world).await;
    assert_eq!(world.server.traffic("subject").watches_open, 1);
    drop(socket);
    nobody_watches(&world).await;
}

#[tokio::test]
async fn a_client_that_sends_much_is_cut_off() {
    let world = World::start().await;
    let mut socket = Socket::now(&world).await;
    // The connection may be cut before all of it was written.
    let _ = socket.0.send(Message::binary(vec![0; 256 * 1024])).await;
    nobody_watches(&world).await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    assert_eq!(client.get(PACKAGES).await.0, 200);
}

#[tokio::test]
async fn a_server_that_stops_says_goodbye() {
    let world = World::start().await;
    let mut socket = Socket::now(&world).await;
    let (stopping, ()) = tokio::join!(tokio::time::timeout(PATIENCE, world.server.shutdown()), socket.goodbye());
    assert!(stopping.is_ok());
}
