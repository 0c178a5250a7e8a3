//! Tests of `managedFields`: the owners of fields, and conflicts of an apply.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use serde_json::{Value, json};

use crate::client::World;
use crate::{APPLY, CONFIG_MAPS, DEFINITIONS, MERGE, PACKAGES, config_map, package, revision};

/// `(manager, operation, subresource, fieldsV1)` of every entry.
fn entries(object: &Value) -> Vec<(String, String, String, Value)> {
    let list = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let row = |entry: &Value| {
        assert_eq!(entry["fieldsType"], json!("FieldsV1"), "{entry}");
        let fields = entry["fieldsV1"].clone();
        (text(entry, "manager"), text(entry, "operation"), text(entry, "subresource"), fields)
    };
    list.iter().map(row).collect()
}

fn entry(manager: &str, operation: &str, subresource: &str, fields: Value) -> (String, String, String, Value) {
    (manager.to_owned(), operation.to_owned(), subresource.to_owned(), fields)
}

#[tokio::test]
async fn fields_belong_to_who_wrote_them_last() {
    let (_world, mut client) = World::alone().await;
    let (_, made) = client.post(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(entries(&made), [entry("test", "Update", "", json!({"f:data": {"f:a": {}}}))], "the user agent's name");
    assert_eq!(made["metadata"]["managedFields"][0]["apiVersion"], json!("v1"));
    let one = format!("{CONFIG_MAPS}/a");
    let change = json!({"data": {"b": "2"}, "metadata": {"labels": {"x": "y"}}});
    let (_, changed) = client.patch(&format!("{one}?fieldManager=editor"), MERGE, &change).await;
    let editor = json!({"f:data": {"f:b": {}}, "f:metadata": {"f:labels": {"f:x": {}}}});
    let first = entry("test", "Update", "", json!({"f:data": {"f:a": {}}}));
    assert_eq!(entries(&changed), [first, entry("editor", "Update", "", editor)]);

    let (_, same) = client.patch(&format!("{one}?fieldManager=third"), MERGE, &change).await;
    assert_eq!(revision(&same), revision(&changed), "nothing was written, so nobody owns it");
    let take = json!({"data": {"a": "9", "b": null}});
    let (_, taken) = client.patch(&format!("{one}?fieldManager=third"), MERGE, &take).await;
    let editor = entry("editor", "Update", "", json!({"f:metadata": {"f:labels": {"f:x": {}}}}));
    assert_eq!(entries(&taken), [editor, entry("third", "Update", "", json!({"f:data": {"f:a": {}}}))]);

    let mut sent_back = taken.clone();
    sent_back["metadata"]["managedFields"] = json!([]);
    sent_back["data"]["c"] = json!("3");
    let (_, kept) = client.put(&one, &sent_back).await;
    assert_eq!(entries(&kept).len(), 3, "an empty list is a client that does not know the field");
    let mut strip = kept;
    strip["metadata"]["managedFields"] = json!([{}]);
    let (_, stripped) = client.put(&one, &strip).await;
    assert_eq!(stripped["metadata"].get("managedFields"), None);
    let (_, later) = client.patch(&one, MERGE, &json!({"data": {"d": "4"}})).await;
    assert_eq!(later["metadata"].get("managedFields"), None, "stripped stays stripped until somebody applies");
    let intent = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"d": "5"}});
    let (status, refused) = client.patch(&format!("{one}?fieldManager=tool"), APPLY, &intent).await;
    assert_eq!(status, 409);
    assert!(refused["message"].as_str().unwrap().contains("\"before-first-apply\" using v1: .data.d"), "{refused}");
}

#[tokio::test]
async fn the_status_has_its_own_entry() {
    let (_world, mut client) = World::alone().await;
    client.post(PACKAGES, &package("p")).await;
    let status = json!({"status": {"phase": "Ready"}});
    let (_, written) = client.patch(&format!("{PACKAGES}/p/status?fieldManager=robot"), MERGE, &status).await;
    let robot = entry("robot", "Update", "status", json!({"f:status": {"f:phase": {}}}));
    let all = entries(&written);
    assert_eq!(all[1], robot);
    assert_eq!(written["metadata"]["managedFields"][1]["apiVersion"], json!("longhaul.dev/v1"));
    let intent = json!({"apiVersion": "longhaul.dev/v1", "kind": "Package", "metadata": {"name": "p"},
                        "status": {"phase": "Lost"}});
    let path = format!("{PACKAGES}/p/status?fieldManager=tool");
    let (_, refused) = client.patch(&path, APPLY, &intent).await;
    let message = "conflict with \"robot\" with subresource \"status\" using longhaul.dev/v1";
    assert_eq!(refused["details"]["causes"][0]["message"], json!(message), "{refused}");
    assert_eq!(client.send(Method::DELETE, &format!("{PACKAGES}/p"), "").await.status(), 200);
}

