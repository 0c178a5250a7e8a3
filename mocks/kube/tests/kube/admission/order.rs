//! Tests of the order in a write: mutating webhooks, the server's own checks, validating webhooks, the store.

use super::*;

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
           "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

/// Operation and object name of each call of the webhook since the last call of this function, in order.
fn take_calls(hook: &Webhook) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let one = |(uri, review): (String, Value)| {
        let (path, request) = (uri.split('?').next().unwrap().to_owned(), &review["request"]);
        format!("{path} {} {}", text(&request["operation"]), text(&request["name"]))
    };
    hook.reviews().into_iter().map(one).collect()
}

#[tokio::test]
async fn an_invalid_object_reaches_mutating_webhooks_only() {
    let script: Script = Arc::new(|path, request| match path {
        "/mutate" if request["request"]["object"]["data"]["mend"] == "yes" => {
            Some(patched(request, &json!([{"op": "add", "path": "/metadata/name", "value": "mended"}])))
        }
        _ => Some(allowed(request)),
    });
    let (world, hook) = asking(script, "*", &[""], &["configmaps"]).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let (status, refused) = client.post(CONFIG_MAPS, &config_map("Not_A_Name")).await;
    assert_eq!((status, &refused["reason"]), (422, &json!("Invalid")), "{refused}");
    assert_eq!(take_calls(&hook), ["/mutate CREATE Not_A_Name"]);
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"mend": "yes"}});
    let (status, made) = client.post(CONFIG_MAPS, &nameless).await;
    assert_eq!((status, &made["metadata"]["name"]), (201, &json!("mended")), "what is mended is valid: {made}");
    assert_eq!(take_calls(&hook), ["/mutate CREATE -", "/validate CREATE mended"]);

    let mut fixed = config_map("fixed");
    fixed["immutable"] = json!(true);
    assert_eq!(client.post(CONFIG_MAPS, &fixed).await.0, 201);
    take_calls(&hook);
    fixed["data"] = json!({"a": "2"});
    assert_eq!(client.put(&format!("{CONFIG_MAPS}/fixed"), &fixed).await.0, 422);
    assert_eq!(client.patch(&format!("{CONFIG_MAPS}/fixed"), MERGE, &json!({"data": {"a": "2"}})).await.0, 422);
    assert_eq!(take_calls(&hook), ["/mutate UPDATE fixed", "/mutate UPDATE fixed"]);
}

/// A new object gets its uid and its generated name only after the mutating webhooks.
#[tokio::test]
async fn a_generated_name_is_seen_by_validating_webhooks_only() {
    let (world, hook) = asking(allowing(), "*", &[""], &["configmaps"]).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let generated = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"generateName": "g-", "uid": "mine", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let (status, made) = client.post(CONFIG_MAPS, &generated).await;
    assert_eq!(status, 201, "{made}");
    let reviews = hook.reviews();
    let requests: Vec<&Value> = reviews.iter().map(|(_, review)| &review["request"]).collect();
    assert_eq!(requests.len(), 2);
    let before = &requests[0]["object"]["metadata"];
    assert_eq!((requests[0].get("name"), before.get("name"), before.get("uid")), (None, None, None), "{before}");
    assert_eq!((&before["namespace"], before.get("creationTimestamp")), (&json!("default"), None));
    assert_eq!(before["managedFields"][0]["manager"], "test", "who writes is known before");
    let after = &requests[1]["object"]["metadata"];
    assert_eq!(*after, {
        let mut stored = made["metadata"].clone();
        stored.as_object_mut().unwrap().remove("resourceVersion");
        stored
    });
    assert_eq!(requests[1]["name"], made["metadata"]["name"]);
}

