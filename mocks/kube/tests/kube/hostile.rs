//! Tests of clients that send too much, stop reading, or disconnect.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use http::Method;
use serde_json::{Value, json};

use crate::client::{PATIENCE, Protocol, World};
use crate::{CONFIG_MAPS, DEFINITIONS, PACKAGES, config_map, package};

const JSON_PATCH: &str = "application/json-patch+json";

/// Waits until the server has no open watch of the subject.
async fn until_no_watch(world: &World) {
    let deadline = Instant::now() + PATIENCE;
    while world.server.traffic("subject").watches_open > 0 {
        assert!(Instant::now() < deadline, "a watch of a client that does not read stays open");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
#[ignore = "slow"]
async fn a_client_that_does_not_read_is_cut_and_nobody_else_waits() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let world = World::with(|config| config.limits.write_timeout = Duration::from_millis(300)).await;
        let mut sleeper = world.client(protocol, "subject").await;
        let asleep = sleeper.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
        let mut writer = world.client(Protocol::Http1, "harness").await;
        let mut reader = world.client(Protocol::Http2, "harness").await;
        let mut awake = reader.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
        // More than the capacity of all buffers between the two.
        let filler = "x".repeat(900_000);
        for index in 0..24 {
            let mut map = config_map(&format!("large-{index}"));
            map["data"]["filler"] = Value::from(filler.as_str());
            assert_eq!(writer.post(CONFIG_MAPS, &map).await.0, 201);
            assert_eq!(awake.event().await.1, format!("large-{index}"));
        }
        // HTTP/2's own flow control holds one stream back; there the client is cut when it goes.
        if protocol == Protocol::Http2 {
            drop(sleeper);
            drop(asleep);
            until_no_watch(&world).await;
        } else {
            until_no_watch(&world).await;
            drop(asleep);
        }
        assert_eq!(writer.get(&format!("{CONFIG_MAPS}/large-0")).await.0, 200);
    }
}

#[tokio::test]
async fn large_bodies_and_long_patches_end_at_their_limits() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http2, "harness").await;
    let sized = |bytes: usize| {
        let mut map = config_map("large");
        map["data"]["filler"] = Value::from("x".repeat(bytes));
        map
    };
    let (status, refused) = client.post(CONFIG_MAPS, &sized(3 * 1024 * 1024)).await;
    assert_eq!((status, &refused["reason"]), (413, &json!("RequestEntityTooLarge")));
    // The body is allowed, but no object may be this large.
    let (status, refused) = client.post(CONFIG_MAPS, &sized(3 * 1024 * 1024 - 4096)).await;
    assert!(matches!(status, 413 | 422), "{status} {refused}");
    assert_eq!(client.post(CONFIG_MAPS, &sized(1_000_000)).await.0, 201);

    client.post(CONFIG_MAPS, &config_map("small")).await;
    let one = format!("{CONFIG_MAPS}/small");
    let add = |index: usize| json!({"op": "add", "path": format!("/data/k{index}"), "value": "v"});
    let patch = Value::from((0..10_000).map(add).collect::<Vec<_>>());
    let (status, patched) = client.patch(&one, JSON_PATCH, &patch).await;
    assert_eq!((status, patched["data"].as_object().map(serde_json::Map::len)), (200, Some(10_001)));
    let patch = Value::from((0..10_001).map(add).collect::<Vec<_>>());
    let (status, refused) = client.patch(&one, JSON_PATCH, &patch).await;
    assert_eq!((status, &refused["reason"]), (413, &json!("RequestEntityTooLarge")));
}

