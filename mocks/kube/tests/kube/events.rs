//! The two APIs of events: one store.

use http::Method;
use serde_json::{Value, json};

use crate::client::{Protocol, World};
use crate::revision;

const CORE: &str = "/api/v1/namespaces/default/events";
const NEWER: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const MERGE: &str = "application/merge-patch+json";

fn newer(name: &str) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name}, "note": "pulled it",
        "eventTime": "2026-01-02T03:04:05.000006Z", "type": "Normal", "reason": "Pulled", "action": "Pull",
        "reportingController": "example.com/one", "reportingInstance": "one-1",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    })
}

#[tokio::test]
async fn an_event_written_through_one_api_is_there_in_the_other() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let (mut in_core, mut in_newer) =
        (world.client(Protocol::Http1, "subject").await, world.client(Protocol::Http1, "subject").await);
    let from = world.server.revision();
    let mut core_watch =
        in_core.watch(&format!("{CORE}?watch=true&resourceVersion={from}&fieldSelector=involvedObject.name%3Dp")).await;
    let mut newer_watch =
        in_newer.watch(&format!("{NEWER}?watch=true&resourceVersion={from}&fieldSelector=regarding.name%3Dp")).await;

    let (status, created) = client.post(NEWER, &newer("a")).await;
    assert_eq!(
        (status, &created["note"], &created["apiVersion"]),
        (201, &json!("pulled it"), &json!("events.k8s.io/v1"))
    );
    let (status, seen) = client.get(&format!("{CORE}/a")).await;
    assert_eq!((status, &seen["message"], &seen["apiVersion"]), (200, &json!("pulled it"), &json!("v1")));
    assert_eq!(seen["involvedObject"], created["regarding"]);
    assert_eq!((&seen["metadata"]["uid"], revision(&seen)), (&created["metadata"]["uid"], revision(&created)));

    let (_, patched) = client.patch(&format!("{CORE}/a"), MERGE, &json!({"message": "again", "count": 2})).await;
    let (_, shown) = client.get(&format!("{NEWER}/a")).await;
    assert_eq!((&shown["note"], &shown["deprecatedCount"]), (&json!("again"), &json!(2)));
    assert_eq!(revision(&shown), revision(&patched));

    client.delete(&format!("{NEWER}/a")).await;
    assert_eq!(client.get(&format!("{CORE}/a")).await.0, 404);
    for wanted in ["ADDED", "MODIFIED", "DELETED"] {
        let core = core_watch.next().await.unwrap().unwrap();
        let newer = newer_watch.next().await.unwrap().unwrap();
        assert_eq!((&core["type"], &newer["type"]), (&json!(wanted), &json!(wanted)));
        assert_eq!(revision(&core["object"]), revision(&newer["object"]));
        assert_eq!(core["object"]["message"], newer["object"]["note"]);
        assert!(core["object"].get("note").is_none() && newer["object"].get("message").is_none());
    }
}

#[tokio::test]
async fn lists_pages_and_deletions_go_through_both() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http2, "harness").await;
    for name in ["a", "b", "c"] {
        assert_eq!(client.post(NEWER, &newer(name)).await.0, 201);
    }
    let (_, page) = client.get(&format!("{CORE}?limit=1")).await;
    assert_eq!((&page["kind"], &page["metadata"]["remainingItemCount"]), (&json!("EventList"), &json!(2)));
    assert!(page["items"][0].get("kind").is_none(), "items of built-in lists do not repeat their type: {page}");
    let token = page["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = client.get(&format!("{NEWER}?continue={token}")).await;
    let notes: Vec<&Value> = rest["items"].as_array().unwrap().iter().map(|item| &item["note"]).collect();
    assert_eq!(notes, [&json!("pulled it"), &json!("pulled it")]);
    assert_eq!(client.call(Method::DELETE, &format!("{CORE}?limit=2"), None).await.0, 200);
    assert_eq!(client.get(NEWER).await.1["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn each_api_has_its_own_rules() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let mut without_time = newer("a");
    without_time.as_object_mut().unwrap().remove("eventTime");
    let (status, refused) = client.post(NEWER, &without_time).await;
    assert_eq!((status, &refused["details"]["causes"][0]["field"]), (422, &json!("eventTime")));
    let legacy = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "old"}, "reason": "Seen", "message": "m",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    });
    assert_eq!(client.post(CORE, &legacy).await.0, 201);
    assert_eq!(client.post(NEWER, &newer("new")).await.0, 201);
    let (status, refused) = client.patch(&format!("{NEWER}/new"), MERGE, &json!({"note": "other"})).await;
    assert_eq!((status, &refused["details"]["causes"][0]["field"]), (422, &json!("message")), "{refused}");
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-02T03:05:05.000000Z"}});
    assert_eq!(client.patch(&format!("{NEWER}/new"), MERGE, &series).await.0, 200);
}
