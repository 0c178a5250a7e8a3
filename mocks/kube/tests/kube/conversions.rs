//! Tests of conversion webhooks of custom resources. Error messages are those of kube-apiserver 1.34.1.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::admission::{Script, Webhook};
use crate::client::{Client, Lines, Protocol, World};
use crate::{APPLY, DEFINITIONS, MERGE};

const V1: &str = "/apis/test.dev/v1/namespaces/default/foos";
const V2: &str = "/apis/test.dev/v2/namespaces/default/foos";
const STATUS_V2: &str = "/apis/test.dev/v2/namespaces/default/foos/a/status";

/// The mistake that the conversion webhook makes in its next answers.
type Plant = Arc<Mutex<&'static str>>;

/// A world in which the resource `foos` has `spec.host` in v1, the stored version, and `spec.address` in v2.
struct Converted {
    world: World,
    client: Client,
    hook: Webhook,
    plant: Plant,
}

impl Converted {
    async fn start() -> Self {
        let (world, mut client) = World::alone().await;
        let plant = Plant::default();
        let planted = plant.clone();
        let script: Script = Arc::new(move |_, review| Some(answer(review, *planted.lock())));
        let hook = Webhook::start(script).await;
        let (status, made) = client.post(DEFINITIONS, &definition(&hook)).await;
        assert_eq!(status, 201, "{made}");
        Self { world, client, hook, plant }
    }

    fn plant(&self, what: &'static str) {
        *self.plant.lock() = what;
    }

    /// The reviews that the conversion webhook got since the last call of this method: the wanted version, and the
    /// names of the objects.
    fn take_reviews(&self) -> Vec<(String, Vec<String>)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let reviews = self.hook.reviews();
        let rows = reviews.iter().map(|(uri, review)| {
            assert_eq!(uri, "/convert?timeout=30s");
            let request = &review["request"];
            let names = request["objects"].as_array().unwrap().iter().map(|object| text(&object["metadata"]["name"]));
            (text(&request["desiredAPIVersion"]), names.collect())
        });
        rows.collect()
    }

    async fn made(&mut self, path: &str, name: &str, spec: Value) -> Value {
        let (status, made) = self.client.post(path, &foo(path, name, spec)).await;
        assert_eq!(status, 201, "{made}");
        made
    }

    /// Opens a watch; returns the watch and its client, which must exist as long as the test reads the watch.
    async fn watch(&self, path: &str) -> (Client, Lines) {
        let mut client = self.world.client(Protocol::Http1, "harness").await;
        let lines = client.watch(path).await;
        (client, lines)
    }

    async fn refused(&mut self, path: &str) -> String {
        let (status, refused) = self.client.get(path).await;
        assert_eq!((status, refused.get("reason")), (500, None), "{refused}");
        refused["message"].as_str().unwrap().to_owned()
    }
}

fn version_of(path: &str) -> &str {
    path.split('/').nth(3).unwrap()
}

fn foo(path: &str, name: &str, spec: Value) -> Value {
    let api_version = format!("test.dev/{}", version_of(path));
    let mut object = json!({"apiVersion": api_version, "kind": "Foo", "metadata": {"name": name}});
    object["spec"] = spec;
    object
}

fn definition(hook: &Webhook) -> Value {
    let version = |name: &str, storage: bool, properties: &Value| {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": properties},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }});
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema},
               "subresources": {"status": {}}})
    };
    let seven = json!({"type": "integer", "default": 7});
    let versions = json!([
        version("v1", true, &json!({"host": {"type": "string"}, "n": seven})),
        version(
            "v2",
            false,
            &json!({"address": {"type": "string", "maxLength": 5}, "n": seven, "late": {"type": "string", "default": "x"}})
        ),
    ]);
    let mut definition = crate::definition("foos", "Foo", &versions);
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v3", "v1"],
        "clientConfig": {"url": format!("https://127.0.0.1:{}/convert", hook.port), "caBundle": hook.ca},
    }});
    definition
}

