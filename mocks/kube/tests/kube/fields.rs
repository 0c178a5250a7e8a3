//! Tests of unknown fields in objects of built-in types, and of duplicate fields.

use http::Method;
use serde_json::{Value, json};

use crate::client::World;
use crate::{APPLY, CONFIG_MAPS, MERGE};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment() -> Value {
    let pod = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
        {"name": "main", "image": "i:1", "imagePullPolcy": "Always"},
    ]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": pod, "paussed": true,
    }})
}

#[tokio::test]
async fn unknown_fields_of_built_in_kinds_are_dropped_told_or_refused() {
    let (_world, mut client) = World::alone().await;
    let strict = format!("{DEPLOYMENTS}?fieldValidation=Strict");
    let (status, _, refused) = client.warned(Method::POST, &strict, deployment().to_string()).await;
    let why = "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: \
               unknown field \"spec.paussed\", unknown field \"spec.template.spec.containers[0].imagePullPolcy\"";
    assert_eq!((status, &refused["message"], &refused["reason"]), (400, &json!(why), &json!("BadRequest")));
    let (status, warnings, made) = client.warned(Method::POST, DEPLOYMENTS, deployment().to_string()).await;
    assert_eq!(status, 201, "{made}");
    let told = [
        "299 - \"unknown field \\\"spec.paussed\\\"\"",
        "299 - \"unknown field \\\"spec.template.spec.containers[0].imagePullPolcy\\\"\"",
    ];
    assert_eq!(warnings, told);
    assert_eq!(made["spec"].get("paussed"), None);
    assert_eq!(made.pointer("/spec/template/spec/containers/0/imagePullPolcy"), None);

    let quiet = format!("{DEPLOYMENTS}/d?fieldValidation=Ignore");
    let (status, warnings, made) = client.warned(Method::PUT, &quiet, deployment().to_string()).await;
    assert_eq!((status, warnings.len()), (200, 0), "{made}");
    let merge = json!({"metadata": {"lables": {"x": "y"}}, "spec": {"replicas": 2}});
    let (status, patched) = client.patch(&format!("{DEPLOYMENTS}/d?fieldValidation=Strict"), MERGE, &merge).await;
    assert_eq!((status, &patched["reason"]), (422, &json!("Invalid")), "{patched}");
    let why = "strict decoding error: unknown field \"metadata.lables\"";
    assert!(patched["details"]["causes"][0]["message"].as_str().unwrap().ends_with(why), "{patched}");
    let (status, patched) = client.patch(&format!("{DEPLOYMENTS}/d"), MERGE, &merge).await;
    assert_eq!((status, patched["metadata"].get("lables")), (200, None));
    assert_eq!(patched["spec"]["replicas"], json!(2));
}

#[tokio::test]
async fn fields_that_come_twice_are_told_or_refused() {
    let (_world, mut client) = World::alone().await;
    let body = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "1", "x": "2"}},
                   "data": {"k": "first"}, "data": {"k": "second"}}"#;
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let (status, _, refused) = client.warned(Method::POST, &strict, body.to_owned()).await;
    let why = "strict decoding error: duplicate field \"metadata.labels.x\", duplicate field \"data\"";
    assert_eq!(status, 400);
    assert!(refused["message"].as_str().unwrap().ends_with(why), "{refused}");
    let (status, warnings, made) = client.warned(Method::POST, CONFIG_MAPS, body.to_owned()).await;
    assert_eq!((status, warnings.len()), (201, 2), "{warnings:?}");
    assert_eq!((&made["data"], &made["metadata"]["labels"]), (&json!({"k": "second"}), &json!({"x": "2"})));
}

const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

fn warning_headers(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| format!("299 - {text:?}")).collect()
}