#[tokio::test]
async fn what_only_the_store_knows_comes_last() {
    let (world, hook) = asking(allowing(), "*", &[""], &["configmaps"]).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("a")).await.0, 201);
    take_calls(&hook);
    for path in [CONFIG_MAPS.to_owned(), format!("{CONFIG_MAPS}?dryRun=All")] {
        assert_eq!(client.post(&path, &config_map("a")).await.1["reason"], "AlreadyExists");
        assert_eq!(take_calls(&hook), ["/mutate CREATE a", "/validate CREATE a"]);
    }
    let mut numbered = config_map("b");
    numbered["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(client.post(CONFIG_MAPS, &numbered).await.0, 500);
    assert_eq!(take_calls(&hook), ["/mutate CREATE b", "/validate CREATE b"]);

    // A stale revision is found between the two kinds of webhooks, another uid before both.
    let mut stale = config_map("a");
    stale["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(client.put(&format!("{CONFIG_MAPS}/a"), &stale).await.1["reason"], "Conflict");
    let reviews = hook.reviews();
    assert_eq!(reviews.len(), 1);
    let mut shown = reviews[0].1["request"]["object"]["metadata"].clone();
    shown.as_object_mut().unwrap().remove("managedFields");
    assert_eq!(shown, json!({"name": "a", "resourceVersion": "1"}), "what was sent");
    let mut other = config_map("a");
    other["metadata"]["uid"] = json!("another");
    assert_eq!(client.put(&format!("{CONFIG_MAPS}/a"), &other).await.1["reason"], "Conflict");
    assert_eq!(take_calls(&hook), Vec::<String>::new());
    assert_eq!(client.put(&format!("{CONFIG_MAPS}/none"), &config_map("none")).await.0, 404);
    assert_eq!(take_calls(&hook), Vec::<String>::new());
}

#[tokio::test]
async fn deletions_are_asked_about_as_often_as_they_are_decided() {
    let (world, hook) = asking(allowing(), "*", &[""], &["configmaps", "pods", "namespaces"]).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    for name in ["a", "b"] {
        assert_eq!(client.post(CONFIG_MAPS, &config_map(name)).await.0, 201);
    }
    take_calls(&hook);
    let another = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "another"}});
    let (status, _) = client.call(http::Method::DELETE, &format!("{CONFIG_MAPS}/a"), Some(&another)).await;
    assert_eq!((status, take_calls(&hook)), (409, Vec::new()));
    assert_eq!(client.delete(&format!("{CONFIG_MAPS}/a?dryRun=All")).await.0, 200);
    assert_eq!(take_calls(&hook), ["/mutate DELETE a", "/validate DELETE a"]);
    // The deletion of a collection names no object, and a dry run calls webhooks as well.
    for query in ["?dryRun=All", ""] {
        assert_eq!(client.delete(&format!("{CONFIG_MAPS}{query}")).await.0, 200);
        let each = ["/mutate DELETE -", "/validate DELETE -"];
        assert_eq!(take_calls(&hook), [each, each].concat());
    }

    // A pod is first marked and then removed, and webhooks are called for both.
    assert_eq!(client.post(PODS, &pod("p")).await.0, 201);
    hook.reviews();
    assert_eq!(client.delete(&format!("{PODS}/p")).await.0, 200);
    let marks: Vec<bool> = hook
        .reviews()
        .iter()
        .map(|(_, r)| r["request"]["oldObject"]["metadata"]["deletionTimestamp"].is_string())
        .collect();
    assert_eq!(marks, [false, false, true, true]);
    // For a pod with a grace period webhooks are called once; deleting it again is no new deletion.
    assert_eq!(client.post(PODS, &pod("q")).await.0, 201);
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "q"}, "target": {"kind": "Node", "name": "n"}});
    assert_eq!(client.post(&format!("{PODS}/q/binding"), &binding).await.0, 201);
    take_calls(&hook);
    assert_eq!(client.delete(&format!("{PODS}/q")).await.0, 200);
    assert_eq!(take_calls(&hook), ["/mutate DELETE q", "/validate DELETE q"]);
    assert_eq!(client.delete(&format!("{PODS}/q")).await.0, 200);
    assert_eq!(take_calls(&hook), Vec::<String>::new());
}

