//! Fields that a built-in type does not have, and fields that are written twice.

use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::CONFIG_MAPS;
use crate::client::{Client, Protocol, World};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment() -> Value {
    let pod = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
        {"name": "main", "image": "i:1", "imagePullPolcy": "Always"},
    ]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": pod, "paussed": true,
    }})
}

/// Status, warnings and body.
async fn send(client: &mut Client, method: Method, path: &str, body: String) -> (u16, Vec<String>, Value) {
    let response = client.send(method, path, body).await;
    let status = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned());
    let warnings = warnings.collect();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, warnings, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn unknown_fields_of_built_in_kinds_are_dropped_told_or_refused() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let strict = format!("{DEPLOYMENTS}?fieldValidation=Strict");
    let (status, _, refused) = send(&mut client, Method::POST, &strict, deployment().to_string()).await;
    let why = "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: \
               unknown field \"spec.paussed\", unknown field \"spec.template.spec.containers[0].imagePullPolcy\"";
    assert_eq!((status, &refused["message"], &refused["reason"]), (400, &json!(why), &json!("BadRequest")));
    let (status, warnings, made) = send(&mut client, Method::POST, DEPLOYMENTS, deployment().to_string()).await;
    assert_eq!(status, 201, "{made}");
    let told = [
        "299 - \"unknown field \\\"spec.paussed\\\"\"",
        "299 - \"unknown field \\\"spec.template.spec.containers[0].imagePullPolcy\\\"\"",
    ];
    assert_eq!(warnings, told);
    assert_eq!(made["spec"].get("paussed"), None);
    assert_eq!(made.pointer("/spec/template/spec/containers/0/imagePullPolcy"), None);

    let quiet = format!("{DEPLOYMENTS}/d?fieldValidation=Ignore");
    let (status, warnings, made) = send(&mut client, Method::PUT, &quiet, deployment().to_string()).await;
    assert_eq!((status, warnings.len()), (200, 0), "{made}");
    let merge = json!({"metadata": {"lables": {"x": "y"}}, "spec": {"replicas": 2}});
    let (status, patched) =
        client.patch(&format!("{DEPLOYMENTS}/d?fieldValidation=Strict"), "application/merge-patch+json", &merge).await;
    assert_eq!(status, 400, "{patched}");
    assert!(patched["message"].as_str().unwrap().contains("unknown field \"metadata.lables\""), "{patched}");
    let (status, patched) = client.patch(&format!("{DEPLOYMENTS}/d"), "application/merge-patch+json", &merge).await;
    assert_eq!((status, patched["metadata"].get("lables")), (200, None));
    assert_eq!(patched["spec"]["replicas"], json!(2));
}

#[tokio::test]
async fn fields_that_come_twice_are_told_or_refused() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let body = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "1", "x": "2"}},
                   "data": {"k": "first"}, "data": {"k": "second"}}"#;
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let (status, _, refused) = send(&mut client, Method::POST, &strict, body.to_owned()).await;
    let why = "strict decoding error: duplicate field \"metadata.labels.x\", duplicate field \"data\"";
    assert_eq!(status, 400);
    assert!(refused["message"].as_str().unwrap().ends_with(why), "{refused}");
    let (status, warnings, made) = send(&mut client, Method::POST, CONFIG_MAPS, body.to_owned()).await;
    assert_eq!((status, warnings.len()), (201, 2), "{warnings:?}");
    assert_eq!((&made["data"], &made["metadata"]["labels"]), (&json!({"k": "second"}), &json!({"x": "2"})));
}