/// A custom resource definition with lists in lists, lists in map entries, and lists whose only key has a default.
fn nested() -> Value {
    let port = json!({"type": "object", "properties": {"port": {"type": "integer"}, "note": {"type": "string"}}});
    let ports = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"], "items": port});
    let names = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let group = json!({"type": "object", "properties": {"name": {"type": "string"}, "ports": ports}});
    let way = json!({"type": "object", "properties": {
        "protocol": {"type": "string", "default": "TCP"}, "note": {"type": "string"}, "names": names,
    }});
    let rule = json!({"type": "object", "properties": {
        "host": {"type": "string", "default": "*"}, "port": {"type": "integer"}, "note": {"type": "string"},
    }});
    let map = |keys: Value, items: Value| json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items});
    let spec = json!({"type": "object", "properties": {
        "groups": map(json!(["name"]), group), "ways": map(json!(["protocol"]), way),
        "rules": map(json!(["host", "port"]), rule),
        "zones": {"type": "object", "additionalProperties": {"type": "object", "properties": {"names": names}}},
        "one": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
    }});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}});
    crate::definition("gadgets", "Gadget", &json!([version]))
}

#[tokio::test]
async fn nested_lists_and_keys_with_defaults_merge_and_go() {
    let (_world, mut client) = World::alone().await;
    assert_eq!(client.post(DEFINITIONS, &nested()).await.0, 201);
    let path = |manager: &str| format!("/apis/test.dev/v1/namespaces/default/gadgets/g?fieldManager={manager}");
    // Existing owners: an object whose owners are gone is collected.
    let mut owners = Vec::new();
    for name in ["x", "y"] {
        let uid = client.post(CONFIG_MAPS, &config_map(name)).await.1["metadata"]["uid"].clone();
        owners.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}));
    }
    let intent = |spec: Value| {
        let metadata = json!({"name": "g", "ownerReferences": [owners[0]]});
        json!({"apiVersion": "test.dev/v1", "kind": "Gadget", "metadata": metadata, "spec": spec})
    };
    let first = json!({
        "groups": [{"name": "a", "ports": [{"port": 1}]}], "zones": {"z": {"names": ["x"]}}, "one": {"a": "1"},
        "ways": [{"names": ["x"]}], "rules": [{"host": "*", "port": 1}],
    });
    let (status, made) = client.patch(&path("one"), APPLY, &intent(first)).await;
    assert_eq!(status, 201, "{made}");
    let mut second = intent(json!({
        "groups": [{"name": "a", "ports": [{"port": 2}]}], "zones": {"z": {"names": ["y"]}},
        "rules": [{"port": 1, "note": "mine"}],
    }));
    second["metadata"]["ownerReferences"] = json!([owners[1]]);
    let (status, both) = client.patch(&path("two"), APPLY, &second).await;
    assert_eq!(status, 200, "{both}");
    assert_eq!(both["spec"]["groups"], json!([{"name": "a", "ports": [{"port": 1}, {"port": 2}]}]));
    assert_eq!(both["spec"]["zones"], json!({"z": {"names": ["x", "y"]}}));
    assert_eq!(both["spec"]["rules"], json!([{"host": "*", "port": 1, "note": "mine"}]));
    assert_eq!(both["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(2));

    let (status, left) = client.patch(&path("one"), APPLY, &intent(json!({"one": {}}))).await;
    assert_eq!(status, 200, "{left}");
    assert_eq!(
        left["spec"],
        json!({
            "groups": [{"name": "a", "ports": [{"port": 2}]}], "zones": {"z": {"names": ["y"]}}, "one": {},
            "rules": [{"host": "*", "port": 1, "note": "mine"}],
        }),
        "an item goes with the last who wants it, and one that another one wants stays as it is"
    );
}

/// A manager that applies both the status and the other fields of an object has two `managedFields` entries.
#[tokio::test]
async fn a_manager_has_an_entry_for_each_subresource() {
    let (_world, mut client) = World::alone().await;
    assert_eq!(client.post(DEFINITIONS, &nested()).await.0, 201);
    let gadget = |key: &str, value: Value| json!({"apiVersion": "test.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}, key: value});
    let path = "/apis/test.dev/v1/namespaces/default/gadgets/g";
    let apply = format!("{path}?fieldManager=tool");
    client.patch(&apply, APPLY, &gadget("spec", json!({"one": {"a": "1"}}))).await;
    let status = format!("{path}/status?fieldManager=tool");
    assert_eq!(client.patch(&status, APPLY, &gadget("status", json!({"phase": "Ready"}))).await.0, 200);
    let (_, again) = client.patch(&apply, APPLY, &gadget("spec", json!({"one": {"a": "2"}}))).await;
    assert_eq!((&again["status"], &again["spec"]["one"]), (&json!({"phase": "Ready"}), &json!({"a": "2"})));
    let owners: Vec<(String, String)> = entries(&again).into_iter().map(|entry| (entry.1, entry.2)).collect();
    let apply = |subresource: &str| ("Apply".to_owned(), subresource.to_owned());
    assert_eq!(owners, [apply("status"), apply("")]);
}

/// A client that writes a scale owns only the number of replicas, whether it updates, patches or applies the scale
/// (KEP-555).
#[tokio::test]
async fn a_scale_is_applied_and_its_owners_are_those_of_the_object() {
    let (_world, mut client) = World::alone().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }});
    assert_eq!(client.post(&format!("{path}?fieldManager=creator"), &deployment).await.0, 201);
    let scale = |replicas: i64| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": replicas}});
    let (at, apply) = (format!("{path}/a/scale?fieldManager=scaler"), APPLY);
    let owners = |deployment: &Value| -> Vec<String> {
        let entries = deployment["metadata"]["managedFields"].as_array().unwrap().clone();
        let of_number = entries.iter().filter(|entry| entry["fieldsV1"]["f:spec"].get("f:replicas").is_some());
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        of_number
            .map(|e| ["manager", "operation", "subresource", "apiVersion"].map(|key| text(e, key)).join(" "))
            .collect()
    };

    let (status, refused) = client.patch(&at, apply, &scale(2)).await;
    assert_eq!((status, &refused["details"]["causes"][0]["field"]), (409, &json!(".spec.replicas")), "{refused}");
    let (status, same) = client.patch(&at, apply, &scale(1)).await;
    assert_eq!(
        (status, &same["spec"], same["metadata"].get("managedFields")),
        (200, &json!({"replicas": 1}), None),
        "{same}"
    );
    let shared = client.get(&format!("{path}/a")).await.1;
    assert_eq!(owners(&shared), ["creator Update  apps/v1", "scaler Apply scale apps/v1"]);
    assert_eq!(client.patch(&at, apply, &scale(1)).await.1["metadata"], same["metadata"], "the same again is no write");
    let (status, scaled) = client.patch(&format!("{at}&force=true"), apply, &scale(2)).await;
    assert_eq!((status, &scaled["kind"], &scaled["spec"]), (200, &json!("Scale"), &json!({"replicas": 2})), "{scaled}");
    let (_, taken) = client.get(&format!("{path}/a")).await;
    assert_eq!(
        (owners(&taken), &taken["metadata"]["generation"]),
        (vec!["scaler Apply scale apps/v1".to_owned()], &json!(2))
    );
    assert!(taken["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"].get("f:template").is_some(), "{taken}");

    // The other patches and a PUT work as well.
    let others = [
        (MERGE, json!({"spec": {"replicas": 3}})),
        ("application/strategic-merge-patch+json", json!({"spec": {"replicas": 4}})),
        ("application/json-patch+json", json!([{"op": "replace", "path": "/spec/replicas", "value": 5}])),
    ];
    for (content_type, patch) in others {
        let (status, scaled) = client.patch(&format!("{path}/a/scale?fieldManager=other"), content_type, &patch).await;
        assert_eq!(status, 200, "{scaled}");
        assert_eq!(owners(&client.get(&format!("{path}/a")).await.1), ["other Update scale apps/v1"]);
    }
    let mut put = scale(6);
    put["metadata"]["namespace"] = json!("default");
    assert_eq!(client.put(&format!("{path}/a/scale?fieldManager=third"), &put).await.0, 200);
    assert_eq!(owners(&client.get(&format!("{path}/a")).await.1), ["third Update scale apps/v1"]);

    for (at, body, status) in [
        (format!("{path}/a/scale"), scale(1), 422),
        (at.clone(), json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"odd": 1}}), 500),
        (at.clone(), json!({"apiVersion": "apps/v1", "kind": "Scale", "spec": {"replicas": 6}}), 500),
        (
            format!("{at}&force=true"),
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "b"}}),
            400,
        ),
        (format!("{path}/none/scale?fieldManager=x"), scale(1), 404),
        (format!("{at}&force=true"), scale(-1), 422),
    ] {
        let (is, refused) = client.patch(&at, apply, &body).await;
        assert_eq!(is, status, "{at} {body}: {refused}");
    }
}