/// The answer of the conversion webhook, which is correct except for the mistake `planted`.
fn answer(review: &Value, planted: &str) -> (u16, Value) {
    let request = &review["request"];
    let wanted = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap().iter().map(|object| {
        let mut object = object.clone();
        let (from, to) = if wanted.ends_with("v2") { ("host", "address") } else { ("address", "host") };
        if let Some(moved) = object["spec"].as_object_mut().unwrap().remove(from) {
            object["spec"][to] = moved;
        }
        object["apiVersion"] = json!(wanted);
        assert_eq!(object["metadata"].get("resourceVersion"), None, "the store knows it by itself");
        match planted {
            "name" => object["metadata"]["name"] = json!("other"),
            "uid" => object["metadata"]["uid"] = json!("other"),
            "kind" => object["kind"] = json!("Other"),
            "version" => object["apiVersion"] = json!("test.dev/v3"),
            "metadata" => object["metadata"]["labels"] = json!({"x": 1}),
            "finalizers" => {
                object["metadata"]["finalizers"] = json!(["a.b/c"]);
                object["metadata"]["labels"] = json!({"from": "webhook"});
            }
            "unknown" => object["spec"]["unknown"] = json!(1),
            _ => {}
        }
        object
    });
    let mut objects: Vec<Value> = objects.collect();
    if planted == "fewer" {
        objects.pop();
    }
    let mut response = json!({"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}});
    match planted {
        "review" => response["uid"] = json!("wrong"),
        "failed" => response["result"] = json!({"status": "Failure", "message": "no way"}),
        "silent" => response["result"] = json!({"status": "Failure"}),
        "nothing" => response = Value::Null,
        _ => {}
    }
    let status = if planted == "500" { 500 } else { 200 };
    let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
    (status, review)
}

#[tokio::test]
async fn every_version_is_read_and_written() {
    let mut it = Converted::start().await;
    let made = it.made(V2, "a", json!({"address": "h"})).await;
    // Between the versions, a default that the stored one does not know is lost, and is not filled in again.
    assert_eq!(made["spec"], json!({"address": "h", "n": 7}));
    let there_and_back =
        [("test.dev/v1".to_owned(), vec!["a".to_owned()]), ("test.dev/v2".to_owned(), vec!["a".to_owned()])];
    assert_eq!(it.take_reviews(), there_and_back);
    let (_, stored) = it.client.get(&format!("{V1}/a")).await;
    assert_eq!((&stored["apiVersion"], &stored["spec"]), (&json!("test.dev/v1"), &json!({"host": "h", "n": 7})));
    assert_eq!(it.take_reviews(), [], "what is stored so is not converted");

    let (_, patched) = it.client.patch(&format!("{V2}/a"), MERGE, &json!({"spec": {"address": "i"}})).await;
    assert_eq!((&patched["spec"]["address"], &patched["metadata"]["generation"]), (&json!("i"), &json!(2)));
    let intent = foo(V2, "a", json!({"address": "j"}));
    let (status, applied) = it.client.patch(&format!("{V2}/a?fieldManager=me&force=true"), APPLY, &intent).await;
    assert_eq!((status, &applied["spec"]["address"]), (200, &json!("j")), "{applied}");
    let (_, known) = it.client.patch(STATUS_V2, MERGE, &json!({"status": {"ok": true}})).await;
    assert_eq!((&known["status"], &known["spec"]["address"]), (&json!({"ok": true}), &json!("j")), "{known}");
    let (status, refused) = it.client.patch(&format!("{V2}/a"), MERGE, &json!({"spec": {"address": "too long"}})).await;
    assert_eq!(status, 422, "the schema of the version that was asked for decides: {refused}");
    let mut next = it.client.get(&format!("{V1}/a")).await.1;
    assert_eq!((&next["spec"]["host"], &next["status"]), (&json!("j"), &json!({"ok": true})));
    next["spec"]["host"] = json!("longer than five");
    assert_eq!(it.client.put(&format!("{V1}/a"), &next).await.0, 200);
    let (_, stale) = it.client.put(&format!("{V2}/a"), &applied).await;
    assert_eq!(stale["reason"], json!("Conflict"), "{stale}");
    it.take_reviews();

    let rehearsal = foo(V2, "dry", json!({"address": "d"}));
    let (status, rehearsed) = it.client.post(&format!("{V2}?dryRun=All"), &rehearsal).await;
    assert_eq!((status, &rehearsed["spec"]), (201, &json!({"address": "d", "n": 7})));
    assert_eq!(it.take_reviews().len(), 2);
    let (_, gone) = it.client.delete(&format!("{V2}/a")).await;
    assert_eq!(gone["status"], json!("Success"), "{gone}");
    assert_eq!(it.client.get(&format!("{V1}/a")).await.0, 404);
}

#[tokio::test]
async fn a_list_is_converted_in_few_reviews_and_a_watch_event_by_event() {
    let mut it = Converted::start().await;
    for index in 0..150 {
        it.made(V1, &format!("f{index:03}"), json!({"host": "h"})).await;
    }
    assert_eq!(it.take_reviews(), []);
    let (_, list) = it.client.get(V2).await;
    let items = list["items"].as_array().unwrap();
    assert!(items.len() == 150 && items.iter().all(|item| item["spec"]["address"] == "h"), "{list}");
    assert_eq!(it.take_reviews().iter().map(|(_, names)| names.len()).collect::<Vec<_>>(), [100, 50]);

    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{V2}?watch=true&resourceVersion={revision}&labelSelector=on%3Dyes");
    let (_client, mut lines) = it.watch(&path).await;
    let (on, off) = (json!({"metadata": {"labels": {"on": "yes"}}}), json!({"metadata": {"labels": null}}));
    it.client.patch(&format!("{V1}/f000"), MERGE, &on).await;
    it.client.patch(&format!("{V1}/f001"), MERGE, &on).await;
    it.client.patch(&format!("{V1}/f000"), MERGE, &off).await;
    it.client.delete(&format!("{V2}/f001")).await;
    for (kind, name) in [("ADDED", "f000"), ("ADDED", "f001"), ("DELETED", "f000"), ("DELETED", "f001")] {
        let event = lines.next().await.unwrap().unwrap();
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!(kind), &json!(name)), "{event}");
        assert_eq!(event["object"]["spec"]["address"], json!("h"), "{event}");
        assert_eq!(event["object"]["apiVersion"], json!("test.dev/v2"));
    }
    let (_other, mut all) = it.watch(&format!("{V2}?watch=true")).await;
    assert_eq!(
        all.next().await.unwrap().unwrap()["object"]["spec"],
        json!({"address": "h", "n": 7}),
        "the snapshot as well"
    );
}

