//! Verbs and the rules of objects.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::client::{Client, PATIENCE, Protocol, World};
use crate::{CONFIG_MAPS, PACKAGES, config_map, package, revision};

/// Asks again until the answer is `wanted`.
async fn until(client: &mut Client, path: &str, wanted: u16) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (status, value) = client.get(path).await;
        if status == wanted {
            return value;
        }
        assert!(Instant::now() < deadline, "{path} answers {status}, not {wanted}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_object_lives_from_create_to_delete_over_both_protocols() {
    let world = World::start().await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut client = world.client(protocol, "harness").await;
        let (status, created) = client.post(PACKAGES, &package("one")).await;
        assert_eq!(status, 201, "{created}");
        let meta = &created["metadata"];
        assert_eq!((&meta["generation"], &meta["namespace"]), (&json!(1), &json!("default")));
        assert_eq!(meta["uid"].as_str().unwrap().len(), 36);
        let one = format!("{PACKAGES}/one");
        assert_eq!(client.get(&one).await, (200, created.clone()));

        let mut changed = created.clone();
        changed["spec"]["image"] = json!("a:2");
        changed["status"] = json!({"phase": "Ready"});
        let (status, updated) = client.put(&one, &changed).await;
        assert_eq!((status, &updated["metadata"]["generation"]), (200, &json!(2)));
        assert_eq!(updated.get("status"), None, "status is written through its subresource only");
        assert!(revision(&updated) > revision(&created));

        let (status, conflict) = client.put(&one, &changed).await;
        assert_eq!((status, &conflict["reason"], &conflict["kind"]), (409, &json!("Conflict"), &json!("Status")));

        let status_patch = json!({"status": {"phase": "Ready"}, "spec": {"image": "ignored"}});
        let (_, patched) = client.patch(&format!("{one}/status"), "application/merge-patch+json", &status_patch).await;
        assert_eq!((&patched["status"]["phase"], &patched["spec"]["image"]), (&json!("Ready"), &json!("a:2")));
        assert_eq!(patched["metadata"]["generation"], json!(2), "status is no new generation");

        let (status, same) =
            client.patch(&one, "application/merge-patch+json", &json!({"spec": {"image": "a:2"}})).await;
        assert_eq!((status, revision(&same)), (200, revision(&patched)), "a write without a change is none");

        let (status, gone) = client.delete(&one).await;
        assert_eq!((status, &gone["status"], &gone["details"]["name"]), (200, &json!("Success"), &json!("one")));
        let (status, missing) = client.get(&one).await;
        assert_eq!(status, 404);
        assert_eq!(missing["message"], json!("packages.longhaul.dev \"one\" not found"));
        let details = json!({"group": "longhaul.dev", "kind": "packages", "name": "one"});
        assert_eq!(missing["details"], details);
    }
}

#[tokio::test]
async fn wrong_requests_are_told_what_is_wrong() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    client.post(CONFIG_MAPS, &config_map("there")).await;
    let long = "x".repeat(254);
    let cases = [
        (config_map("there"), CONFIG_MAPS, 409, "AlreadyExists", "configmaps \"there\" already exists"),
        (config_map("Upper"), CONFIG_MAPS, 422, "Invalid", "a lowercase RFC 1123 subdomain"),
        (config_map(&long), CONFIG_MAPS, 422, "Invalid", "must be no more than 253 characters"),
        (config_map(""), CONFIG_MAPS, 422, "Invalid", "name or generateName is required"),
        (package("x"), CONFIG_MAPS, 400, "BadRequest", "does not match the expected API version"),
        (config_map("x"), "/api/v1/namespaces/nowhere/configmaps", 404, "NotFound", "namespaces \"nowhere\" not found"),
        (config_map("x"), "/api/v1/configmaps", 405, "MethodNotAllowed", "does not allow this method"),
        (config_map("x"), "/api/v1/things", 404, "NotFound", "could not find the requested resource"),
        (json!([1]), CONFIG_MAPS, 400, "BadRequest", "not an object"),
    ];
    for (body, path, code, reason, text) in cases {
        let (status, answer) = client.post(path, &body).await;
        assert_eq!((status, &answer["reason"], &answer["code"]), (code, &json!(reason), &json!(code)), "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(text), "{answer}");
    }
    let response = client.send(Method::POST, CONFIG_MAPS, "{not json").await;
    assert_eq!(response.status(), 400);
    // Groups that nobody serves are refused in plain text.
    let response = client.send(Method::POST, "/apis/none.dev/v1/things", "{}").await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (404, &"text/plain; charset=utf-8".parse().unwrap())
    );
    let mut labelled = config_map("labels");
    labelled["metadata"]["labels"] = json!({"a b": "c", "ok": "not ok!"});
    let (status, answer) = client.post(CONFIG_MAPS, &labelled).await;
    assert_eq!((status, answer["details"]["causes"].as_array().unwrap().len()), (422, 2));
    let mut big = config_map("big");
    big["data"]["a"] = json!("x".repeat(1_048_577));
    assert_eq!(client.post(CONFIG_MAPS, &big).await.0, 422);
    let mut huge = package("huge");
    huge["spec"]["image"] = json!("x".repeat(1_600_000));
    assert_eq!(client.post(PACKAGES, &huge).await.0, 413);
    huge["spec"]["image"] = json!("x".repeat(4_000_000));
    assert_eq!(client.post(PACKAGES, &huge).await.0, 413);
}

