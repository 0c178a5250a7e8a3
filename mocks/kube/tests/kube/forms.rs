//! Tests of unsupported representations in `Accept`, health checks, timeouts and port ranges. The expected answers are
//! those of kube-apiserver 1.34.1.

use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::client::{Client, World};
use crate::{CONFIG_MAPS, config_map};

const ONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

async fn accepting(client: &mut Client, accept: &'static str, path: &str) -> (u16, Value) {
    client.accept = accept;
    let answer = client.get(path).await;
    client.accept = "application/json";
    answer
}

#[tokio::test]
async fn metadata_that_an_answer_does_not_have_is_not_acceptable() {
    let (_world, mut client) = World::alone().await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("a")).await.0, 201);
    let one = format!("{CONFIG_MAPS}/a");
    for (accept, path, why) in [
        (
            ONE,
            CONFIG_MAPS,
            "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)",
        ),
        (
            LIST,
            one.as_str(),
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)",
        ),
    ] {
        let (status, refused) = accepting(&mut client, accept, path).await;
        assert_eq!((status, &refused["message"]), (406, &json!(why)));
        assert!(refused.get("details").is_none(), "{refused}");
    }
    let why = "only the following media types are accepted: application/json, application/yaml, \
               application/vnd.kubernetes.protobuf";
    for (accept, path) in [(ONE, "/api"), (ONE, "/apis/apps/v1"), (TABLE, "/apis/apps/v1")] {
        let (status, refused) = accepting(&mut client, accept, path).await;
        assert_eq!((status, &refused["message"]), (406, &json!(why)), "{path}");
    }
    assert_eq!(accepting(&mut client, ONE, &one).await.0, 200);
    assert_eq!(accepting(&mut client, LIST, CONFIG_MAPS).await.0, 200);
    assert_eq!(accepting(&mut client, ONE, "/version").await.0, 200);
}

async fn text(client: &mut Client, path: &str) -> (u16, String) {
    let response = client.send(Method::GET, path, "").await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn health_lists_its_checks() {
    let (_world, mut client) = World::alone().await;
    let (status, ready) = text(&mut client, "/readyz?verbose").await;
    assert!(ready.starts_with("[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]etcd-readiness ok\n"), "{ready}");
    assert!(ready.ends_with("[+]shutdown ok\nreadyz check passed\n"), "{ready}");
    assert_eq!((status, ready.lines().count()), (200, 35));
    let (_, live) = text(&mut client, "/livez?verbose&exclude=ping").await;
    assert!(live.starts_with("[+]ping excluded: ok\n"), "{live}");
    assert_eq!(live.lines().count(), 32);
    assert_eq!(text(&mut client, "/livez").await, (200, "ok".to_owned()));
    assert_eq!(text(&mut client, "/readyz/etcd?verbose").await, (200, "ok".to_owned()));
    assert_eq!(text(&mut client, "/livez/etcd-readiness").await, (404, "404 page not found\n".to_owned()));
}

#[tokio::test]
async fn a_wrong_timeout_is_refused() {
    let (_world, mut client) = World::alone().await;
    let why = "invalid timeout specified in the request URL - time: invalid duration \"x\"";
    for path in ["/api/v1/namespaces?timeout=x", "/api?timeout=x"] {
        let (status, refused) = client.get(path).await;
        assert_eq!((status, &refused["message"]), (400, &json!(why)), "{path}");
    }
    assert_eq!(client.get("/api/v1/namespaces?timeout=-1s").await.0, 200);
}

#[tokio::test]
async fn the_end_of_a_range_needs_its_beginning() {
    let (_world, mut client) = World::alone().await;
    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"}, "spec": {
        "podSelector": {}, "ingress": [{"ports": [{"endPort": 90}]}],
        "egress": [{"ports": [{"port": "http", "endPort": 90}, {"port": 100, "endPort": 90}, {"protocol": "X"}]}],
    }});
    let (status, refused) = client.post("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", &policy).await;
    let causes: Vec<String> = refused["details"]["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| format!("{} {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap()))
        .collect();
    let expected = [
        "spec.ingress[0].ports[0].endPort Invalid value: 90: may not be specified when `port` is not specified",
        "spec.egress[0].ports[0].endPort Invalid value: 90: may not be specified when `port` is non-numeric",
        "spec.egress[0].ports[1].endPort Invalid value: 100: must be greater than or equal to `port`",
        "spec.egress[0].ports[2].protocol Unsupported value: \"X\": supported values: \"TCP\", \"UDP\", \"SCTP\"",
    ];
    assert_eq!((status, &causes[..]), (422, &expected.map(str::to_owned)[..]));
}
