//! Tests of details that no comparison with a real kube-apiserver covers: headers, the order of fields, and defaults
//! that are added to a definition later.

use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::client::{Client, Protocol, World};
use crate::{APPLY, CONFIG_MAPS, DEFINITIONS, MERGE, PACKAGES, config_map, package, package_definition, revision};

async fn text(client: &mut Client, path: &str) -> String {
    let response = client.send(Method::GET, path, "").await;
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn a_field_that_is_not_set_is_selected_by_its_zero() {
    let (_world, mut client) = World::alone().await;
    for (name, spec) in [("open", json!({})), ("shut", json!({"unschedulable": true}))] {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec});
        assert_eq!(client.post("/api/v1/nodes", &node).await.0, 201);
    }
    for (selector, wanted) in [("false", "open"), ("true", "shut")] {
        let (_, list) = client.get(&format!("/api/v1/nodes?fieldSelector=spec.unschedulable%3D{selector}")).await;
        assert_eq!(
            (list["items"].as_array().unwrap().len(), &list["items"][0]["metadata"]["name"]),
            (1, &json!(wanted))
        );
    }
}

#[tokio::test]
async fn nobody_owns_a_status_by_applying_the_whole() {
    let (_world, mut client) = World::alone().await;
    let mut intent = package("a");
    intent["status"] = json!({"ready": true});
    for _ in 0..2 {
        let (status, made) = client.patch(&format!("{PACKAGES}/a?fieldManager=m"), APPLY, &intent).await;
        assert!(status < 300, "{made}");
        let fields = made["metadata"]["managedFields"][0]["fieldsV1"].clone();
        assert_eq!((fields.get("f:status"), made.get("status")), (None, None), "{made}");
    }
}

#[tokio::test]
async fn what_it_is_comes_first_and_people_get_it_indented() {
    let (_world, mut client) = World::alone().await;
    client.post(CONFIG_MAPS, &config_map("a")).await;
    client.post(PACKAGES, &package("a")).await;
    let one = format!("{CONFIG_MAPS}/a");
    let plain = text(&mut client, &one).await;
    assert!(plain.starts_with(r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"#), "{plain}");
    assert!(!plain.contains("creationTimestamp\":null"));
    for path in [PACKAGES.to_owned(), CONFIG_MAPS.to_owned(), format!("{CONFIG_MAPS}/b"), "/api/v1".to_owned()] {
        let text = text(&mut client, &path).await;
        assert!(text.starts_with("{\"kind\":\""), "{text}");
    }
    let list = text(&mut client, CONFIG_MAPS).await;
    let items: Value = serde_json::from_str(&list).unwrap();
    assert_eq!((items["items"][0].get("kind"), items["items"][0].get("apiVersion")), (None, None), "{list}");
    let pretty = text(&mut client, &format!("{one}?pretty=true")).await;
    assert!(
        pretty.starts_with("{\n  \"kind\": \"ConfigMap\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {\n    "),
        "{pretty}"
    );
    assert_eq!(serde_json::from_str::<Value>(&pretty).unwrap(), serde_json::from_str::<Value>(&plain).unwrap());
}

#[tokio::test]
async fn tables_come_in_the_older_version_and_with_initial_events() {
    let (_world, mut client) = World::alone().await;
    client.post(CONFIG_MAPS, &config_map("a")).await;
    client.accept = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
    let (status, table) = client.get(&format!("{CONFIG_MAPS}/a")).await;
    let object = &table["rows"][0]["object"];
    let version = json!("meta.k8s.io/v1beta1");
    assert_eq!((status, &table["apiVersion"], &object["apiVersion"]), (200, &version, &version), "{table}");
    client.accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?{query}&fieldSelector=metadata.name%3Da")).await;
    let first = watch.next().await.unwrap().unwrap();
    assert_eq!((&first["type"], &first["object"]["rows"][0]["cells"][0]), (&json!("ADDED"), &json!("a")), "{first}");
    let end = watch.next().await.unwrap().unwrap();
    let said = &end["object"]["rows"][0]["object"]["metadata"]["annotations"];
    assert_eq!((&end["type"], &end["object"]["kind"]), (&json!("BOOKMARK"), &json!("Table")), "{end}");
    assert_eq!(said, &json!({"k8s.io/initial-events-end": "true"}), "{end}");
}

#[tokio::test]
async fn discovery_names_the_stored_version_and_the_parts() {
    let (_world, mut client) = World::alone().await;
    let (_, core) = client.get("/api/v1").await;
    let resources = core["resources"].as_array().unwrap();
    let find = |name: &str| resources.iter().find(|resource| resource["name"] == name).unwrap();
    assert_eq!(find("pods")["storageVersionHash"], json!("xPOwRZ+Yhw8="), "as a real server says it");
    assert_eq!(find("pods")["categories"], json!(["all"]));
    assert_eq!(find("pods/ephemeralcontainers")["verbs"], json!(["get", "patch", "update"]));
    assert_eq!(find("pods/status").get("storageVersionHash"), None);
}

#[tokio::test]
async fn only_an_approval_approves() {
    let (_world, mut client) = World::alone().await;
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let csr = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "r"},
                     "spec": {"request": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K", "signerName": "a.b/c", "usages": ["client auth"]}});
    let (status, made) = client.post(requests, &csr).await;
    assert_eq!(status, 201, "{made}");
    let said = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "r"}]}});
    let (_, failed) = client.patch(&format!("{requests}/r/status"), MERGE, &said("Failed")).await;
    assert_eq!(failed["status"]["conditions"][0]["type"], json!("Failed"), "{failed}");
    let (_, not) = client.patch(&format!("{requests}/r/status"), MERGE, &said("Approved")).await;
    assert_eq!(not["status"].get("conditions"), None, "{not}");
    let (status, approved) = client.patch(&format!("{requests}/r/approval"), MERGE, &said("Approved")).await;
    assert_eq!((status, &approved["status"]["conditions"][0]["type"]), (200, &json!("Approved")), "{approved}");
    let (_, kept) = client.patch(&format!("{requests}/r/status"), MERGE, &said("Failed")).await;
    let kinds: Vec<&Value> = kept["status"]["conditions"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(kinds, ["Failed", "Approved"]);
}