#[tokio::test]
async fn only_known_callers_come_in() {
    let world = World::start().await;
    let mut nobody = world.bare(Protocol::Http1, None).await;
    let (status, answer) = nobody.get(CONFIG_MAPS).await;
    assert_eq!((status, &answer["reason"]), (401, &json!("Unauthorized")));
    assert_eq!(nobody.send(Method::GET, "/readyz", "").await.status(), 200);
    let mut wrong = world.bare(Protocol::Http1, None).await.with_token("wrong");
    assert_eq!(wrong.get(CONFIG_MAPS).await.0, 401);
    let pair = world.authority.client("system:node:a", &["system:nodes", "extra"]).unwrap();
    let mut node = world.bare(Protocol::Http2, Some(&pair)).await;
    assert_eq!(node.get(CONFIG_MAPS).await.0, 200);
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let (status, review) = node.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await;
    assert_eq!(status, 201);
    assert_eq!(review["status"]["userInfo"]["username"], json!("system:node:a"));
    assert_eq!(review["status"]["userInfo"]["groups"], json!(["system:nodes", "extra", "system:authenticated"]));
}

#[tokio::test]
async fn finalizers_hold_and_preconditions_guard_a_deletion() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let mut held = package("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let (_, created) = client.post(PACKAGES, &held).await;
    let one = format!("{PACKAGES}/held");
    let guard = json!({"preconditions": {"uid": "another"}});
    let (status, answer) = client.call(Method::DELETE, &one, Some(&guard)).await;
    assert_eq!((status, &answer["reason"]), (409, &json!("Conflict")));
    let (status, waiting) = client.delete(&one).await;
    assert_eq!(status, 200);
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    let (_, again) = client.delete(&one).await;
    assert_eq!(revision(&again), revision(&waiting), "deleting twice changes nothing");
    let bare = json!({"metadata": {"finalizers": null}});
    let (status, last) = client.patch(&one, "application/merge-patch+json", &bare).await;
    assert_eq!((status, &last["metadata"]["uid"]), (200, &created["metadata"]["uid"]));
    assert_eq!(client.get(&one).await.0, 404);
}

#[tokio::test]
async fn dependents_follow_their_owner() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    for (policy, survives) in [("Background", false), ("Foreground", false), ("Orphan", true)] {
        let (_, owner) = client.post(PACKAGES, &package("owner")).await;
        let mut child = config_map("child");
        child["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "longhaul.dev/v1", "kind": "Package", "name": "owner", "uid": owner["metadata"]["uid"],
        }]);
        assert_eq!(client.post(CONFIG_MAPS, &child).await.0, 201);
        client.delete(&format!("{PACKAGES}/owner?propagationPolicy={policy}")).await;
        until(&mut client, &format!("{PACKAGES}/owner"), 404).await;
        if survives {
            let (_, child) = client.get(&format!("{CONFIG_MAPS}/child")).await;
            let owners = child["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len);
            assert_eq!((owners, &child["kind"]), (0, &json!("ConfigMap")));
        } else {
            until(&mut client, &format!("{CONFIG_MAPS}/child"), 404).await;
        }
    }
}

