//! Pods that are given time to end, and no kubelet that ends them.

use http::Method;
use serde_json::{Value, json};

use crate::client::{Client, PATIENCE, Protocol, World};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str, node: Option<&str>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = json!(node);
    }
    pod
}

/// Seconds until a pod's time is over.
fn left_s(pod: &Value) -> i64 {
    let ends: jiff::Timestamp = pod["metadata"]["deletionTimestamp"].as_str().unwrap().parse().unwrap();
    ends.as_second() - jiff::Timestamp::now().as_second()
}

async fn phase_of_end(client: &mut Client, name: &str) -> (u16, Value) {
    let (status, pod) = client.get(&format!("{PODS}/{name}")).await;
    (status, pod["metadata"]["deletionGracePeriodSeconds"].clone())
}

#[tokio::test]
async fn a_bound_pod_stays_until_it_is_deleted_without_grace() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    client.post(PODS, &pod("bound", Some("n"))).await;
    let one = format!("{PODS}/bound");

    let (status, marked) = client.delete(&one).await;
    assert_eq!((status, &marked["metadata"]["deletionGracePeriodSeconds"]), (200, &json!(30)));
    assert!((20..=30).contains(&left_s(&marked)), "{marked}");
    let (_, again) = client.delete(&one).await;
    assert_eq!(
        again["metadata"]["resourceVersion"], marked["metadata"]["resourceVersion"],
        "deleting twice is nothing"
    );
    let (_, shorter) = client.delete(&format!("{one}?gracePeriodSeconds=5")).await;
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], json!(5));
    assert!(left_s(&shorter) <= 5);
    client.delete(&format!("{one}?gracePeriodSeconds=60")).await;
    assert_eq!(phase_of_end(&mut client, "bound").await, (200, json!(5)), "time is only taken away");
    assert_eq!(client.delete(&format!("{one}?gracePeriodSeconds=0")).await.0, 200);
    assert_eq!(phase_of_end(&mut client, "bound").await.0, 404);
}

#[tokio::test]
async fn who_waits_for_nobody_goes_at_once() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    client.post(PODS, &pod("free", None)).await;
    client.post(PODS, &pod("done", Some("n"))).await;
    client
        .patch(&format!("{PODS}/done/status"), "application/merge-patch+json", &json!({"status": {"phase": "Failed"}}))
        .await;
    for name in ["free", "done"] {
        assert_eq!(client.delete(&format!("{PODS}/{name}")).await.0, 200);
        assert_eq!(phase_of_end(&mut client, name).await.0, 404, "{name}");
    }
}

#[tokio::test]
async fn a_finalizer_and_the_time_must_both_be_over() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let mut held = pod("held", Some("n"));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    client.post(PODS, &held).await;
    let one = format!("{PODS}/held");
    client.delete(&one).await;
    let release = json!({"metadata": {"finalizers": null}});
    client.patch(&one, "application/merge-patch+json", &release).await;
    assert_eq!(phase_of_end(&mut client, "held").await, (200, json!(30)), "the kubelet has not ended it");
    client.call(Method::DELETE, &one, Some(&json!({"kind": "DeleteOptions", "gracePeriodSeconds": 0}))).await;
    assert_eq!(phase_of_end(&mut client, "held").await.0, 404);
}

/// A namespace does not wait for ever for pods that nobody ends.
#[tokio::test]
async fn a_namespace_goes_when_the_time_of_its_pods_is_over() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ends"}});
    client.post("/api/v1/namespaces", &namespace).await;
    let mut brief = pod("brief", Some("n"));
    brief["spec"]["terminationGracePeriodSeconds"] = json!(1);
    client.post("/api/v1/namespaces/ends/pods", &brief).await;
    client.delete("/api/v1/namespaces/ends").await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while client.get("/api/v1/namespaces/ends").await.0 != 404 {
        assert!(tokio::time::Instant::now() < deadline, "the namespace is still there");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
