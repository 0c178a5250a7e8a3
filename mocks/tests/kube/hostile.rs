//! Clients that send too much, that stop reading, and that go away.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::client::{PATIENCE, Protocol, World};
use crate::{CONFIG_MAPS, PACKAGES, config_map, package};

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
async fn a_client_that_does_not_read_is_cut_and_nobody_else_waits() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let world = World::with(|config| config.limits.write_timeout = Duration::from_millis(300)).await;
        let mut sleeper = world.client(protocol, "subject").await;
        let asleep = sleeper.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
        let mut writer = world.client(Protocol::Http1, "harness").await;
        let mut reader = world.client(Protocol::Http2, "harness").await;
        let mut awake = reader.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
        // More than all buffers between the two hold.
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
async fn a_client_that_vanishes_leaves_nothing_behind() {
    let world = World::start().await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut client = world.client(protocol, "subject").await;
        let lines = client.watch(&format!("{PACKAGES}?watch=1")).await;
        assert_eq!(world.server.traffic("subject").watches_open, 1);
        drop((client, lines));
        let mut writer = world.client(Protocol::Http1, "harness").await;
        writer.post(PACKAGES, &package(&format!("after-{}", protocol == Protocol::Http1))).await;
        until_no_watch(&world).await;
    }
    assert_eq!(world.server.traffic("subject").requests_open, 0);
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
    // It may be sent, but no object may be so large.
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
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
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
