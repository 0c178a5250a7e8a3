//! Tests of which requests match a webhook, with edge cases of the webhook's rules, and of the content of
//! `AdmissionReview`s.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::{Script, Webhook, allowed, allowing, configure, patched, review};
use crate::client::{Protocol, World};
use crate::{CONFIG_MAPS, DEFINITIONS, MERGE, PACKAGES, config_map, package};

fn rule(group: &str, version: &str, resource: &str, operation: &str) -> Value {
    json!({"operations": [operation], "apiGroups": [group], "apiVersions": [version], "resources": [resource]})
}

fn with_rule(hook: &Webhook, path: &str, rule: &Value, more: &Value) -> Value {
    let mut entry = hook.entry(path, more);
    entry["rules"] = json!([rule]);
    entry
}

/// A custom resource definition with two served versions, of which only one has subresources, and with a version that
/// is not served.
fn gadgets() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let versions = json!([
        {"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}, "scale": scale}},
        {"name": "v2", "served": true, "storage": false, "schema": schema},
        {"name": "v3", "served": false, "storage": false, "schema": schema},
    ]);
    crate::definition("gadgets", "Gadget", &versions)
}

/// A webhook for another version sees the subresources of that version, and no requests through a version that is not
/// served.
#[tokio::test]
async fn equivalents_are_served_and_have_the_subresource() {
    let (world, hook) = (World::start().await, Webhook::start(allowing()).await);
    let mut client = world.client(Protocol::Http1, "harness").await;
    assert_eq!(client.post(DEFINITIONS, &gadgets()).await.0, 201);
    let webhooks = vec![
        with_rule(&hook, "/v2", &rule("test.dev", "v2", "gadgets", "*"), &json!({})),
        with_rule(&hook, "/v3", &rule("test.dev", "v3", "gadgets", "*"), &json!({})),
        with_rule(&hook, "/v2-all", &rule("test.dev", "v2", "gadgets/*", "*"), &json!({})),
        with_rule(&hook, "/v1-status", &rule("test.dev", "v1", "gadgets/status", "*"), &json!({})),
        with_rule(&hook, "/v1-scale", &rule("test.dev", "v1", "gadgets/scale", "*"), &json!({})),
    ];
    let (status, made) = configure(&world, "ValidatingWebhookConfiguration", webhooks).await;
    assert_eq!(status, 201, "{made}");
    let gadgets = "/apis/test.dev/v1/namespaces/default/gadgets";
    let gadget =
        json!({"apiVersion": "test.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"replicas": 1}});
    assert_eq!(client.post(gadgets, &gadget).await.0, 201);
    assert_eq!(hook.take_paths(), ["/v2", "/v2-all"]);
    let (status, _) = client.patch(&format!("{gadgets}/g/status"), MERGE, &json!({"status": {"replicas": 1}})).await;
    assert_eq!((status, hook.take_paths()), (200, vec!["/v1-status".to_owned()]));
    let (status, scaled) = client.patch(&format!("{gadgets}/g/scale"), MERGE, &json!({"spec": {"replicas": 2}})).await;
    assert_eq!((status, hook.take_paths()), (200, vec!["/v1-scale".to_owned()]), "{scaled}");
}

/// The webhook sees the old object in the same version as the new object.
#[tokio::test]
async fn the_old_object_is_converted_as_well() {
    let (world, hook) = (World::start().await, Webhook::start(allowing()).await);
    let webhooks = vec![with_rule(&hook, "/newer", &rule("events.k8s.io", "v1", "events", "UPDATE"), &json!({}))];
    configure(&world, "ValidatingWebhookConfiguration", webhooks).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "message": "old", "reason": "Why",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "type": "Normal",
    });
    let events = "/api/v1/namespaces/default/events";
    assert_eq!(client.post(events, &event).await.0, 201);
    assert_eq!(client.patch(&format!("{events}/e"), MERGE, &json!({"message": "new"})).await.0, 200);
    let reviews = hook.reviews();
    let request = &reviews[0].1["request"];
    for (object, text) in [("object", "new"), ("oldObject", "old")] {
        assert_eq!(request[object]["apiVersion"], json!("events.k8s.io/v1"), "{object}");
        assert_eq!((&request[object]["note"], request[object].get("message")), (&json!(text), None), "{object}");
    }
}