#[tokio::test]
async fn a_small_patch_cannot_make_a_large_or_deep_object() {
    let (world, mut client) = World::alone().await;
    client.post(PACKAGES, &package("p")).await;
    let one = format!("{PACKAGES}/p");
    let copy = |index: usize| json!({"op": "copy", "from": "/spec", "path": format!("/spec/x{index}")});
    let bomb = Value::from((0..64).map(copy).collect::<Vec<_>>());
    assert_eq!(client.patch(&one, JSON_PATCH, &bomb).await.0, 422);
    let deep: Vec<Value> = (1..400)
        .map(|depth| json!({"op": "add", "path": format!("/spec{}", "/d".repeat(depth)), "value": {}}))
        .collect();
    assert_eq!(client.patch(&one, JSON_PATCH, &Value::from(deep)).await.0, 422);
    // YAML: nested, and aliases of aliases.
    let intent =
        |spec: String| format!("{{apiVersion: longhaul.dev/v1, kind: Package, metadata: {{name: p}}, spec: {spec}}}");
    let nested = intent(format!("{}1{}", "{a: ".repeat(500), "}".repeat(500)));
    let mut laughs = String::from("[&a0 [x, x, x, x, x, x, x, x]");
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(8);
        laughs = format!("{laughs}, &a{level} [{before}]");
    }
    laughs.push(']');
    client.content_type = "application/apply-patch+yaml";
    for body in [nested, intent(format!("{{a: {laughs}}}"))] {
        let response = client.send(Method::PATCH, &format!("{one}?fieldManager=t&force=1"), body).await;
        assert!(response.status().is_client_error(), "{}", response.status());
        client = world.client(Protocol::Http1, "harness").await;
        client.content_type = "application/apply-patch+yaml";
    }
    assert_eq!(client.get(&one).await.1["spec"]["image"], json!("a:1"), "nothing of it was stored");
}

/// The resident memory of this process, which includes the server, in bytes.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// A list of a large store is encoded while it is read. If a client requests such a list and does not read the answer,
/// the server does not copy the store.
#[tokio::test]
async fn lists_that_nobody_reads_are_not_made() {
    const OBJECTS: usize = 30;
    const UNREAD: usize = 16;
    let world = World::start().await;
    let mut writer = world.client(Protocol::Http1, "harness").await;
    // Content that does not compress well.
    let filler: String =
        (0..900_000_u32).map(|n| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 27) as u8 % 26)).collect();
    for index in 0..OBJECTS {
        let mut map = config_map(&format!("large-{index:02}"));
        map["data"]["filler"] = Value::from(filler.as_str());
        assert_eq!(writer.post(CONFIG_MAPS, &map).await.0, 201);
    }
    let before = resident_bytes();
    let mut unread = Vec::new();
    for index in 0..UNREAD {
        let protocol = if index % 2 == 0 { Protocol::Http1 } else { Protocol::Http2 };
        let mut client = world.client(protocol, "subject").await;
        let response = client.send(Method::GET, CONFIG_MAPS, "").await;
        assert_eq!(response.status(), 200);
        unread.push((client, response));
    }
    let grown = resident_bytes().saturating_sub(before);
    let whole = (OBJECTS * UNREAD * filler.len()) as u64;
    assert!(grown < whole / 4, "{grown} bytes for {UNREAD} lists that are {whole} bytes");
    drop(unread);
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut reader = world.client(protocol, "subject").await;
        let (status, list) = reader.get(CONFIG_MAPS).await;
        assert_eq!((status, &list["kind"]), (200, &json!("ConfigMapList")));
        let items = list["items"].as_array().unwrap();
        assert_eq!(items.len(), OBJECTS);
        assert!(items.iter().enumerate().all(|(index, item)| item["metadata"]["name"] == format!("large-{index:02}")));
        reader.accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
        let (_, table) = reader.get(CONFIG_MAPS).await;
        assert_eq!((&table["kind"], table["rows"].as_array().map(Vec::len)), (&json!("Table"), Some(OBJECTS)));
    }
}

/// An object is refused if its defaults make it too large: every item of a list may have a default, so twenty kilobytes
/// could become gigabytes.
#[tokio::test]
async fn defaults_cannot_make_a_small_object_larger_than_an_object_may_be() {
    let (_world, mut client) = World::alone().await;
    let text = json!({"type": "string", "default": "x".repeat(100_000)});
    let item = json!({"type": "object", "properties": {"text": text}});
    let spec = json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let definition = crate::definition("bombs", "Bomb", &json!([version]));
    let created = client.post(DEFINITIONS, &definition).await;
    assert_eq!(created.0, 201, "{}", created.1);
    let bomb = |items: usize| {
        json!({"apiVersion": "test.dev/v1", "kind": "Bomb", "metadata": {"name": format!("b{items}")},
               "spec": {"items": vec![json!({}); items]}})
    };
    let bombs = "/apis/test.dev/v1/namespaces/default/bombs";
    let before = resident_bytes();
    let (status, refused) = client.post(bombs, &bomb(7000)).await;
    assert_eq!((status, &refused["reason"]), (413, &json!("RequestEntityTooLarge")), "{refused}");
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 100 << 20, "{grown} bytes for what was refused");
    assert_eq!(client.post(bombs, &bomb(10)).await.0, 201);
}

