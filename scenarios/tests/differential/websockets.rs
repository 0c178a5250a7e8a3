//! Compares watches over WebSocket: equal handshakes and frames must get equal answers from both servers, byte by byte.
//!
//! The client writes HTTP heads and frames itself, reads until the server closes the connection, and splits the answer.

use std::fmt::Write as _;
use std::time::Duration;

use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::driver::{self, Endpoint, Raw};
use crate::generator::Kind;
use crate::sequence::{Sequence, Step};
use crate::servers;

/// Time limit until the server closes the connection. The watches of these tests last one second.
const DEADLINE: Duration = Duration::from_secs(20);
const NAMESPACE: &str = "sockets";
const HEADERS: [(&str, &str); 5] = [
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Origin", "https://localhost"),
];
/// Response headers that a WebSocket client reads.
const SHOWN: [&str; 5] =
    ["upgrade", "connection", "sec-websocket-accept", "sec-websocket-protocol", "sec-websocket-version"];
/// Frames that the client sends, masked with zeros: a ping, a text, a close.
const PING: &[u8] = b"\x89\x83\0\0\0\0abc";
const TEXT: &[u8] = b"\x81\x82\0\0\0\0hi";
const GOODBYE: &[u8] = b"\x88\x82\0\0\0\0\x03\xe8";

/// One connection: changes to a valid handshake, and the frames that the client sends after the handshake. An empty
/// value removes the header from the handshake.
struct Case {
    /// The query of the request. In the query, `{gone}` is replaced by a compacted revision.
    query: &'static str,
    changed: &'static [(&'static str, &'static str)],
    frames: &'static [&'static [u8]],
}

const fn head(changed: &'static [(&'static str, &'static str)]) -> Case {
    Case { query: "watch=true&timeoutSeconds=1&labelSelector=a", changed, frames: &[] }
}