/// Messages about unknown and duplicate fields in patches equal those in kube-apiserver's own test
/// (`test/integration/apiserver/field_validation_test.go`).
#[tokio::test]
async fn patches_are_looked_at_before_and_after() {
    let (_world, mut client) = World::alone().await;
    assert_eq!(client.post(DEPLOYMENTS, &deployment()).await.0, 201);
    let merge = r#"{"spec": {"unknownDupe": 1, "unknownDupe": 2, "paused": true, "paused": false, "unknown1": 1}}"#;
    let of_merge = [
        r#"duplicate field "spec.unknownDupe""#,
        r#"duplicate field "spec.paused""#,
        r#"unknown field "spec.unknown1""#,
        r#"unknown field "spec.unknownDupe""#,
    ];
    let operations = r#"[{"op": "add", "path": "/spec/unknown1", "value": {"k": 1, "k": 2}, "foo": "bar"},
                         {"op": "add", "path": "/spec/paused", "path": "/spec/unknown3", "value": 1}]"#;
    let of_operations = [
        r#"json patch unknown field "[0].foo""#,
        r#"json patch duplicate field "[0].value.k""#,
        r#"json patch duplicate field "[1].path""#,
        r#"unknown field "spec.unknown1""#,
        r#"unknown field "spec.unknown3""#,
    ];
    for (media, body, said) in
        [(MERGE, merge, &of_merge[..]), (STRATEGIC, merge, &of_merge), (JSON_PATCH, operations, &of_operations)]
    {
        client.content_type = media;
        let one = format!("{DEPLOYMENTS}/d");
        let strict = format!("{one}?fieldValidation=Strict");
        let (status, _, refused) = client.warned(Method::PATCH, &strict, body.to_owned()).await;
        let why = format!("strict decoding error: {}", said.join(", "));
        assert_eq!((status, &refused["reason"]), (422, &json!("Invalid")), "{refused}");
        assert!(refused["message"].as_str().unwrap().ends_with(&why), "{refused}");
        for warning in ["", "?fieldValidation=Warn"] {
            let path = format!("{one}{warning}");
            let (status, warnings, patched) = client.warned(Method::PATCH, &path, body.to_owned()).await;
            assert_eq!((status, warnings), (200, warning_headers(said)), "{patched}");
        }
        let quiet = format!("{one}?fieldValidation=Ignore");
        let (status, warnings, _) = client.warned(Method::PATCH, &quiet, body.to_owned()).await;
        assert_eq!((status, warnings.len()), (200, 0));
    }
    let (status, refused) = client.patch(&format!("{DEPLOYMENTS}/d?fieldValidation=Maybe"), MERGE, &json!({})).await;
    assert_eq!((status, &refused["details"]["kind"]), (422, &json!("PatchOptions")), "{refused}");
}

#[tokio::test]
async fn lines_of_yaml_that_come_twice_are_told_or_refused() {
    let (_world, mut client) = World::alone().await;
    client.content_type = "application/yaml";
    let body =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\ndata: {k: '1'}\nodd: 1\ndata: {k: '2'}\n";
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let (status, _, refused) = client.warned(Method::POST, &strict, body.to_owned()).await;
    let why = "strict decoding error: yaml: unmarshal errors:\n  line 5: key \"name\" already set in map\n  \
               line 8: key \"data\" already set in map, unknown field \"odd\"";
    assert_eq!(status, 400);
    assert!(refused["message"].as_str().unwrap().ends_with(why), "{refused}");
    let (status, warnings, made) = client.warned(Method::POST, CONFIG_MAPS, body.to_owned()).await;
    let lines = [r#"line 5: key "name" already set in map"#, r#"line 8: key "data" already set in map"#];
    assert_eq!((status, warnings), (201, warning_headers(&[lines[0], lines[1], r#"unknown field "odd""#])), "{made}");
    assert_eq!((&made["metadata"]["name"], &made["data"]), (&json!("b"), &json!({"k": "2"})));

    client.content_type = APPLY;
    let intent = body.replace("odd: 1\n", "\n");
    let strict = format!("{CONFIG_MAPS}/b?fieldManager=m&fieldValidation=Strict");
    let (status, _, refused) = client.warned(Method::PATCH, &strict, intent.clone()).await;
    let why = format!(
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
        lines.join("\n  ")
    );
    assert_eq!((status, &refused["message"]), (400, &json!(why)));
    let (status, warnings, _) = client.warned(Method::PATCH, &format!("{CONFIG_MAPS}/b?fieldManager=m"), intent).await;
    assert_eq!((status, warnings), (200, warning_headers(&lines)));
}
