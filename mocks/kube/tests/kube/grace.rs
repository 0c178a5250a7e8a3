//! Tests of pods with a grace period, and without a kubelet that ends them.

use serde_json::json;

use crate::client::{PATIENCE, World};

/// A namespace does not wait for ever for pods that no kubelet ends.
#[tokio::test]
async fn a_namespace_goes_when_the_time_of_its_pods_is_over() {
    let (_world, mut client) = World::alone().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ends"}});
    client.post("/api/v1/namespaces", &namespace).await;
    let brief = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "brief"}, "spec": {
        "nodeName": "n", "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i"}]}});
    client.post("/api/v1/namespaces/ends/pods", &brief).await;
    client.delete("/api/v1/namespaces/ends").await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while client.get("/api/v1/namespaces/ends").await.0 != 404 {
        assert!(tokio::time::Instant::now() < deadline, "the namespace is still there");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
