//! Tests of a second endpoint that lags, as in a control plane with several API servers.

use std::time::Duration;

use http::Method;
use serde_json::json;

use crate::client::{Protocol, World};
use crate::{PACKAGES, package, revision};

#[tokio::test]
async fn a_lagging_endpoint_shows_the_past_and_catches_up() {
    let world = World::start().await;
    let replica = world.server.replica("127.0.0.1:0".parse().unwrap()).await.unwrap();
    assert!(replica.kubeconfig("subject").unwrap().contains(&replica.url()));
    let mut writer = world.client(Protocol::Http1, "harness").await;
    let (_, old) = writer.post(PACKAGES, &package("old")).await;
    let mut lagging = world.client_of(replica.address(), "subject").await;
    let mut lines = world
        .client_of(replica.address(), "subject")
        .await
        .watch(&format!("{PACKAGES}?watch=1&resourceVersion={}", revision(&old)))
        .await;
    replica.freeze();
    let (_, new) = writer.post(PACKAGES, &package("new")).await;
    writer.delete(&format!("{PACKAGES}/old")).await;

    let (_, stale) = lagging.get(&format!("{PACKAGES}?resourceVersion=0")).await;
    assert_eq!(revision(&stale), revision(&old));
    assert_eq!(stale["items"][0]["metadata"]["name"], json!("old"), "gone, and still shown");
    assert_eq!(lagging.get(&format!("{PACKAGES}/old?resourceVersion=0")).await.0, 200);
    assert_eq!(lagging.get(&format!("{PACKAGES}/old")).await.0, 404, "without a revision it is a consistent read");
    let (_, fresh) = lagging.get(PACKAGES).await;
    assert_eq!(fresh["items"][0]["metadata"]["name"], json!("new"));
    let seen = revision(&new);
    for query in [format!("watch=1&resourceVersion={seen}"), format!("resourceVersion={seen}")] {
        let (status, refused) = lagging.get(&format!("{PACKAGES}?{query}")).await;
        assert_eq!((status, &refused["details"]["causes"][0]["reason"]), (504, &json!("ResourceVersionTooLarge")));
    }
    assert!(lines.is_silent(Duration::from_millis(100)).await);
    assert_eq!(lagging.send(Method::DELETE, &format!("{PACKAGES}/new"), "").await.status(), 200, "writes go through");

    replica.catch_up();
    let events = [lines.event().await, lines.event().await, lines.event().await];
    let kinds: Vec<(&str, &str)> = events.iter().map(|(kind, name, _)| (kind.as_str(), name.as_str())).collect();
    assert_eq!(kinds, [("ADDED", "new"), ("DELETED", "old"), ("DELETED", "new")]);
    replica.shutdown().await;
    assert_eq!(writer.get(PACKAGES).await.0, 200, "the first endpoint goes on");
}
