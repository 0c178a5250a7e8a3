//! Tests of `no-pong`, `goaway` and `max-streams` with a client that shows frames.

use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Ping, PingPong, Reason, RecvStream};
use http::Request;
use mock_faults::{Code, Fault, FaultId, Http2Code, Name};
use mock_pki::client_config;
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{ID, Scene, at_once, until};
use crate::PACKAGES;
use crate::client::{PATIENCE, Protocol};

const MOMENT: Duration = Duration::from_millis(100);

/// An HTTP/2 connection of the subject.
pub(super) struct Raw {
    requests: SendRequest<Bytes>,
    pings: PingPong,
    port: u16,
    ended: tokio::task::JoinHandle<Result<(), h2::Error>>,
}

impl Raw {
    pub(super) async fn connect(scene: &Scene, alpn: &str) -> Self {
        let tcp = TcpStream::connect(scene.address()).await.unwrap();
        let port = tcp.local_addr().unwrap().port();
        let tls = client_config(scene.world.authority.ca_pem(), None, &[alpn]).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let tls = TlsConnector::from(tls).connect(name, tcp).await.unwrap();
        let (requests, mut connection) = h2::client::handshake(tls).await.unwrap();
        let pings = connection.ping_pong().unwrap();
        Self { requests, pings, port, ended: tokio::spawn(connection) }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) async fn ping(&mut self) -> Result<(), h2::Error> {
        self.pings.ping(Ping::opaque()).await.map(drop)
    }

    async fn get(&mut self, path: &str) -> Result<RecvStream, h2::Error> {
        let request = Request::get(format!("https://localhost{path}"))
            .header("authorization", "Bearer subject-token")
            .body(())
            .unwrap();
        let requests = self.requests.clone().ready().await?;
        let (response, _) = { requests }.send_request(request, true)?;
        Ok(response.await?.into_body())
    }

    pub(super) async fn watch(&mut self, scene: &Scene) -> RecvStream {
        let path = format!("{PACKAGES}?watch=1&resourceVersion={}", scene.world.server.revision());
        tokio::time::timeout(PATIENCE, self.get(&path)).await.unwrap().unwrap()
    }
}