/// A watch is silent while the conversion webhook fails, and then continues without losing an event.
#[tokio::test]
async fn a_watch_waits_for_a_converter_that_fails() {
    let mut it = Converted::start().await;
    let (_, list) = it.client.get(V2).await;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    let (_client, mut lines) = it.watch(&format!("{V2}?watch=true&resourceVersion={revision}")).await;
    it.plant("name");
    it.made(V1, "a", json!({"host": "h"})).await;
    while it.hook.reviews().is_empty() {
        tokio::task::yield_now().await;
    }
    it.plant("");
    let event = lines.next().await.unwrap().unwrap();
    assert_eq!((&event["type"], &event["object"]["spec"]["address"]), (&json!("ADDED"), &json!("h")));
}

/// Each mistake of the conversion webhook has its own error message; without a mistake the same requests succeed.
#[tokio::test]
async fn a_wrong_converter_is_not_believed() {
    let mut it = Converted::start().await;
    let made = it.made(V1, "a", json!({"host": "h"})).await;
    let uid = made["metadata"]["uid"].as_str().unwrap();
    let of = "conversion webhook for test.dev/v1, Kind=Foo";
    let other_uid = format!("returned invalid object: must have the same UID: {uid} != other");
    let one = format!("{V2}/a");
    for (planted, wanted) in [
        ("name", "returned invalid object: must have the same name: a != other"),
        ("uid", other_uid.as_str()),
        ("kind", "returned invalid object at index 0: invalid kind (expected Foo, received Other)"),
        (
            "version",
            "returned invalid object at index 0: invalid groupVersion (expected test.dev/v2, received test.dev/v3)",
        ),
        (
            "metadata",
            "returned invalid metadata: metadata.labels[x] must be a string, but is int64 in converted object",
        ),
        ("fewer", "returned 0 objects, expected 1"),
        ("failed", "failed: no way"),
        ("silent", "failed: response.result.status was 'Failure', not 'Success'"),
        ("nothing", "failed: no response provided"),
        ("500", "failed: an error on the server (\"unknown\") has prevented the request from succeeding"),
    ] {
        it.plant(planted);
        assert_eq!(it.refused(&one).await, format!("{of} {wanted}"), "{planted}");
        assert!(it.refused(V2).await.starts_with(of), "a list is one answer");
    }
    it.plant("review");
    assert!(it.refused(&one).await.starts_with(&format!("{of} failed: expected response.uid=\"")));
    // No answer of a wrong converter is written, and an object that cannot be read cannot be deleted.
    it.plant("name");
    assert_eq!(it.client.patch(&one, MERGE, &json!({"spec": {"address": "w"}})).await.0, 500);
    assert_eq!(it.client.post(V2, &foo(V2, "b", json!({}))).await.0, 500);
    assert_eq!(it.client.delete(&one).await.0, 500);
    it.plant("finalizers");
    let (_, shown) = it.client.get(&one).await;
    assert_eq!(shown["metadata"]["labels"], json!({"from": "webhook"}));
    assert_eq!(
        shown["metadata"].get("finalizers"),
        None,
        "of the metadata labels and annotations alone are the webhook's"
    );
    it.plant("unknown");
    assert_eq!(it.client.get(&one).await.1["spec"], json!({"address": "h", "n": 7}), "the schema prunes");
    it.plant("");
    let (status, same) = it.client.get(&one).await;
    assert_eq!((status, &same["metadata"]["resourceVersion"]), (200, &made["metadata"]["resourceVersion"]));
    assert_eq!(it.client.get(V1).await.1["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_was_stored_in_another_version_is_converted_too() {
    let mut it = Converted::start().await;
    it.made(V1, "a", json!({"host": "h"})).await;
    let path = format!("{DEFINITIONS}/foos.test.dev");
    let (_, mut definition) = it.client.get(&path).await;
    definition["spec"]["versions"][0]["storage"] = json!(false);
    definition["spec"]["versions"][1]["storage"] = json!(true);
    let (_, mut moved) = it.client.put(&path, &definition).await;
    assert_eq!(moved["status"]["storedVersions"], json!(["v1", "v2"]), "{moved}");
    it.take_reviews();
    assert_eq!(it.client.get(&format!("{V1}/a")).await.1["spec"]["host"], json!("h"));
    assert_eq!(it.take_reviews(), []);
    assert_eq!(it.client.get(&format!("{V2}/a")).await.1["spec"]["address"], json!("h"));
    it.client.patch(&format!("{V2}/a"), MERGE, &json!({"spec": {"address": "i"}})).await;
    it.take_reviews();
    assert_eq!(it.client.get(&format!("{V2}/a")).await.1["spec"]["address"], json!("i"));
    assert_eq!(it.take_reviews(), [], "a write migrates");
    assert_eq!(it.client.get(&format!("{V1}/a")).await.1["spec"]["host"], json!("i"));
    moved["spec"]["versions"].as_array_mut().unwrap().remove(0);
    let (status, refused) = it.client.put(&path, &moved).await;
    assert_eq!((status, &refused["details"]["causes"][0]["field"]), (422, &json!("status.storedVersions[0]")));
}

/// With the conversion strategy `None`, a version has only the fields of its own schema, with the defaults of the
/// stored version.
#[tokio::test]
async fn without_a_webhook_a_version_leaves_out_what_it_does_not_have() {
    let (_world, mut client) = World::alone().await;
    let version = |name: &str, storage: bool, field: &str, default: &str| {
        let both = json!({"type": "string"});
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "both": both, field: {"type": "string", "default": default},
        }}}});
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
    };
    let versions = json!([version("v1", true, "old", "stored"), version("v2", false, "new", "lost")]);
    let (status, made) = client.post(DEFINITIONS, &crate::definition("foos", "Foo", &versions)).await;
    assert_eq!(status, 201, "{made}");
    let (status, made) = client.post(V2, &foo(V2, "a", json!({"both": "x", "new": "y"}))).await;
    assert_eq!((status, &made["spec"]), (201, &json!({"both": "x"})));
    let (_, stored) = client.get(&format!("{V1}/a")).await;
    assert_eq!(stored["spec"], json!({"both": "x", "old": "stored"}));
    let (_, patched) = client.patch(&format!("{V1}/a"), MERGE, &json!({"spec": {"old": "z"}})).await;
    assert_eq!(patched["spec"], json!({"both": "x", "old": "z"}));
    let (_, list) = client.get(V2).await;
    assert_eq!(list["items"][0]["spec"], json!({"both": "x"}), "{list}");
    assert_eq!(list["items"][0]["apiVersion"], json!("test.dev/v2"));
}