#[tokio::test]
async fn a_status_is_applied_on_its_own() {
    let (_world, mut client) = World::alone().await;
    assert_eq!(client.post(&format!("{PACKAGES}?fieldManager=creator"), &package("p")).await.0, 201);
    let ready = json!({"apiVersion": "longhaul.dev/v1", "kind": "Package", "metadata": {"name": "p"},
        "spec": {"image": "other:1"}, "status": {"phase": "Ready"}});
    let (status, applied) =
        client.patch(&format!("{PACKAGES}/p/status?fieldManager=c&force=true"), APPLY, &ready).await;
    assert_eq!(
        (status, &applied["status"], &applied["spec"]["image"]),
        (200, &json!({"phase": "Ready"}), &json!("a:1")),
        "{applied}"
    );
    let busy = json!({"apiVersion": "longhaul.dev/v1", "kind": "Package", "status": {"phase": "Busy"}});
    let (status, refused) = client.patch(&format!("{PACKAGES}/p/status?fieldManager=d"), APPLY, &busy).await;
    assert_eq!((status, &refused["details"]["causes"][0]["field"]), (409, &json!(".status.phase")), "{refused}");
    let none = json!({"apiVersion": "longhaul.dev/v1", "kind": "Package"});
    let (status, empty) = client.patch(&format!("{PACKAGES}/p/status?fieldManager=c"), APPLY, &none).await;
    assert_eq!((status, empty["status"].get("phase")), (200, None), "{empty}");
}

