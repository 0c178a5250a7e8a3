//! Tests of clients that accept only protobuf.

use http::Method;
use http_body_util::BodyExt as _;
use mock_objects::protobuf::decode;
use serde_json::{Value, json};

use crate::client::{Client, Protocol, World};
use crate::{CONFIG_MAPS, PACKAGES, config_map, package};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Status, content type and body.
async fn got(client: &mut Client, path: &str) -> (u16, String, Vec<u8>) {
    let response = client.send(Method::GET, path, "").await;
    let media = response.headers()["content-type"].to_str().unwrap().to_owned();
    let status = response.status().as_u16();
    (status, media, response.into_body().collect().await.unwrap().to_bytes().to_vec())
}

#[tokio::test]
async fn built_in_kinds_are_answered_in_protobuf() {
    let (world, mut json) = World::alone().await;
    let (_, made) = json.post(CONFIG_MAPS, &config_map("a")).await;
    json.post(PACKAGES, &package("p")).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    client.accept = PROTOBUF;
    let (status, media, body) = got(&mut client, &format!("{CONFIG_MAPS}/a")).await;
    assert_eq!((status, media.as_str()), (200, PROTOBUF));
    assert_eq!(decode(&body).unwrap(), made);
    let (status, media, body) = got(&mut client, CONFIG_MAPS).await;
    assert_eq!((status, media.as_str(), &body[..4]), (200, PROTOBUF, &b"k8s\0"[..]));
    assert!(body.windows(13).any(|window| window == b"ConfigMapList"));
    let (status, _, body) = got(&mut client, &format!("{CONFIG_MAPS}/none")).await;
    let refused = decode(&body).unwrap();
    assert_eq!((status, &refused["reason"], &refused["code"]), (404, &json!("NotFound"), &json!(404)));

    let (status, _, body) = got(&mut client, &format!("{PACKAGES}/p")).await;
    assert_eq!(
        (status, &decode(&body).unwrap()["reason"]),
        (406, &json!("NotAcceptable")),
        "a custom one has no protobuf"
    );
    client.accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let (status, _, body) = got(&mut client, &format!("{PACKAGES}/p")).await;
    let meta = decode(&body).unwrap();
    assert_eq!((status, &meta["kind"], &meta["metadata"]["name"]), (200, &json!("PartialObjectMetadata"), &json!("p")));
    client.accept = "application/vnd.kubernetes.protobuf,application/json";
    assert_eq!(got(&mut client, &format!("{CONFIG_MAPS}/a")).await.1, "application/json", "whoever takes JSON gets it");
}

#[tokio::test]
async fn a_watch_is_a_stream_of_frames() {
    let (world, mut json) = World::alone().await;
    json.post(CONFIG_MAPS, &config_map("a")).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    client.accept = PROTOBUF;
    let path = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1");
    let (status, media, body) = got(&mut client, &path).await;
    assert_eq!((status, media.as_str()), (200, "application/vnd.kubernetes.protobuf;stream=watch"));
    let length = usize::try_from(u32::from_be_bytes(body[..4].try_into().unwrap())).unwrap();
    let event = &body[4..4 + length];
    let magic = event.windows(4).position(|window| window == b"k8s\0").unwrap();
    let object: Value = decode(&event[magic..]).unwrap();
    assert_eq!((&object["kind"], &object["metadata"]["name"]), (&json!("ConfigMap"), &json!("a")));
    assert_eq!(&event[..7], b"\x0a\x05ADDED");
}