async fn event(stream: &mut RecvStream) -> Result<String, h2::Error> {
    let data = tokio::time::timeout(PATIENCE, stream.data()).await.expect("in time").expect("one more event")?;
    let line: Value = serde_json::from_slice(&data).unwrap();
    Ok(line["object"]["metadata"]["name"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_ping_without_an_answer_while_events_flow() {
    let scene = Scene::start().await;
    let (mut raw, mut other) = (Raw::connect(&scene, "h2").await, Raw::connect(&scene, "h2").await);
    let (mut watch, mut beside) = (raw.watch(&scene).await, other.watch(&scene).await);
    raw.ping().await.unwrap();
    scene.begin(&Fault { count: Some(1), ..at_once(Name::NoPong) });
    assert_eq!(scene.hits(), 0, "no PING came yet");
    assert!(tokio::time::timeout(MOMENT, raw.ping()).await.is_err(), "no PONG");
    other.ping().await.unwrap();
    scene.write("one").await;
    assert_eq!(event(&mut watch).await.unwrap(), "one");
    assert_eq!(event(&mut beside).await.unwrap(), "one");
    assert!(raw.get(PACKAGES).await.is_ok(), "other streams of the connection are served");
    assert_eq!(scene.hits(), 1);
    assert!(scene.details()[0].ends_with("by subject): PING not answered"));
}

#[tokio::test]
async fn pings_are_answered_again_when_it_is_over() {
    let scene = Scene::start().await;
    let mut raw = Raw::connect(&scene, "h2").await;
    let mut watch = raw.watch(&scene).await;
    scene.begin(&at_once(Name::NoPong).set("silent", true).set("heals", true));
    scene.write("one").await;
    assert!(tokio::time::timeout(MOMENT, event(&mut watch)).await.is_err(), "silent: no DATA either");
    assert_eq!(scene.hits(), 1);
    scene.world.server.faults().end(ID);
    assert_eq!(event(&mut watch).await.unwrap(), "one");
    raw.ping().await.unwrap();
}

#[tokio::test]
async fn a_polite_goaway_lets_open_streams_go_on() {
    let scene = Scene::start().await;
    let mut raw = Raw::connect(&scene, "h2").await;
    let mut watch = raw.watch(&scene).await;
    scene.begin(&at_once(Name::Goaway));
    assert_eq!(scene.hits(), 1);
    assert!(scene.details()[0].ends_with("GOAWAY with code 0x0, open streams go on"));
    let refused = async {
        while raw.get(PACKAGES).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("no new streams");
    scene.write("one").await;
    assert_eq!(event(&mut watch).await.unwrap(), "one");
    assert_eq!(scene.lists(Protocol::Http2).await, 1, "a new connection is welcome");
    drop(watch);
    tokio::time::timeout(PATIENCE, raw.ended).await.expect("the connection ends with its last stream").unwrap().ok();
}

#[tokio::test]
async fn an_impolite_goaway_has_its_code_and_ends_the_connection() {
    let scene = Scene::start().await;
    let mut raw = Raw::connect(&scene, "h2").await;
    let mut watch = raw.watch(&scene).await;
    let mut harness = scene.watch(scene.address(), Protocol::Http2, "harness").await;
    let code = Some(Code::Http2(Http2Code::EnhanceYourCalm));
    scene.begin(&at_once(Name::Goaway).set("code", code).set("drain", false));
    let told = tokio::time::timeout(PATIENCE, raw.ended).await.expect("closed").unwrap().unwrap_err();
    assert_eq!((told.is_go_away(), told.reason()), (true, Some(Reason::ENHANCE_YOUR_CALM)), "{told}");
    assert!(tokio::time::timeout(PATIENCE, watch.data()).await.expect("an end").is_none_or(|data| data.is_err()));
    assert_eq!(scene.hits(), 1);
    until("only the other connection is left", || scene.open_at_server() == 1).await;
    scene.write("one").await;
    assert_eq!(harness.event().await.1, "one");
}

#[tokio::test]
async fn a_goaway_with_a_code_may_drain_too() {
    let scene = Scene::start().await;
    let mut raw = Raw::connect(&scene, "h2").await;
    let mut watch = raw.watch(&scene).await;
    let code = Some(Code::Http2(Http2Code::EnhanceYourCalm));
    scene.begin(&at_once(Name::Goaway).set("code", code));
    scene.write("one").await;
    assert_eq!(event(&mut watch).await.unwrap(), "one", "it was opened before");
    let told = raw.get(PACKAGES).await.unwrap_err();
    assert_eq!(told.reason(), Some(Reason::ENHANCE_YOUR_CALM), "{told}");
}

#[tokio::test]
async fn http1_has_neither_pings_nor_goaway() {
    let scene = Scene::start().await;
    let mut lines = scene.watch(scene.address(), Protocol::Http1, "subject").await;
    scene.begin(&at_once(Name::Goaway));
    scene.world.server.faults().begin(FaultId(8), &at_once(Name::NoPong)).unwrap();
    scene.write("one").await;
    assert_eq!(lines.event().await.1, "one");
    assert_eq!(scene.hits() + scene.world.server.faults().hits(FaultId(8)), 0);
}

#[tokio::test]
async fn few_streams_are_allowed_on_new_connections_only() {
    let scene = Scene::start().await;
    let mut before = Raw::connect(&scene, "h2").await;
    before.ping().await.unwrap();
    scene.begin(&Fault::armed(Name::MaxStreams).set("streams", 2));
    let mut during = Raw::connect(&scene, "h2").await;
    let watches = [during.watch(&scene).await, during.watch(&scene).await];
    assert_eq!(during.requests.current_max_send_streams(), 2);
    assert!(tokio::time::timeout(MOMENT, during.get(PACKAGES)).await.is_err(), "the third one waits");
    drop(watches);
    drop(tokio::time::timeout(PATIENCE, during.get(PACKAGES)).await.expect("until there is room").unwrap());
    assert_eq!(scene.hits(), 1);
    assert!(before.requests.current_max_send_streams() > 2);
    assert_eq!(scene.lists(Protocol::Http1).await, 0);
    assert_eq!(scene.hits(), 1, "HTTP/1.1 has no streams");
    scene.world.server.faults().end(ID);
    let mut after = Raw::connect(&scene, "h2").await;
    after.ping().await.unwrap();
    assert!(after.requests.current_max_send_streams() > 2);
}