#[tokio::test]
async fn a_namespace_goes_with_its_content() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}});
    let (_, created) = client.post("/api/v1/namespaces", &namespace).await;
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], json!("gone"));
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let maps = "/api/v1/namespaces/gone/configmaps";
    client.post(maps, &held).await;
    client.post(maps, &config_map("free")).await;
    let (_, terminating) = client.delete("/api/v1/namespaces/gone").await;
    assert_eq!(terminating["status"]["phase"], json!("Terminating"));
    until(&mut client, &format!("{maps}/free"), 404).await;
    let (status, refused) = client.post(maps, &config_map("late")).await;
    assert_eq!((status, &refused["reason"]), (403, &json!("Forbidden")));
    assert_eq!(client.get("/api/v1/namespaces/gone").await.0, 200, "the held object keeps it");
    let bare = json!({"metadata": {"finalizers": null}});
    client.patch(&format!("{maps}/held"), "application/merge-patch+json", &bare).await;
    until(&mut client, "/api/v1/namespaces/gone", 404).await;
}

#[tokio::test]
async fn a_definition_makes_a_resource_and_takes_it_away() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let mut definition = crate::package_definition();
    definition["metadata"]["name"] = json!("widgets.example.com");
    definition["spec"]["group"] = json!("example.com");
    definition["spec"]["names"] = json!({"plural": "widgets", "kind": "Widget"});
    definition["spec"]["scope"] = json!("Cluster");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(client.get("/apis/example.com/v1/widgets").await.0, 404);
    assert_eq!(client.post(definitions, &definition).await.0, 201);
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    assert_eq!(client.post("/apis/example.com/v1/widgets", &widget).await.0, 201);
    let (_, list) = client.get("/apis/example.com/v1").await;
    assert_eq!(list["resources"][0]["name"], json!("widgets"));
    client.delete(&format!("{definitions}/widgets.example.com")).await;
    until(&mut client, "/apis/example.com/v1/widgets", 404).await;
    definition["metadata"]["name"] = json!("other.example.com");
    let (status, refused) = client.post(definitions, &definition).await;
    assert_eq!((status, &refused["reason"]), (422, &json!("Invalid")));
}

#[tokio::test]
async fn pages_are_one_snapshot_and_expire() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    for index in 0..5 {
        client.post(CONFIG_MAPS, &config_map(&format!("m{index}"))).await;
    }
    let (_, first) = client.get(&format!("{CONFIG_MAPS}?limit=2")).await;
    assert_eq!((first["items"].as_array().unwrap().len(), &first["metadata"]["remainingItemCount"]), (2, &json!(3)));
    client.delete(&format!("{CONFIG_MAPS}/m2")).await;
    client.post(CONFIG_MAPS, &config_map("m25")).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (_, second) = client.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await;
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let names: Vec<&str> =
        second["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["m2", "m3"], "the snapshot does not see the later writes");

    world.server.compact(world.server.revision());
    let (status, expired) = client.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await;
    assert_eq!((status, &expired["reason"]), (410, &json!("Expired")));
    let fresh = expired["metadata"]["continue"].as_str().unwrap();
    let (status, rest) = client.get(&format!("{CONFIG_MAPS}?continue={fresh}")).await;
    let names: Vec<&str> =
        rest["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!((status, names), (200, vec!["m25", "m3", "m4"]), "the second token goes on with the present");
    assert_eq!(client.get(&format!("{CONFIG_MAPS}?continue=nonsense")).await.0, 400);
}

#[tokio::test]
async fn the_rules_of_resource_versions_in_lists() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let (_, one) = client.post(CONFIG_MAPS, &config_map("one")).await;
    client.post(CONFIG_MAPS, &config_map("two")).await;
    let (old, now) = (revision(&one), world.server.revision());
    let future = now + 10;
    for (query, status, items) in [
        (String::new(), 200, 2),
        ("resourceVersion=0".to_owned(), 200, 2),
        (format!("resourceVersion={old}"), 200, 2),
        (format!("resourceVersion={old}&limit=5"), 200, 1),
        (format!("resourceVersion={old}&resourceVersionMatch=Exact"), 200, 1),
        (format!("resourceVersion={old}&resourceVersionMatch=NotOlderThan"), 200, 2),
        (format!("resourceVersion={future}"), 504, 0),
        (format!("resourceVersion={future}&resourceVersionMatch=Exact"), 504, 0),
        ("resourceVersion=0&resourceVersionMatch=Exact".to_owned(), 422, 0),
        ("resourceVersionMatch=Exact".to_owned(), 422, 0),
        ("resourceVersion=x".to_owned(), 400, 0),
    ] {
        let (code, list) = client.get(&format!("{CONFIG_MAPS}?{query}")).await;
        let count = list["items"].as_array().map_or(0, Vec::len);
        assert_eq!((code, count), (status, items), "{query}: {list}");
        if status == 504 {
            assert_eq!(list["details"]["causes"][0]["reason"], json!("ResourceVersionTooLarge"));
        }
    }
    world.server.compact(now);
    let (code, list) = client.get(&format!("{CONFIG_MAPS}?resourceVersion={old}&resourceVersionMatch=Exact")).await;
    assert_eq!((code, &list["reason"]), (410, &json!("Expired")));
}