const fn talk(query: &'static str, frames: &'static [&'static [u8]]) -> Case {
    Case { query, changed: &[], frames }
}

const CASES: &[Case] = &[
    head(&[]),
    head(&[("Sec-WebSocket-Protocol", "base64.binary.k8s.io")]),
    head(&[("Sec-WebSocket-Protocol", "one, two")]),
    head(&[("Connection", "keep-alive, upgrade"), ("Upgrade", "WebSocket")]),
    head(&[("Connection", "Upgrade"), ("Connection", "keep-alive")]),
    head(&[("Sec-WebSocket-Key", "")]),
    head(&[("Sec-WebSocket-Key", "any")]),
    head(&[("Sec-WebSocket-Version", "")]),
    head(&[("Sec-WebSocket-Version", "8")]),
    head(&[("Sec-WebSocket-Version", "8"), ("Origin", "")]),
    head(&[("Origin", "")]),
    head(&[("Origin", "null")]),
    head(&[("Origin", "/")]),
    head(&[("Origin", "a:b")]),
    talk("watch=true&timeoutSeconds=1", &[]),
    talk("watch=true&timeoutSeconds=1&pretty=true&resourceVersion=0", &[]),
    talk("watch=true&timeoutSeconds=1&resourceVersion={gone}", &[]),
    talk("watch=true&timeoutSeconds=3&labelSelector=a", &[PING, TEXT, PING]),
    talk("watch=true&labelSelector=a", &[PING, GOODBYE]),
    talk("watch=true&resourceVersion=word", &[]),
    talk("watch=true&fieldSelector=nonsense%3Da", &[]),
];

/// Creates two objects to watch. If the server compacts its history, waits until the history between the two objects is
/// gone. Returns the revision of the first object.
async fn fill(endpoint: &Endpoint, compacts: bool) -> String {
    let path = Kind::ConfigMap.path();
    let mut steps: Vec<Step> = ["one", "two"].map(|name| Step::post(&path[..], Kind::ConfigMap.object(name, 0))).into();
    if compacts {
        let exactly = format!("{path}?resourceVersion={{old:ConfigMap/one}}&resourceVersionMatch=Exact");
        steps.push(Step::new("UNTIL 410", exactly));
    }
    let sequence = Sequence { name: "objects to watch".to_owned(), steps };
    let answers = driver::play(endpoint, &sequence, NAMESPACE).await.unwrap();
    let Raw::Answer { body, .. } = &answers[0] else { panic!("{answers:?}") };
    let made: Value = serde_json::from_slice(body).unwrap();
    made["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

fn request(endpoint: &Endpoint, case: &Case, gone: &str) -> String {
    let path = Kind::ConfigMap.path().replace("{ns}", NAMESPACE);
    let mut text = format!("GET {path}?{} HTTP/1.1\r\nHost: localhost\r\n", case.query.replace("{gone}", gone));
    let _ = write!(text, "Authorization: Bearer {}\r\nAccept: application/json\r\n", endpoint.token);
    let kept = HEADERS.iter().filter(|(name, _)| !case.changed.iter().any(|(other, _)| other == name));
    for (name, value) in kept.chain(case.changed.iter().filter(|(_, value)| !value.is_empty())) {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    text + "\r\n"
}

/// The whole answer of a server to one case, split into head and frames.
async fn answer(endpoint: &Endpoint, case: &Case, gone: &str) -> Value {
    let talking = async {
        let tcp = TcpStream::connect(endpoint.address).await.unwrap();
        let name = ServerName::from(endpoint.address.ip());
        let mut io = TlsConnector::from(endpoint.tls.clone()).connect(name, tcp).await.unwrap();
        io.write_all(request(endpoint, case, gone).as_bytes()).await.unwrap();
        let mut all = Vec::new();
        let end = loop {
            if let Some(end) = memchr::memmem::find(&all, b"\r\n\r\n") {
                break end;
            }
            assert!(io.read_buf(&mut all).await.unwrap() > 0, "the connection ended before an answer");
        };
        for frame in case.frames {
            io.write_all(frame).await.unwrap();
        }
        let head = String::from_utf8(all[..end].to_vec()).unwrap();
        let mut rest = all.split_off(end + 4);
        // Answers of the API leave the connection open; their body is compared elsewhere.
        if !is_plain(&head) {
            let _ = io.read_to_end(&mut rest).await;
        }
        (head, rest)
    };
    let (head, rest) = tokio::time::timeout(DEADLINE, talking).await.unwrap_or_else(|_| {
        panic!("{} does not hang up: {} {:?}", endpoint.address, case.query, case.changed);
    });
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    let shown = lines.filter_map(|line| line.split_once(": ")).filter_map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        SHOWN.contains(&name.as_str()).then(|| (name, json!(value)))
    });
    let upgraded = status.contains(" 101 ");
    let mut headers: serde_json::Map<String, Value> = shown.collect();
    if !upgraded {
        // One server announces that it will close, the other one simply does.
        headers.remove("connection");
    }
    let told = if upgraded { frames(&rest) } else { json!(String::from_utf8_lossy(&rest)) };
    json!({"status": status, "headers": headers, "told": if is_plain(&head) { Value::Null } else { told }})
}

/// Whether the answer is to a plain HTTP request, not to a WebSocket handshake.
fn is_plain(head: &str) -> bool {
    head.to_ascii_lowercase().contains("content-type: application/json")
}

/// `[first byte, payload]` of each frame. Watch events in frames are shown by type and name.
fn frames(mut bytes: &[u8]) -> Value {
    let mut all = Vec::new();
    while let [first, short, rest @ ..] = bytes {
        let wide = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let (length, rest) = rest.split_at(wide);
        let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let (payload, rest) = rest.split_at(if wide == 0 { usize::from(*short) } else { length });
        all.push(json!([first, event_facts(payload)]));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "a frame breaks off: {bytes:?}");
    Value::Array(all)
}

fn event_facts(payload: &[u8]) -> Value {
    let Ok(event) = serde_json::from_slice::<Value>(payload) else { return json!(payload) };
    let (object, lines) = (&event["object"], payload.split(|byte| *byte == b'\n').count() - 1);
    json!({
        "type": event["type"], "name": object["metadata"]["name"], "code": object["code"], "reason": object["reason"],
        "lines": lines, "ends": payload.last(),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn a_watch_over_a_websocket_is_a_real_servers() {
    let Some(assets) = servers::assets() else { return };
    let directory = tempfile::tempdir().unwrap();
    // Without its cache the watch reads etcd, whose history is compacted.
    let arguments = ["--etcd-compaction-interval=1s", "--watch-cache-sizes=configmaps#0"];
    let (local, real) = servers::real(assets, directory.path(), &arguments).await.unwrap();
    let (server, mock) = servers::mock().await.unwrap();
    let gone = (fill(&real, true).await, fill(&mock, false).await);
    server.compact(server.revision());
    let mut upgraded = 0;
    for case in CASES {
        let (real, mock) = tokio::join!(answer(&real, case, &gone.0), answer(&mock, case, &gone.1));
        assert_eq!(
            real,
            mock,
            "{} is left, {} right: {} {:?}",
            local.access().version(),
            "the mock",
            case.query,
            case.changed
        );
        upgraded += usize::from(real["headers"]["sec-websocket-accept"].is_string());
    }
    println!("{} connections to {}, {upgraded} WebSockets", CASES.len(), local.access().version());
    assert_eq!(upgraded, 12, "the comparison compares something");
    server.shutdown().await;
    local.stop().await;
}
