//! Tests of the verbs, and of the rules of objects.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::client::{Client, PATIENCE, Protocol, World};
use crate::{CONFIG_MAPS, DEFINITIONS, MERGE, PACKAGES, config_map, package, revision};

/// Repeats a GET until its status is `wanted`; returns the body.
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
        let (_, patched) = client.patch(&format!("{one}/status"), MERGE, &status_patch).await;
        assert_eq!((&patched["status"]["phase"], &patched["spec"]["image"]), (&json!("Ready"), &json!("a:2")));
        assert_eq!(patched["metadata"]["generation"], json!(2), "status is no new generation");

        let (status, same) = client.patch(&one, MERGE, &json!({"spec": {"image": "a:2"}})).await;
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
    let (_world, mut client) = World::alone().await;
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
async fn dependents_follow_their_owner() {
    let (_world, mut client) = World::alone().await;
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

/// A client with an old state adds an owner that is gone: the reference is removed, and an object without other owners is
/// deleted. An owner of an unknown kind stays.
#[tokio::test]
async fn an_owner_that_is_gone_is_not_added() {
    let (_world, mut client) = World::alone().await;
    let owner =
        |kind: &str, name: &str, uid: &Value| json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid});
    let (_, alive) = client.post(CONFIG_MAPS, &config_map("alive")).await;
    let alive = owner("ConfigMap", "alive", &alive["metadata"]["uid"]);
    let (gone, unknown) = (owner("ConfigMap", "gone", &json!("g")), owner("Unknown", "any", &json!("u")));
    for (name, added) in [("shared", json!([alive, gone, unknown])), ("orphaned", json!([gone]))] {
        assert_eq!(client.post(CONFIG_MAPS, &config_map(name)).await.0, 201);
        let adopted = json!({"metadata": {"ownerReferences": added}});
        assert_eq!(client.patch(&format!("{CONFIG_MAPS}/{name}"), MERGE, &adopted).await.0, 200);
    }
    until(&mut client, &format!("{CONFIG_MAPS}/orphaned"), 404).await;
    let (_, shared) = client.get(&format!("{CONFIG_MAPS}/shared")).await;
    assert_eq!(shared["metadata"]["ownerReferences"], json!([alive, unknown]));
}

/// After a jump of the server's clock, new times are ahead, and earlier ones stay.
#[tokio::test]
async fn the_times_of_objects_jump_with_the_clock_of_the_server() {
    let (world, mut client) = World::alone().await;
    let created = |object: &Value| object["metadata"]["creationTimestamp"].as_str().unwrap().to_owned();
    let (_, before) = client.post(CONFIG_MAPS, &config_map("before")).await;
    world.server.jump(Duration::from_hours(1));
    let (_, after) = client.post(CONFIG_MAPS, &config_map("after")).await;
    let [one, other] = [&before, &after].map(|object| created(object).parse::<jiff::Timestamp>().unwrap());
    let between = other.duration_since(one).as_secs();
    assert!((3600..3660).contains(&between), "{between} s");
    let (_, again) = client.get(&format!("{CONFIG_MAPS}/before")).await;
    assert_eq!(created(&again), created(&before));
}

#[tokio::test]
async fn a_namespace_goes_with_its_content() {
    let (_world, mut client) = World::alone().await;
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
    client.patch(&format!("{maps}/held"), MERGE, &bare).await;
    until(&mut client, "/api/v1/namespaces/gone", 404).await;
}

#[tokio::test]
async fn a_definition_makes_a_resource_and_takes_it_away() {
    let (_world, mut client) = World::alone().await;
    let mut definition = crate::package_definition();
    definition["metadata"]["name"] = json!("widgets.example.com");
    definition["spec"]["group"] = json!("example.com");
    definition["spec"]["names"] = json!({"plural": "widgets", "kind": "Widget"});
    definition["spec"]["scope"] = json!("Cluster");
    assert_eq!(client.get("/apis/example.com/v1/widgets").await.0, 404);
    assert_eq!(client.post(DEFINITIONS, &definition).await.0, 201);
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    assert_eq!(client.post("/apis/example.com/v1/widgets", &widget).await.0, 201);
    let (_, list) = client.get("/apis/example.com/v1").await;
    assert_eq!(list["resources"][0]["name"], json!("widgets"));
    client.delete(&format!("{DEFINITIONS}/widgets.example.com")).await;
    until(&mut client, "/apis/example.com/v1/widgets", 404).await;
    definition["metadata"]["name"] = json!("other.example.com");
    let (status, refused) = client.post(DEFINITIONS, &definition).await;
    assert_eq!((status, &refused["reason"]), (422, &json!("Invalid")));
}

#[tokio::test]
async fn pages_are_one_snapshot_and_expire() {
    let (world, mut client) = World::alone().await;
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
    let (_world, mut client) = World::alone().await;
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

/// Objects that own each other are all deleted in the foreground: like the real collector, the server unblocks one of
/// them.
#[tokio::test]
async fn a_circle_of_owners_goes_in_the_foreground() {
    let (_world, mut client) = World::alone().await;
    for names in [&["a", "b"][..], &["x", "y", "z"]] {
        let mut uids = Vec::new();
        for name in names {
            uids.push(client.post(CONFIG_MAPS, &config_map(name)).await.1["metadata"]["uid"].clone());
        }
        for (index, name) in names.iter().enumerate() {
            let owner = (index + names.len() - 1) % names.len();
            let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": names[owner], "uid": uids[owner],
                                   "blockOwnerDeletion": true});
            let owned = json!({"metadata": {"ownerReferences": [reference]}});
            assert_eq!(client.patch(&format!("{CONFIG_MAPS}/{name}"), MERGE, &owned).await.0, 200);
        }
        client.delete(&format!("{CONFIG_MAPS}/{}?propagationPolicy=Foreground", names[0])).await;
        for name in names {
            until(&mut client, &format!("{CONFIG_MAPS}/{name}"), 404).await;
        }
    }
}
