//! The addresses and node ports of services, as clients meet them.

use serde_json::{Value, json};

use crate::client::{Protocol, World};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

fn field(refused: &Value) -> &Value {
    &refused["details"]["causes"][0]["field"]
}

#[tokio::test]
async fn a_service_keeps_its_address_until_it_goes() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let plain = json!({"ports": [{"port": 80}]});
    let (status, one) = client.post(SERVICES, &service("one", &plain)).await;
    assert_eq!(status, 201, "{one}");
    let (_, two) = client.post(SERVICES, &service("two", &plain)).await;
    let address = one["spec"]["clusterIP"].as_str().unwrap();
    assert!(address.starts_with("10.96."), "{address}");
    assert_ne!(address, two["spec"]["clusterIP"]);

    // Who leaves it out keeps it; who names another one is refused, and so is who wants what somebody has.
    let path = format!("{SERVICES}/one");
    let (status, kept) = client.put(&path, &service("one", &plain)).await;
    assert_eq!((status, &kept["spec"]["clusterIP"]), (200, &one["spec"]["clusterIP"]));
    let moved = json!({"clusterIP": "10.96.9.9", "ports": [{"port": 80}]});
    let (status, refused) = client.put(&path, &service("one", &moved)).await;
    assert_eq!((status, field(&refused)), (422, &json!("spec.clusterIPs[0]")));
    let wanted = service("three", &json!({"clusterIP": address, "ports": [{"port": 80}]}));
    let (status, refused) = client.post(SERVICES, &wanted).await;
    assert_eq!((status, field(&refused)), (422, &json!("spec.clusterIPs")));

    // What is gone is free.
    assert_eq!(client.delete(&path).await.0, 200);
    let (status, three) = client.post(SERVICES, &wanted).await;
    assert_eq!((status, three["spec"]["clusterIP"].as_str()), (201, Some(address)));
}

#[tokio::test]
async fn node_ports_come_and_go_with_the_type() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let of = |kind: &str| service("one", &json!({"type": kind, "ports": [{"port": 80}]}));
    let (_, plain) = client.post(SERVICES, &of("ClusterIP")).await;
    assert_eq!(plain["spec"]["ports"][0].get("nodePort"), None);
    let path = format!("{SERVICES}/one");
    let (_, open) = client.put(&path, &of("NodePort")).await;
    let port = open["spec"]["ports"][0]["nodePort"].as_u64().unwrap();
    assert!((30_000..=32_767).contains(&port), "{port}");
    let (_, again) = client.put(&path, &of("NodePort")).await;
    assert_eq!(again["spec"]["ports"], open["spec"]["ports"]);
    let (_, closed) = client.put(&path, &of("ClusterIP")).await;
    assert_eq!(closed["spec"]["ports"][0].get("nodePort"), None);
}
