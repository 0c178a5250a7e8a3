//! Tests of custom resources with a schema: fields that are refused, dropped, defaulted and shown.

use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::client::{Client, Protocol, World};
use crate::{APPLY, DEFINITIONS, MERGE};

const GADGETS: &str = "/apis/test.dev/v1/namespaces/default/gadgets";

fn definition() -> Value {
    let spec = json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "code": {"type": "string", "pattern": "^[a-z]+$"},
        "replicas": {"type": "integer"},
        "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let status = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}});
    let subresources = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
    }});
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": schema, "subresources": subresources,
               "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]})
    };
    crate::definition("gadgets", "Gadget", &json!([version("v1", true), version("v1beta1", false)]))
}

fn gadget(spec: &Value) -> Value {
    json!({"apiVersion": "test.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": spec})
}

async fn defined() -> (World, Client) {
    let (world, mut client) = World::alone().await;
    let (status, made) = client.post(DEFINITIONS, &definition()).await;
    assert_eq!(status, 201, "{made}");
    (world, client)
}

/// The status that a client sends with a new object is dropped, and the default of the definition comes instead.
#[tokio::test]
async fn a_new_object_has_the_default_status() {
    let (_world, mut client) = World::alone().await;
    let status = json!({"type": "object", "default": {"phase": "Ready"}, "properties": {"phase": {"type": "string"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"status": status}}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}});
    client.post(DEFINITIONS, &crate::definition("gadgets", "Gadget", &json!([version]))).await;
    let mut sent = gadget(&json!({}));
    sent["status"] = json!({"phase": "Sent"});
    let (status, made) = client.post(GADGETS, &sent).await;
    assert_eq!((status, &made["status"]), (201, &json!({"phase": "Ready"})), "{made}");
    assert_eq!(client.get(&format!("{GADGETS}/g")).await.1["status"], json!({"phase": "Ready"}));
}

/// Events from before the change are not lost, even if the client had not read them yet.
#[tokio::test]
async fn a_watch_that_ends_by_a_changed_definition_has_sent_what_came_before() {
    const COUNT: usize = 20;
    let (world, mut client) = defined().await;
    let mut watcher = world.client(Protocol::Http2, "subject").await;
    let mut lines = watcher.watch(&format!("{GADGETS}?watch=true&resourceVersion={}", world.server.revision())).await;
    // Together more than the buffers of a stream hold.
    let text = "x".repeat(300 * 1024);
    for index in 0..COUNT {
        let mut object = gadget(&json!({"size": 1, "extra": {"text": text}}));
        object["metadata"]["name"] = json!(format!("g{index}"));
        assert_eq!(client.post(GADGETS, &object).await.0, 201);
    }
    let mut changed = definition();
    changed["spec"]["names"]["categories"] = json!(["all"]);
    let (status, answer) = client.patch(&format!("{DEFINITIONS}/gadgets.test.dev"), MERGE, &changed).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(client.post(GADGETS, &gadget(&json!({"size": 1}))).await.0, 201, "of the new definition");
    let mut names = Vec::new();
    while let Some(event) = lines.next().await.unwrap() {
        names.push(event["object"]["metadata"]["name"].as_str().unwrap().to_owned());
    }
    let wanted: Vec<String> = (0..COUNT).map(|index| format!("g{index}")).collect();
    assert_eq!(names, wanted);
}

#[tokio::test]
async fn a_schema_refuses_with_all_causes_at_once() {
    let (_world, mut client) = defined().await;
    let wrong = gadget(&json!({"size": 10, "color": "green", "code": "A"}));
    let (status, refused) = client.post(GADGETS, &wrong).await;
    assert_eq!((status, &refused["reason"]), (422, &json!("Invalid")));
    let causes: Vec<(String, String)> = refused["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| {
            let text = |key: &str| cause[key].as_str().unwrap().to_owned();
            (text("reason"), text("field"))
        })
        .collect();
    let wanted = [
        ("FieldValueInvalid", "spec.code"),
        ("FieldValueNotSupported", "spec.color"),
        ("FieldValueInvalid", "spec.size"),
    ];
    assert_eq!(causes, wanted.map(|(reason, field)| (reason.to_owned(), field.to_owned())));
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("Gadget.test.dev \"g\" is invalid: [spec.code: Invalid value: \"A\": "), "{message}");
    let (_, refused) = client.post(GADGETS, &gadget(&json!({}))).await;
    assert_eq!(refused["message"], json!("Gadget.test.dev \"g\" is invalid: spec.size: Required value"));

    let (status, made) = client.post(GADGETS, &gadget(&json!({"size": 1}))).await;
    assert_eq!((status, &made["spec"]), (201, &json!({"size": 1, "color": "red"})), "the default is stored");
    let one = format!("{GADGETS}/g");
    let (status, _) = client.patch(&one, MERGE, &json!({"spec": {"size": 0}})).await;
    assert_eq!(status, 422);
    let (_, patched) = client.patch(&one, MERGE, &json!({"spec": {"color": null}})).await;
    assert_eq!(patched["spec"]["color"], json!("red"), "a default comes back");
    let (status, refused) = client.patch(&format!("{one}/status"), MERGE, &json!({"status": {"replicas": "1"}})).await;
    assert_eq!((status, &refused["details"]["causes"][0]["reason"]), (422, &json!("FieldValueTypeInvalid")));
}