/// A watch ends when the definition of its resource changes, so that clients list again, as on a real server, which
/// makes a new cache.
#[tokio::test]
async fn a_watch_ends_when_its_definition_changes() {
    let mut it = Converted::start().await;
    it.made(V1, "a", json!({"host": "h"})).await;
    let path = format!("{DEFINITIONS}/foos.test.dev");
    let (_, list) = it.client.get(V1).await;
    let before = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let (_client, mut lines) = it.watch(&format!("{V1}?watch=true&resourceVersion={before}")).await;
    let (_other, mut others) = it.watch(&format!("{V2}?watch=true&resourceVersion={before}")).await;
    it.client.patch(&path, MERGE, &json!({"metadata": {"labels": {"on": "yes"}}})).await;
    it.made(V1, "b", json!({"host": "h"})).await;
    let event = lines.next().await.unwrap().unwrap();
    assert_eq!(event["object"]["metadata"]["name"], json!("b"), "a label changes nothing: {event}");
    let event = others.next().await.unwrap().unwrap();
    assert_eq!(event["object"]["spec"]["address"], json!("h"), "{event}");

    let (_, mut definition) = it.client.get(&path).await;
    definition["spec"]["versions"][0]["storage"] = json!(false);
    definition["spec"]["versions"][1]["storage"] = json!(true);
    let (status, moved) = it.client.put(&path, &definition).await;
    assert_eq!(status, 200, "{moved}");
    it.made(V1, "c", json!({"host": "i"})).await;
    // A watch with its old settings would show the newly stored form under the name of the other version.
    assert!(lines.next().await.unwrap().is_none() && others.next().await.unwrap().is_none());

    let (_client, mut gone) = it.watch(&format!("{V1}?watch=true&resourceVersion={before}")).await;
    let event = gone.next().await.unwrap().unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
    let now = moved["metadata"]["resourceVersion"].as_str().unwrap();
    let (_client, mut lines) = it.watch(&format!("{V1}?watch=true&resourceVersion={now}")).await;
    let event = lines.next().await.unwrap().unwrap();
    assert_eq!(
        (&event["object"]["apiVersion"], &event["object"]["spec"]["host"]),
        (&json!("test.dev/v1"), &json!("i"))
    );
}