#[tokio::test]
async fn every_patch_format() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "one", "image": "i:1"}]},
        }},
    });
    let (_, created) = client.post(deployments, &deployment).await;
    assert_eq!(created["spec"]["replicas"], json!(1), "defaults are filled in");
    let web = format!("{deployments}/web");
    let strategic = json!({"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "i:2"}]}}}});
    let (status, patched) = client.patch(&web, "application/strategic-merge-patch+json", &strategic).await;
    assert_eq!((status, patched["spec"]["template"]["spec"]["containers"].as_array().unwrap().len()), (200, 2));
    let operations = json!([
        {"op": "test", "path": "/spec/replicas", "value": 1}, {"op": "replace", "path": "/spec/replicas", "value": 4},
    ]);
    let (_, patched) = client.patch(&web, "application/json-patch+json", &operations).await;
    assert_eq!(patched["spec"]["replicas"], json!(4));
    let (status, refused) = client.patch(&web, "application/json-patch+json", &operations).await;
    assert_eq!((status, &refused["reason"]), (422, &json!("Invalid")));
    let selector = json!({"spec": {"selector": {"matchLabels": {"a": "c"}}}});
    let (status, refused) = client.patch(&web, "application/merge-patch+json", &selector).await;
    assert_eq!(status, 422);
    assert!(refused["message"].as_str().unwrap().contains("field is immutable"), "{refused}");
    let (status, _) =
        client.patch(&format!("{PACKAGES}/x"), "application/strategic-merge-patch+json", &strategic).await;
    assert_eq!(status, 415, "custom resources have no strategic merge");
    let (_, scale) = client.get(&format!("{web}/scale")).await;
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(4)));
    let (status, scale) =
        client.patch(&format!("{web}/scale"), "application/merge-patch+json", &json!({"spec": {"replicas": 7}})).await;
    assert_eq!((status, &scale["spec"]["replicas"]), (200, &json!(7)));
    let (_, dry) = client
        .patch(&format!("{web}?dryRun=All"), "application/merge-patch+json", &json!({"spec": {"replicas": 9}}))
        .await;
    assert_eq!(dry["spec"]["replicas"], json!(9));
    assert_eq!(client.get(&web).await.1["spec"]["replicas"], json!(7), "a dry run writes nothing");
}

#[tokio::test]
async fn server_side_apply_owns_fields() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let apply = "application/apply-patch+yaml";
    let intent =
        |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned"}, "data": data});
    let path = format!("{CONFIG_MAPS}/owned");
    let (status, refused) = client.patch(&path, apply, &intent(json!({"a": "1"}))).await;
    assert_eq!((status, &refused["reason"]), (422, &json!("Invalid")), "a field manager is required");
    let (status, created) =
        client.patch(&format!("{path}?fieldManager=one"), apply, &intent(json!({"a": "1", "b": "1"}))).await;
    assert_eq!(status, 201, "{created}");
    assert_eq!(created["metadata"]["managedFields"][0]["manager"], json!("one"));
    let (status, conflict) = client.patch(&format!("{path}?fieldManager=two"), apply, &intent(json!({"a": "2"}))).await;
    assert_eq!((status, &conflict["reason"]), (409, &json!("Conflict")));
    let cause = &conflict["details"]["causes"][0];
    assert_eq!((&cause["field"], &cause["message"]), (&json!(".data.a"), &json!("conflict with \"one\"")));
    let (status, forced) =
        client.patch(&format!("{path}?fieldManager=two&force=true"), apply, &intent(json!({"a": "2"}))).await;
    assert_eq!((status, &forced["data"]), (200, &json!({"a": "2", "b": "1"})));
    let (_, dropped) = client.patch(&format!("{path}?fieldManager=one"), apply, &intent(json!({"c": "1"}))).await;
    assert_eq!(dropped["data"], json!({"a": "2", "c": "1"}), "b was one's alone, a is two's now");
    let (_, same) = client.patch(&format!("{path}?fieldManager=one"), apply, &intent(json!({"c": "1"}))).await;
    assert_eq!(revision(&same), revision(&dropped), "applying the same again is no write");
}