#[tokio::test]
async fn defaults_that_come_later_are_seen_at_once_and_stored_by_the_next_write() {
    let (world, mut client) = World::alone().await;
    let (_, made) = client.post(PACKAGES, &package("a")).await;
    let one = format!("{PACKAGES}/a");
    let spec = json!({"type": "object", "properties": {"image": {"type": "string"}, "tier": {"type": "string", "default": "gold"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let path = format!("{DEFINITIONS}/packages.longhaul.dev");
    let version = |schema: &Value| {
        let mut versions = package_definition()["spec"]["versions"].clone();
        versions[0]["schema"] = schema.clone();
        json!({"spec": {"versions": versions}})
    };
    assert_eq!(client.patch(&path, MERGE, &version(&schema)).await.0, 200);
    let (_, read) = client.get(&one).await;
    assert_eq!((&read["spec"]["tier"], revision(&read)), (&json!("gold"), revision(&made)));
    let (_, list) = client.get(PACKAGES).await;
    assert_eq!(list["items"][0]["spec"]["tier"], json!("gold"));
    let mut watch = world.client(Protocol::Http1, "harness").await.watch(&format!("{PACKAGES}?watch=1")).await;
    assert_eq!(watch.next().await.unwrap().unwrap()["object"]["spec"]["tier"], json!("gold"));
    let (status, put) = client.put(&one, &read).await;
    assert_eq!((status, &put["metadata"]["generation"]), (200, &made["metadata"]["generation"]));
    assert!(revision(&put) > revision(&made), "stored with its default, which changes no generation");
    assert_eq!(revision(&client.put(&one, &put).await.1), revision(&put));
}

#[tokio::test]
async fn a_version_on_its_way_out_warns() {
    let (_world, mut client) = World::alone().await;
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = |name: &str, stored: bool, more: Value| {
        let mut version = json!({"name": name, "served": true, "storage": stored, "schema": schema});
        version.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        version
    };
    let definition = crate::definition(
        "olds",
        "Old",
        &json!([
            version("v1", true, json!({})),
            version("v1beta1", false, json!({"deprecated": true})),
            version("v1alpha1", false, json!({"deprecated": true, "deprecationWarning": "leave it"})),
        ]),
    );
    assert_eq!(client.post(DEFINITIONS, &definition).await.0, 201);
    for (version, wanted) in [
        ("v1", None),
        ("v1beta1", Some("299 - \"test.dev/v1beta1 Old is deprecated; use test.dev/v1 Old\"")),
        ("v1alpha1", Some("299 - \"leave it\"")),
    ] {
        for path in ["olds", "olds/absent"] {
            let answer =
                client.send(Method::GET, &format!("/apis/test.dev/{version}/namespaces/default/{path}"), "").await;
            let warning = answer.headers().get("warning").map(|value| value.to_str().unwrap().to_owned());
            answer.into_body().collect().await.unwrap();
            assert_eq!(warning.as_deref(), wanted, "{version} {path}");
        }
    }
}