/// Every patch format can approve a certificate signing request. The server sets the times, and a decision is final.
#[tokio::test]
async fn an_approval_may_be_patched_and_applied() {
    let (_world, mut client) = World::alone().await;
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let pem = BASE64.encode("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n");
    let request = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "c"},
                         "spec": {"request": pem, "signerName": "a.b/c", "usages": ["client auth"]}});
    let (status, made) = client.post(path, &request).await;
    assert_eq!(status, 201, "{made}");
    let approval = format!("{path}/c/approval");
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "R"});
    let change = json!({"status": {"conditions": [condition("Approved")]}, "spec": {"usages": ["server auth"]},
                        "metadata": {"labels": {"a": "b"}}});
    let (status, approved) = client.patch(&approval, MERGE, &change).await;
    assert_eq!(status, 200, "{approved}");
    let first = approved["status"]["conditions"][0].clone();
    assert_eq!((&first["type"], &first["reason"]), (&json!("Approved"), &json!("R")), "{approved}");
    assert!(first["lastUpdateTime"].is_string() && first["lastTransitionTime"].is_string(), "{approved}");
    assert_eq!(
        (&approved["spec"]["usages"], &approved["metadata"]["labels"]),
        (&json!(["client auth"]), &json!({"a": "b"}))
    );
    let add = json!([{"op": "add", "path": "/status/conditions/-", "value": condition("X")}]);
    let (_, more) = client.patch(&approval, "application/json-patch+json", &add).await;
    assert_eq!(
        (&more["status"]["conditions"][0], &more["status"]["conditions"][1]["type"]),
        (&first, &json!("X")),
        "{more}"
    );
    let (status, refused) = client.patch(&approval, MERGE, &json!({"status": {"conditions": [condition("Y")]}})).await;
    let why = json!("Forbidden: updates may not remove a condition of type \"Approved\"");
    assert_eq!((status, &refused["details"]["causes"][0]["message"]), (422, &why), "{refused}");
    let intent = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "c"},
                        "status": {"conditions": [condition("Y")]}});
    let (status, applied) = client.patch(&format!("{approval}?fieldManager=me&force=true"), APPLY, &intent).await;
    assert_eq!((status, applied["status"]["conditions"].as_array().map(Vec::len)), (200, Some(3)), "{applied}");
}