#[tokio::test]
async fn scopes_and_subresources_of_rules_are_kept() {
    let (world, hook) = (World::start().await, Webhook::start(allowing()).await);
    let scoped = |path: &str, scope: &str| {
        let mut rule = rule("", "v1", "*", "*");
        rule["scope"] = json!(scope);
        with_rule(&hook, path, &rule, &json!({}))
    };
    let webhooks = vec![
        scoped("/cluster", "Cluster"),
        scoped("/namespaced", "Namespaced"),
        scoped("/either", "*"),
        with_rule(&hook, "/scale", &rule("longhaul.dev", "v1", "packages/scale", "*"), &json!({})),
        with_rule(&hook, "/packages", &rule("longhaul.dev", "v1", "packages", "*"), &json!({})),
        with_rule(
            &hook,
            "/query?a=b",
            &rule("longhaul.dev", "v1", "*/status", "*"),
            &json!({"name": "query.example.com"}),
        ),
    ];
    let (status, made) = configure(&world, "ValidatingWebhookConfiguration", webhooks).await;
    assert_eq!(status, 201, "{made}");
    let mut client = world.client(Protocol::Http1, "harness").await;
    client.post(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(hook.take_paths(), ["/either", "/namespaced"]);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}});
    assert_eq!(client.post("/api/v1/namespaces", &namespace).await.0, 201);
    assert_eq!(hook.take_paths(), ["/cluster", "/either"]);
    client.post(PACKAGES, &package("p")).await;
    assert_eq!(hook.take_paths(), ["/packages"]);
    client.patch(&format!("{PACKAGES}/p/status"), MERGE, &json!({"status": {"phase": "Ready"}})).await;
    let uris: Vec<String> = hook.reviews().into_iter().map(|(uri, _)| uri).collect();
    assert_eq!(uris, ["/query?a=b&timeout=7s"], "a path may have a query of its own");
}

/// Selectors match the new or the old state of an object; a deleted namespace is matched by its own labels.
#[tokio::test]
async fn selectors_look_at_what_was_there_too() {
    let (world, hook) = (World::start().await, Webhook::start(allowing()).await);
    let labels = json!({"matchLabels": {"pick": "x"}});
    let webhooks = vec![
        hook.entry("/objects", &json!({"objectSelector": labels})),
        with_rule(&hook, "/spaces", &rule("", "v1", "namespaces", "*"), &json!({"namespaceSelector": labels})),
    ];
    configure(&world, "ValidatingWebhookConfiguration", webhooks).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let mut picked = config_map("a");
    picked["metadata"]["labels"] = json!({"pick": "x"});
    client.post(CONFIG_MAPS, &picked).await;
    assert_eq!(hook.take_paths(), ["/objects"]);
    let unlabel = json!({"metadata": {"labels": {"pick": null}}});
    client.patch(&format!("{CONFIG_MAPS}/a"), MERGE, &unlabel).await;
    assert_eq!(hook.take_paths(), ["/objects"], "it had the label");
    client.patch(&format!("{CONFIG_MAPS}/a"), MERGE, &json!({"data": {"b": "2"}})).await;
    assert_eq!(hook.take_paths(), Vec::<String>::new());
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra", "labels": {"pick": "x"}}});
    client.post("/api/v1/namespaces", &namespace).await;
    assert_eq!(hook.take_paths(), ["/spaces"]);
    client.delete("/api/v1/namespaces/extra").await;
    assert!(hook.take_paths().contains(&"/spaces".to_owned()), "a deletion is judged by what is deleted");
}