/// Webhooks see the body of a binding, eviction or token request as a created object, and not the pod or account in the
/// path.
#[tokio::test]
async fn bindings_evictions_and_token_requests_are_creations() {
    let script: Script = Arc::new(|path, request| match (path, &request["request"]["subResource"]) {
        ("/mutate", Value::String(what)) if what == "binding" => {
            Some(patched(request, &json!([{"op": "replace", "path": "/target/name", "value": "elsewhere"}])))
        }
        ("/mutate", Value::String(what)) if what == "token" => {
            Some(patched(request, &json!([{"op": "replace", "path": "/spec/expirationSeconds", "value": 700}])))
        }
        ("/validate", _) if request["request"]["object"]["metadata"]["name"] == "kept" => {
            Some(review(request, json!({"allowed": false, "status": {"code": 403, "message": "it stays"}})))
        }
        _ => Some(allowed(request)),
    });
    let (world, hook) = asking(script, "*", &[""], &["pods/binding", "pods/eviction", "serviceaccounts/token"]).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    for name in ["p", "kept"] {
        assert_eq!(client.post(PODS, &pod(name)).await.0, 201);
    }
    take_calls(&hook);
    let binding =
        json!({"metadata": {"name": "p", "annotations": {"why": "test"}}, "target": {"kind": "Node", "name": "n"}});
    let (status, done) = client.post(&format!("{PODS}/p/binding"), &binding).await;
    assert_eq!((status, &done["status"]), (201, &json!("Success")), "{done}");
    let (_, bound) = client.get(&format!("{PODS}/p")).await;
    assert_eq!(
        (&bound["spec"]["nodeName"], &bound["metadata"]["annotations"]["why"]),
        (&json!("elsewhere"), &json!("test"))
    );
    let reviews = hook.reviews();
    assert_eq!(reviews.len(), 2);
    for (_, review) in &reviews {
        let request = &review["request"];
        assert_eq!(request["kind"], json!({"group": "", "version": "v1", "kind": "Binding"}));
        assert_eq!((&request["requestKind"], &request["operation"]), (&request["kind"], &json!("CREATE")));
        assert_eq!(request["resource"], json!({"group": "", "version": "v1", "resource": "pods"}));
        assert_eq!((&request["subResource"], &request["name"]), (&json!("binding"), &json!("p")));
        assert_eq!((&request["oldObject"], &request["object"]["kind"]), (&Value::Null, &json!("Binding")));
    }
    let misnamed = client.post(&format!("{PODS}/kept/binding"), &binding).await;
    assert_eq!((misnamed.0, take_calls(&hook)), (400, vec!["/mutate CREATE kept".to_owned()]));

    let eviction = |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let (status, refused) = client.post(&format!("{PODS}/kept/eviction"), &eviction("kept")).await;
    assert_eq!((status, client.get(&format!("{PODS}/kept")).await.0), (403, 200), "{refused}");
    let reviews = hook.reviews();
    let kind = json!({"group": "policy", "version": "v1", "kind": "Eviction"});
    assert_eq!((reviews.len(), &reviews[1].1["request"]["kind"]), (2, &kind));
    let (status, _) = client.post(&format!("{PODS}/p/eviction?dryRun=All"), &eviction("p")).await;
    assert_eq!((status, client.get(&format!("{PODS}/p")).await.1["metadata"].get("deletionTimestamp")), (201, None));
    assert_eq!(take_calls(&hook), ["/mutate CREATE p", "/validate CREATE p"]);
    assert_eq!(client.post(&format!("{PODS}/p/eviction"), &eviction("p")).await.0, 201);
    assert_eq!(take_calls(&hook), ["/mutate CREATE p", "/validate CREATE p"], "nobody is asked about the deletion");
    assert!(client.get(&format!("{PODS}/p")).await.1["metadata"]["deletionTimestamp"].is_string());

    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    assert_eq!(client.post(accounts, &account).await.0, 201);
    let (status, made) =
        client.post(&format!("{accounts}/robot/token"), &json!({"spec": {"expirationSeconds": 600}})).await;
    assert_eq!((status, &made["spec"]["expirationSeconds"]), (201, &json!(700)), "{made}");
    let reviews = hook.reviews();
    let kind = json!({"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"});
    assert_eq!((reviews.len(), &reviews[0].1["request"]["kind"]), (2, &kind));
    assert_eq!(reviews[1].1["request"]["object"]["status"]["token"], "", "the token is not made before it is allowed");
}

/// The changes of a webhook have no owner, so that a later apply of these fields causes no conflict.
#[tokio::test]
async fn what_a_webhook_changes_belongs_to_nobody() {
    let script: Script = Arc::new(|path, request| match path {
        "/mutate" => Some(patched(request, &json!([{"op": "add", "path": "/data/injected", "value": "1"}]))),
        _ => Some(allowed(request)),
    });
    let (world, _hook) = asking(script, "*", &[""], &["configmaps"]).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("a")).await.0, 201);
    let changed = json!({"data": {"b": "2", "injected": null}});
    let (status, changed) = client.patch(&format!("{CONFIG_MAPS}/a"), MERGE, &changed).await;
    assert_eq!((status, &changed["data"]), (200, &json!({"a": "1", "b": "2", "injected": "1"})));
    let owned = &changed["metadata"]["managedFields"];
    assert_eq!(owned[0]["fieldsV1"]["f:data"].get("f:injected"), None, "{owned}");
    assert_eq!((owned.as_array().unwrap().len(), owned[0]["fieldsV1"]["f:data"].get("f:b")), (1, Some(&json!({}))));
}