/// A manager that applies a status to the main resource owns nothing, so that it conflicts with no other manager. A
/// status that is applied to the subresource has an owner.
#[tokio::test]
async fn a_status_that_is_applied_alone_conflicts_with_nobody() {
    let (_world, mut client) = World::alone().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let made = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                      "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    assert_eq!(client.post(deployments, &made).await.0, 201);
    let intent = |replicas: u8| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "status": {"replicas": replicas}});
    let one = format!("{deployments}/d");
    let own = entry("own", "Apply", "status", json!({"f:status": {"f:replicas": {}}}));
    for (path, replicas, owns) in [(one.clone(), 3, false), (format!("{one}/status"), 3, true), (one.clone(), 4, true)]
    {
        let (status, applied) = client.patch(&format!("{path}?fieldManager=own"), APPLY, &intent(replicas)).await;
        assert_eq!(status, 200, "{path}: {applied}");
        let found: Vec<_> = entries(&applied).into_iter().filter(|entry| entry.0 == "own").collect();
        assert_eq!(found, if owns { vec![own.clone()] } else { Vec::new() }, "{path}");
    }
    let (status, other) = client.patch(&format!("{one}?fieldManager=other"), APPLY, &intent(9)).await;
    assert_eq!((status, &other["status"]["replicas"]), (200, &json!(3)), "{other}");
}

#[tokio::test]
async fn an_intent_for_another_object_of_the_name_is_refused() {
    let (_world, mut client) = World::alone().await;
    client.post(CONFIG_MAPS, &config_map("a")).await;
    let intent = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "another"}, "data": {"b": "1"}});
    for query in ["", "&dryRun=All"] {
        let path = format!("{CONFIG_MAPS}/a?fieldManager=tool{query}");
        let (status, refused) = client.patch(&path, APPLY, &intent).await;
        assert_eq!((status, &refused["details"]["causes"][0]["field"]), (422, &json!("metadata.uid")), "{refused}");
    }
}

#[tokio::test]
async fn who_owns_fields_in_a_version_that_is_gone_is_in_the_way_of_an_apply_alone() {
    let (_world, mut client) = World::alone().await;
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let path = format!("{DEFINITIONS}/bits.test.dev");
    let definition = crate::definition("bits", "Bit", &json!([version("v1", true), version("v2", false)]));
    assert_eq!(client.post(DEFINITIONS, &definition).await.0, 201);
    let intent = |version: &str| json!({"apiVersion": format!("test.dev/{version}"), "kind": "Bit", "metadata": {"name": "a"}, "spec": {version: 1}});
    let one = |version: &str, manager: &str| {
        format!("/apis/test.dev/{version}/namespaces/default/bits/a?fieldManager={manager}")
    };
    client.patch(&one("v1", "old"), APPLY, &intent("v1")).await;
    client.patch(&path, MERGE, &json!({"spec": {"versions": [version("v1", false), version("v2", true)]}})).await;
    client.patch(&one("v2", "mover"), MERGE, &json!({"metadata": {"labels": {"x": "y"}}})).await;
    client.patch(&format!("{path}/status"), MERGE, &json!({"status": {"storedVersions": ["v2"]}})).await;
    let (status, told) = client.patch(&path, MERGE, &json!({"spec": {"versions": [version("v2", true)]}})).await;
    assert_eq!(status, 200, "{told}");

    let (status, refused) = client.patch(&one("v2", "new"), APPLY, &intent("v2")).await;
    let why = json!("request to convert CR to an invalid group/version: test.dev/v1");
    assert_eq!((status, &refused["message"], refused.get("reason")), (500, &why, None), "{refused}");
    let (_, written) = client.patch(&one("v2", "m"), MERGE, &json!({"spec": {"c": 1}})).await;
    assert_eq!((&written["spec"]["c"], written["metadata"].get("managedFields")), (&json!(1), None), "{written}");
    let (status, applied) = client.patch(&one("v2", "new"), APPLY, &intent("v2")).await;
    assert_eq!((status, entries(&applied).len()), (200, 2), "{applied}");
}