/// An `AdmissionReview` has the same content as an `AdmissionReview` of a real server.
#[tokio::test]
async fn requests_say_what_the_real_ones_say() {
    let (world, hook) = (World::start().await, Webhook::start(allowing()).await);
    let mut entry = hook.entry("/all", &json!({}));
    entry["rules"] = json!([rule("", "v1", "*", "*"), rule("longhaul.dev", "v1", "*/*", "*")]);
    configure(&world, "ValidatingWebhookConfiguration", vec![entry]).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let one = || {
        let mut reviews = hook.reviews();
        assert_eq!(reviews.len(), 1, "{reviews:?}");
        reviews.remove(0).1["request"].take()
    };
    let options = |kind: &str| json!({"apiVersion": "meta.k8s.io/v1", "kind": kind});

    let mut unnamed = config_map("x");
    unnamed["metadata"] = json!({"generateName": "made-"});
    let (status, made) = client.post(CONFIG_MAPS, &unnamed).await;
    assert_eq!(status, 201, "{made}");
    let request = one();
    assert_eq!(request["options"], options("CreateOptions"));
    assert_eq!((&request["namespace"], request.get("subResource")), (&json!("default"), None));
    assert_eq!(
        request["name"], made["metadata"]["name"],
        "who validates is asked about the name that was made: {request}"
    );

    let (_, mut whole) = client.post(CONFIG_MAPS, &config_map("a")).await;
    hook.reviews();
    whole["data"]["b"] = json!("2");
    assert_eq!(client.put(&format!("{CONFIG_MAPS}/a?fieldManager=me"), &whole).await.0, 200);
    let mut update = options("UpdateOptions");
    update["fieldManager"] = json!("me");
    assert_eq!(one()["options"], update);
    client.patch(&format!("{CONFIG_MAPS}/a"), MERGE, &json!({"data": {"c": "3"}})).await;
    assert_eq!(one()["options"], options("UpdateOptions"));
    client.delete(&format!("{CONFIG_MAPS}/a")).await;
    let request = one();
    assert_eq!((&request["options"]["kind"], &request["object"]), (&json!("DeleteOptions"), &Value::Null));

    client.post(PACKAGES, &package("p")).await;
    hook.reviews();
    client.patch(&format!("{PACKAGES}/p/status"), MERGE, &json!({"status": {"phase": "Ready"}})).await;
    let request = one();
    assert_eq!((&request["subResource"], &request["requestSubResource"]), (&json!("status"), &json!("status")));

    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}});
    client.post("/api/v1/namespaces", &namespace).await;
    let request = one();
    assert_eq!(
        (&request["name"], &request["namespace"]),
        (&json!("extra"), &json!("extra")),
        "it is asked for in itself"
    );
}

/// If a webhook returns a patch that changes nothing, no webhook is called again. If a webhook's refusal has only a
/// code, it gets the reason of that code.
#[tokio::test]
async fn a_patch_without_effect_asks_nobody_again() {
    let script: Script = Arc::new(|path, request| match path {
        "/same" => Some(patched(request, &json!([{"op": "replace", "path": "/data/a", "value": "1"}]))),
        "/no" => Some(review(request, json!({"allowed": false, "status": {"code": 403}}))),
        _ => Some(allowed(request)),
    });
    let (world, hook) = (World::start().await, Webhook::start(script).await);
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let webhooks = vec![hook.entry("/first", &again), hook.entry("/same", &again)];
    configure(&world, "MutatingWebhookConfiguration", webhooks).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("a")).await.0, 201);
    assert_eq!(hook.take_paths(), ["/first", "/same"]);

    let no = with_rule(&hook, "/no", &rule("", "v1", "configmaps", "DELETE"), &json!({}));
    configure(&world, "ValidatingWebhookConfiguration", vec![no]).await;
    let response = client.send(Method::DELETE, &format!("{CONFIG_MAPS}/a"), "").await;
    assert_eq!(response.status(), 403);
    let (_, refused) = client.delete(&format!("{CONFIG_MAPS}/a")).await;
    let text = "admission webhook \"no.example.com\" denied the request without explanation";
    assert_eq!((&refused["reason"], &refused["message"]), (&json!("Forbidden"), &json!(text)));
}

/// Fields that a webhook adds are dropped if the object's type lacks them, like fields from a client.
#[tokio::test]
async fn fields_that_a_webhook_invents_are_dropped() {
    let script: Script = Arc::new(|_, request| {
        let invented = json!([
            {"op": "add", "path": "/odd", "value": 1}, {"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}},
        ]);
        Some(patched(request, &invented))
    });
    let (world, hook) = (World::start().await, Webhook::start(script).await);
    configure(&world, "MutatingWebhookConfiguration", vec![hook.entry("/invents", &json!({}))]).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let (status, made) = client.post(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!((status, &made["metadata"]["labels"], made.get("odd")), (201, &json!({"by": "hook"}), None));
    let change = json!({"metadata": {"labels": null}, "data": {"b": "2"}});
    let (status, changed) = client.patch(&format!("{CONFIG_MAPS}/a"), MERGE, &change).await;
    assert_eq!((status, &changed["metadata"]["labels"], changed.get("odd")), (200, &json!({"by": "hook"}), None));
}