#[tokio::test]
async fn other_representations() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    client.post(PACKAGES, &package("one")).await;
    client.accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let (_, table) = client.get(PACKAGES).await;
    assert_eq!((&table["kind"], &table["columnDefinitions"][1]["name"]), (&json!("Table"), &json!("Image")));
    assert_eq!(table["rows"][0]["cells"], json!(["one", "a:1"]));
    client.accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let (_, partial) = client.get(PACKAGES).await;
    assert_eq!(partial["kind"], json!("PartialObjectMetadataList"));
    assert_eq!((&partial["items"][0]["metadata"]["name"], partial["items"][0].get("spec")), (&json!("one"), None));
    client.accept = "application/vnd.kubernetes.protobuf";
    assert_eq!(client.get(PACKAGES).await.0, 406);
}

#[tokio::test]
async fn generated_names_and_selectors_of_a_collection() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    for tier in ["front", "back", "front"] {
        let mut map = config_map("x");
        map["metadata"] = json!({"generateName": "gen-", "labels": {"tier": tier}});
        let (status, created) = client.post(CONFIG_MAPS, &map).await;
        assert_eq!((status, created["metadata"]["name"].as_str().unwrap().len()), (201, 9));
    }
    let (_, front) = client.get(&format!("{CONFIG_MAPS}?labelSelector=tier%3Dfront")).await;
    assert_eq!(front["items"].as_array().unwrap().len(), 2);
    let (status, refused) = client.get(&format!("{CONFIG_MAPS}?fieldSelector=spec.x%3D1")).await;
    assert_eq!((status, &refused["message"]), (400, &json!("field label not supported: spec.x")));
    client.delete(&format!("{CONFIG_MAPS}?labelSelector=tier%3Dfront")).await;
    let (_, left) = client.get(CONFIG_MAPS).await;
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
    assert_eq!(left["items"][0]["metadata"]["labels"]["tier"], json!("back"));
}

#[tokio::test]
async fn namespaces_are_furnished_when_that_is_wanted() {
    let world = World::with(|config| config.furnished_namespaces = true).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}});
    client.post("/api/v1/namespaces", &namespace).await;
    for name in ["default", "new"] {
        let place = format!("/api/v1/namespaces/{name}");
        until(&mut client, &format!("{place}/serviceaccounts/default"), 200).await;
        let path = format!("{place}/configmaps/kube-root-ca.crt");
        let map = until(&mut client, &path, 200).await;
        assert_eq!(map["data"]["ca.crt"], json!(world.authority.ca_pem()));
        assert_eq!(client.delete(&path).await.0, 200);
        let again = until(&mut client, &path, 200).await;
        assert_ne!(again["metadata"]["uid"], map["metadata"]["uid"], "it is made again");
    }
    assert_eq!(client.delete("/api/v1/namespaces/new").await.0, 200);
    until(&mut client, "/api/v1/namespaces/new", 404).await;
    let plain = World::start().await;
    let mut client = plain.client(Protocol::Http1, "harness").await;
    assert_eq!(client.get(CONFIG_MAPS).await.1["items"], json!([]));
}

#[tokio::test]
async fn only_a_dependent_that_says_so_holds_its_owner_back() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    for blocks in [false, true] {
        let (owner, dependent) = (format!("owner-{blocks}"), format!("dependent-{blocks}"));
        let (_, made) = client.post(CONFIG_MAPS, &config_map(&owner)).await;
        let mut body = config_map(&dependent);
        body["metadata"]["finalizers"] = json!(["example.com/hold"]);
        body["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": made["metadata"]["uid"],
            "blockOwnerDeletion": blocks,
        }]);
        assert_eq!(client.post(CONFIG_MAPS, &body).await.0, 201);
        client.delete(&format!("{CONFIG_MAPS}/{owner}?propagationPolicy=Foreground")).await;
        let deadline = Instant::now() + PATIENCE;
        // The dependent is marked in the same step that decides about the owner.
        while client.get(&format!("{CONFIG_MAPS}/{dependent}")).await.1["metadata"].get("deletionTimestamp").is_none()
            || (!blocks && client.get(&format!("{CONFIG_MAPS}/{owner}")).await.0 == 200)
        {
            assert!(Instant::now() < deadline, "blockOwnerDeletion: {blocks}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if blocks {
            let (status, waiting) = client.get(&format!("{CONFIG_MAPS}/{owner}")).await;
            assert_eq!((status, &waiting["metadata"]["finalizers"]), (200, &json!(["foregroundDeletion"])));
        }
    }
}