/// The server adds to numbers that clients send. A request with the largest numbers must still get an answer.
#[tokio::test]
async fn numbers_at_their_limits_are_answered() {
    let world = World::start().await;
    let mut writer = world.client(Protocol::Http1, "harness").await;
    writer.post(CONFIG_MAPS, &config_map("a")).await;
    writer.post(CONFIG_MAPS, &config_map("b")).await;
    for number in [i64::MAX as u64, u64::MAX, u64::from(u32::MAX)] {
        let mut client = world.client(Protocol::Http1, "subject").await;
        for path in [
            format!("{CONFIG_MAPS}?limit={number}"),
            format!("{CONFIG_MAPS}?limit=1&timeoutSeconds={number}"),
            format!("{CONFIG_MAPS}?resourceVersion={number}"),
            format!("{CONFIG_MAPS}?watch=1&resourceVersion={number}&timeoutSeconds=1"),
        ] {
            let (status, answer) = client.get(&path).await;
            assert!(status == 200 || answer["kind"] == "Status", "{path}: {status} {answer}");
        }
        let mut lines =
            match client.send(Method::GET, &format!("{CONFIG_MAPS}?watch=1&timeoutSeconds={number}"), "").await {
                refused if refused.status().is_client_error() => continue,
                opened => opened.into_body(),
            };
        let first = http_body_util::BodyExt::frame(&mut lines).await.expect("the watch has begun").unwrap();
        assert!(first.into_data().unwrap().starts_with(b"{\"type\":\"ADDED\""));
        let path = format!("{CONFIG_MAPS}/none?gracePeriodSeconds={number}");
        assert_ne!(writer.delete(&path).await.0, 200);
    }
    // The position in a list comes from the client as well.
    let (_, page) = writer.get(&format!("{CONFIG_MAPS}?limit=1")).await;
    let token = page["metadata"]["continue"].as_str().unwrap();
    let mut token: Value = serde_json::from_slice(&BASE64.decode(token).unwrap()).unwrap();
    token["served"] = Value::from(u64::MAX);
    let path = format!("{CONFIG_MAPS}?limit=1&continue={}", BASE64.encode(token.to_string()));
    assert_eq!(writer.get(&path).await.0, 200);
    let lasts = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": i64::MAX}});
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    assert!(matches!(writer.post(path, &lasts).await.0, 201 | 404 | 422));
}

/// A web page can make a browser connect to this server under the page's host name (DNS rebinding). The browser has
/// neither the server's certificate authority nor a token. Plain HTTP gets no answer, and over TLS no host name gives
/// rights. Like kube-apiserver, the server therefore does not check host names: clients come through tunnels and
/// proxies with other names.
#[tokio::test]
async fn a_page_whose_name_leads_here_is_told_nothing() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let world = World::start().await;
    let address = world.server.address();
    let ask = |path: &str, more: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: evil.example\r\nOrigin: https://evil.example\r\nConnection: close\r\n{more}\r\n"
        )
    };
    for path in
        ["/api", "/apis", "/openapi/v2", CONFIG_MAPS, "/api/v1/secrets?watch=1", "/.well-known/openid-configuration"]
    {
        for (more, status) in [("", "401"), ("Authorization: Bearer subject-token\r\n", "200")] {
            if path.contains("watch") && status == "200" {
                continue;
            }
            let mut stream = world.dial(address, Protocol::Http1, None).await;
            stream.write_all(ask(path, more).as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
            read.expect("an answer in time").unwrap();
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
            assert!(!answer.to_ascii_lowercase().contains("access-control-allow"), "{answer}");
        }
    }
    let mut plain = tokio::net::TcpStream::connect(address).await.unwrap();
    plain.write_all(ask("/api", "").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, plain.read_to_end(&mut answer)).await.expect("an end in time");
    assert!(!answer.starts_with(b"HTTP/"), "{}", String::from_utf8_lossy(&answer));
}
