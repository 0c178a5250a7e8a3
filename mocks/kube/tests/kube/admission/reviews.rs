//! Tests of webhooks for creations that store nothing: reviews, and bindings by `POST bindings`.

use super::*;

#[tokio::test]
async fn reviews_are_creations_that_have_no_answer_yet() {
    let script: Script = Arc::new(|path, request| match path {
        "/mutate" if request["request"]["resource"]["resource"] == "tokenreviews" => {
            Some(patched(request, &json!([{"op": "replace", "path": "/spec/token", "value": "harness-token"}])))
        }
        "/validate" if request["request"]["object"]["spec"]["user"] == "mallory" => {
            Some(review(request, json!({"allowed": false, "status": {"code": 403, "message": "not about mallory"}})))
        }
        _ => Some(allowed(request)),
    });
    let (world, hook) = asking(script, "CREATE", &["authorization.k8s.io", "authentication.k8s.io"], &["*"]).await;
    let mut client = world.client(Protocol::Http1, "subject").await;
    let (access, who) = ("/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1");
    let attributes = json!({"namespace": "default", "verb": "get", "resource": "pods"});
    let local = format!("{access}/namespaces/default/localsubjectaccessreviews");
    let unanswered = json!({"allowed": false});
    let cases = [
        (format!("{access}/subjectaccessreviews"), json!({"user": "u", "resourceAttributes": attributes}), &unanswered),
        (format!("{access}/selfsubjectaccessreviews"), json!({"resourceAttributes": attributes}), &unanswered),
        (local, json!({"user": "u", "resourceAttributes": attributes}), &unanswered),
        (
            format!("{access}/selfsubjectrulesreviews"),
            json!({"namespace": "default"}),
            &json!({"resourceRules": null, "nonResourceRules": null, "incomplete": false}),
        ),
        (format!("{who}/tokenreviews"), json!({"token": "x"}), &json!({"user": {}})),
        (format!("{who}/selfsubjectreviews"), Value::Null, &json!({"userInfo": {}})),
    ];
    for (path, spec, status) in &cases {
        let mut body = json!({});
        if !spec.is_null() {
            body["spec"] = spec.clone();
        }
        let (code, answer) = client.post(path, &body).await;
        assert_eq!(code, 201, "{answer}");
        assert_ne!(&answer["status"], *status, "{answer}");
        let reviews = hook.reviews();
        assert_eq!(reviews.len(), 2, "{path}");
        let resource = path.rsplit('/').next().unwrap();
        for (_, review) in &reviews {
            let request = &review["request"];
            assert_eq!((&request["resource"]["resource"], &request["operation"]), (&json!(resource), &json!("CREATE")));
            assert_eq!((&request["userInfo"]["username"], request.get("name")), (&json!("subject"), None));
            assert_eq!(&&request["object"]["status"], status, "{path}");
            assert_eq!(request["object"]["kind"], request["kind"]["kind"]);
        }
        if resource == "tokenreviews" {
            assert_eq!(answer["status"]["user"]["username"], "harness", "the token is the webhook's");
        }
    }
    let about = json!({"spec": {"user": "mallory", "resourceAttributes": attributes}});
    let (code, refused) = client.post(&cases[0].0, &about).await;
    assert_eq!((code, hook.take_paths().len()), (403, 2), "{refused}");
    // An invalid question goes only to mutating webhooks, which could correct it.
    let (code, refused) = client.post(&cases[0].0, &json!({"spec": {"user": "u"}})).await;
    assert_eq!((code, &refused["reason"]), (422, &json!("Invalid")), "{refused}");
    assert_eq!(refused["details"].get("kind"), None);
    assert_eq!(hook.take_paths(), ["/mutate"]);
    let (code, refused) = client.post(&cases[3].0, &json!({})).await;
    assert_eq!((code, &refused["message"]), (400, &json!("no namespace on request")));
}

#[tokio::test]
async fn a_binding_may_name_its_pod_in_its_body() {
    let (world, hook) = asking(allowing(), "CREATE", &[""], &["*"]).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(client.post(PODS, &pod).await.0, 201);
    hook.take_paths();
    let bindings = "/api/v1/namespaces/default/bindings";
    let binding = |name: &str| json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}});
    let (status, done) = client.post(&format!("{bindings}?dryRun=All"), &binding("p")).await;
    assert_eq!((status, &done["status"]), (201, &json!("Success")), "{done}");
    assert_eq!(client.get(&format!("{PODS}/p")).await.1["spec"].get("nodeName"), None);
    hook.take_paths();
    assert_eq!(client.post(bindings, &binding("p")).await.0, 201);
    assert_eq!(client.get(&format!("{PODS}/p")).await.1["spec"]["nodeName"], "n");
    let reviews = hook.reviews();
    assert_eq!(reviews.len(), 2);
    for (_, review) in &reviews {
        let request = &review["request"];
        assert_eq!(request["resource"], json!({"group": "", "version": "v1", "resource": "bindings"}));
        assert_eq!((&request["name"], request.get("subResource")), (&json!("p"), None));
        assert_eq!(request["kind"], json!({"group": "", "version": "v1", "kind": "Binding"}));
    }
}