#[tokio::test]
async fn unknown_fields_are_dropped_told_or_refused() {
    let (_world, mut client) = defined().await;
    let body = gadget(&json!({"size": 1, "sice": 2, "extra": {"free": true}}));
    let strict = format!("{GADGETS}?fieldValidation=Strict");
    let (status, _, refused) = client.warned(Method::POST, &strict, body.to_string()).await;
    let message = "Gadget in version \"v1\" cannot be handled as a Gadget: strict decoding error: unknown field \
                   \"spec.sice\"";
    assert_eq!((status, &refused["message"]), (400, &json!(message)));
    let (status, warnings, made) = client.warned(Method::POST, GADGETS, body.to_string()).await;
    assert_eq!((status, &made["spec"]), (201, &json!({"size": 1, "color": "red", "extra": {"free": true}})));
    assert_eq!(warnings, ["299 - \"unknown field \\\"spec.sice\\\"\""]);
    let patch = json!({"spec": {"sice": 3}});
    let (status, same) = client.patch(&format!("{GADGETS}/g?fieldValidation=Ignore"), MERGE, &patch).await;
    assert_eq!((status, &same["metadata"]["resourceVersion"]), (200, &made["metadata"]["resourceVersion"]));
    assert_eq!(client.patch(&format!("{GADGETS}/g?fieldValidation=Strict"), MERGE, &patch).await.0, 422);
    assert_eq!(client.patch(&format!("{GADGETS}/g?fieldValidation=Maybe"), MERGE, &patch).await.0, 422);
}

#[tokio::test]
async fn an_applied_object_must_be_of_its_schema() {
    let (_world, mut client) = defined().await;
    for (spec, why) in [
        (json!({"size": 1, "sice": 2}), ".spec.sice: field not declared in schema"),
        (json!({"size": "1"}), ".spec.size: expected numeric (int or float), got \"1\""),
        (json!(["size"]), ".spec: expected map, got [\"size\"]"),
    ] {
        let path = format!("{GADGETS}/g?fieldManager=m&fieldValidation=Ignore");
        let (status, refused) = client.patch(&path, APPLY, &gadget(&spec)).await;
        assert_eq!((status, refused.get("reason")), (500, None), "{refused}");
        let message = format!("failed to create typed patch object (/g; test.dev/v1, Kind=Gadget): {why}");
        assert_eq!(refused["message"], json!(message));
    }
    let open = gadget(&json!({"size": 1, "color": null, "extra": {"free": {"odd": 1}}}));
    let (status, made) = client.patch(&format!("{GADGETS}/g?fieldManager=m"), APPLY, &open).await;
    assert_eq!(status, 201, "{made}");
}

/// The server returns a definition with every keyword exactly as kube-apiserver 1.20.2 does, also when a client sends
/// the definition again.
#[tokio::test]
async fn every_keyword_of_a_definition_is_kept() {
    let (_world, mut client) = World::alone().await;
    let recorded: Value = serde_json::from_str(include_str!("../../../objects/src/protobuf/definition.json")).unwrap();
    let mut sent = recorded.clone();
    sent["metadata"] = json!({"name": recorded["metadata"]["name"]});
    sent["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["odd"] = json!(1);
    let (status, warnings, made) = client.warned(Method::POST, DEFINITIONS, sent.to_string()).await;
    assert_eq!((status, &made["spec"]), (201, &recorded["spec"]), "{made}");
    assert_eq!(warnings, ["299 - \"unknown field \\\"spec.versions[0].schema.openAPIV3Schema.odd\\\"\""]);
}

#[tokio::test]
async fn a_definition_may_come_in_protobuf() {
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut rest = content.len();
        while rest > 0x7f {
            out.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
            rest >>= 7;
        }
        out.push(u8::try_from(rest).unwrap());
        out.extend_from_slice(content);
        out
    }
    let yes = |number: u8| vec![number << 3, 1];
    let size = [field(5, b"integer"), field(8, &field(1, b"3"))].concat();
    let spec =
        [field(5, b"object"), vec![0xea, 1], field(0, &[field(1, b"size"), field(2, &size)].concat())[1..].to_vec()];
    let root = [
        field(5, b"object"),
        vec![0xea, 1],
        field(0, &[field(1, b"spec"), field(2, &spec.concat())].concat())[1..].to_vec(),
    ];
    let version = [field(1, b"v1"), yes(2), yes(3), field(4, &field(1, &root.concat()))].concat();
    let names = [field(1, b"things"), field(4, b"Thing")].concat();
    let definition = [field(1, b"proto.dev"), field(3, &names), field(4, b"Namespaced"), field(7, &version)].concat();
    let raw = [field(1, &field(1, b"things.proto.dev")), field(2, &definition)].concat();
    let kind = [field(1, b"apiextensions.k8s.io/v1"), field(2, b"CustomResourceDefinition")].concat();
    let body = [b"k8s\0".to_vec(), field(1, &kind), field(2, &raw)].concat();

    let (_world, mut client) = World::alone().await;
    client.content_type = "application/vnd.kubernetes.protobuf";
    let response = client.send(Method::POST, DEFINITIONS, body).await;
    assert_eq!(response.status(), 201);
    let _ = response.into_body().collect().await.unwrap();
    client.content_type = "application/json";
    let thing = json!({"apiVersion": "proto.dev/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {}});
    let (status, made) = client.post("/apis/proto.dev/v1/namespaces/default/things", &thing).await;
    assert_eq!((status, &made["spec"]), (201, &json!({"size": 3})), "the default came along");
}

/// The path `/` lists all paths; cluster-api requests the list to check that a cluster is up.
#[tokio::test]
async fn the_root_lists_the_paths() {
    let (_world, mut client) = defined().await;
    let (status, root) = client.get("/").await;
    let paths: Vec<&str> = root["paths"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!((status, &paths[..2]), (200, &["/.well-known/openid-configuration", "/api"][..]));
    for path in ["/apis/apps/v1", "/apis/test.dev/v1beta1", "/version"] {
        assert!(paths.contains(&path), "{path} is not in {paths:?}");
    }
}