/// While two services are admitted at the same time, each already has its own address, and no other service gets that
/// address.
#[tokio::test]
async fn an_address_is_reserved_while_its_service_is_admitted() {
    let (world, hook) = (World::start().await, Webhook::answering_together(allowing(), 2).await);
    let rules = json!({"rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}]});
    configure(&world, "ValidatingWebhookConfiguration", vec![hook.entry("/validate", &rules)]).await;
    let mut creations = JoinSet::new();
    for (name, wanted) in [("a", "10.96.7.7"), ("b", "10.96.7.8")] {
        let mut client = world.client(Protocol::Http1, "harness").await;
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"type": "NodePort", "clusterIP": wanted, "ports": [{"port": 80}]}});
        creations.spawn(async move { client.post("/api/v1/namespaces/default/services", &service).await });
    }
    let made = tokio::time::timeout(PATIENCE, creations.join_all()).await.unwrap();
    let ports: std::collections::BTreeSet<i64> =
        made.iter().map(|(_, service)| service["spec"]["ports"][0]["nodePort"].as_i64().unwrap()).collect();
    assert_eq!(
        (made.iter().map(|(status, _)| *status).collect::<Vec<_>>(), ports.len()),
        (vec![201, 201], 2),
        "{made:?}"
    );
    let seen = hook.reviews();
    assert!(seen.iter().all(|(_, r)| r["request"]["object"]["spec"]["ports"][0]["nodePort"].is_i64()), "{seen:?}");

    // The second service cannot have the address of the first one during its admission, however that ends.
    let mut same = JoinSet::new();
    for name in ["c", "d", "e"] {
        let mut client = world.client(Protocol::Http1, "harness").await;
        let wanted = if name == "e" { "10.96.9.8" } else { "10.96.9.9" };
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"clusterIP": wanted, "ports": [{"port": 80}]}});
        same.spawn(async move { client.post("/api/v1/namespaces/default/services", &service).await.0 });
    }
    let mut statuses = tokio::time::timeout(PATIENCE, same.join_all()).await.unwrap();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 201, 422]);
}

/// Two concurrent applies of a new object both succeed: one creates the object, and the fields of the other are merged
/// into the object.
#[tokio::test]
async fn an_apply_that_was_overtaken_is_merged() {
    let world = World::start().await;
    let hook = Webhook::answering_together(allowing(), 2).await;
    let creations = json!({"rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]});
    let (status, made) =
        configure(&world, "ValidatingWebhookConfiguration", vec![hook.entry("/both", &creations)]).await;
    assert_eq!(status, 201, "{made}");
    let mut one = world.client(Protocol::Http1, "harness").await;
    let mut two = world.client(Protocol::Http1, "harness").await;
    let intent =
        |key: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {key: "1"}});
    let path = |manager: &str| format!("{CONFIG_MAPS}/a?fieldManager={manager}");
    let (path_one, path_two, a, b) = (path("one"), path("two"), intent("a"), intent("b"));
    let ((first, _), (second, _)) = tokio::join!(one.patch(&path_one, APPLY, &a), two.patch(&path_two, APPLY, &b));
    let mut statuses = [first, second];
    statuses.sort_unstable();
    assert_eq!((statuses, hook.take_paths().len()), ([200, 201], 2));
    let (_, both) = one.get(&format!("{CONFIG_MAPS}/a")).await;
    assert_eq!(both["data"], json!({"a": "1", "b": "1"}));
    let mut managers: Vec<&str> = both["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    managers.sort_unstable();
    assert_eq!(managers, ["one", "two"]);
}

/// If an object is deleted during an apply, the apply creates the object again, because an apply describes the wanted
/// object and not a change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_apply_whose_object_is_deleted_meanwhile_makes_it_anew() {
    let world = World::start().await;
    // The update waits until the object is deleted, for which no webhook is called.
    let (asks, mut asked) = tokio::sync::mpsc::unbounded_channel();
    let (answers, gate) = std::sync::mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let script: Script = Arc::new(move |_, request| {
        if request["request"]["operation"] == "UPDATE" {
            asks.send(()).unwrap();
            tokio::task::block_in_place(|| gate.lock().unwrap().recv_timeout(PATIENCE)).unwrap();
        }
        Some(allowed(request))
    });
    let hook = Webhook::start(script).await;
    let rules = json!({"rules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]});
    configure(&world, "ValidatingWebhookConfiguration", vec![hook.entry("/validate", &rules)]).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let (_, first) = client.post(CONFIG_MAPS, &config_map("a")).await;
    let mut applier = world.client(Protocol::Http1, "subject").await;
    let intent = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "2"}});
    let path = format!("{CONFIG_MAPS}/a?fieldManager=one");
    let deleting = async {
        asked.recv().await.unwrap();
        assert_eq!(client.delete(&format!("{CONFIG_MAPS}/a")).await.0, 200);
        answers.send(()).unwrap();
    };
    let ((status, made), ()) = tokio::join!(applier.patch(&path, APPLY, &intent), deleting);
    assert_eq!((status, &made["data"]), (201, &json!({"b": "2"})), "{made}");
    assert_ne!(made["metadata"]["uid"], first["metadata"]["uid"]);
}