#[tokio::test]
async fn a_definition_says_who_converts() {
    let mut it = Converted::start().await;
    let good = definition(&it.hook);
    let ca = BASE64.encode("x");
    let wrong: [(&str, Value, &[&str]); 7] = [
        ("/strategy", json!("Foo"), &["strategy", "webhookClientConfig", "conversionReviewVersions"]),
        ("/strategy", json!("None"), &["webhookClientConfig", "conversionReviewVersions"]),
        ("/webhook", json!({}), &["webhookClientConfig", "conversionReviewVersions"]),
        ("/webhook/conversionReviewVersions", json!(["v3"]), &["conversionReviewVersions"]),
        ("/webhook/clientConfig", json!({"caBundle": ca}), &["webhookClientConfig"]),
        ("/webhook/clientConfig/url", json!("http://127.0.0.1/x"), &["webhookClientConfig.url"]),
        ("/webhook/clientConfig", json!({"service": {"name": "a"}}), &["webhookClientConfig.service.namespace"]),
    ];
    for (pointer, value, fields) in wrong {
        let mut definition = good.clone();
        *definition["spec"]["conversion"].pointer_mut(pointer).unwrap() = value;
        let (status, refused) = it.client.post(&format!("{DEFINITIONS}?dryRun=All"), &definition).await;
        assert_eq!(status, 422, "{pointer}: {refused}");
        let causes = refused["details"]["causes"].as_array().unwrap();
        let found: Vec<&str> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
        let wanted: Vec<String> = fields.iter().map(|field| format!("spec.conversion.{field}")).collect();
        assert_eq!(found, wanted, "{pointer}");
    }
}
