//! Tests of the admission webhook over sockets, with a small registry.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use base64::Engine as _;
use bytes::Bytes;
use http::{Method, Request, Response};
use serde_json::{Value, json};
use service::run::Options;
use service_core::wire::{self, Client, Protocol};

use crate::support::registry::{Registry, digest};
use crate::support::{Service, deadline};

pub async fn start(registry: &Registry, more: &str) -> Service {
    let more = if more.is_empty() { "shutdown: {drain: 50ms}\n" } else { more };
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key, maxBodyBytes: 1MiB, maxInFlight: 600, maxInFlightPerPeer: 600}}\n\
         health: {{listen: \"127.0.0.1:0\"}}\n\
         resolve: {{timeout: 2s, skipPrefixes: [\"skip.io/\"], registries: [{{host: \"{}\", plainHttp: true}}]}}\n{more}",
        registry.host()
    );
    Service::start("admission", &config, Options::default()).await
}

pub fn pod(images: &[&str]) -> Value {
    let containers: Vec<_> = images.iter().map(|image| json!({"name": "c", "image": image})).collect();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}})
}

pub fn review(version: &str, object: &Value) -> Value {
    json!({
        "apiVersion": format!("admission.k8s.io/{version}"), "kind": "AdmissionReview",
        "request": {"uid": "the-uid", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE",
                    "object": object, "oldObject": null, "dryRun": false, "options": {}},
    })
}

pub async fn post(client: &Client, path: &str, body: impl Into<Bytes>) -> Response<Bytes> {
    let request =
        Request::post(path).header("content-type", "application/json; charset=utf-8").body(body.into()).unwrap();
    client.fetch(request, 1 << 20, deadline()).await.unwrap()
}

pub async fn ask(client: &Client, review: &Value) -> Value {
    let answer = post(client, "/mutate?timeout=10s", review.to_string()).await;
    assert_eq!(answer.status(), 200);
    let answer: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!((&answer["apiVersion"], &answer["kind"]), (&review["apiVersion"], &review["kind"]));
    assert_eq!(answer["response"]["uid"], "the-uid");
    answer["response"].clone()
}

/// The object after the patch of the answer, as the API server stores it.
pub fn patched(answer: &Value, object: &Value) -> Value {
    assert_eq!(answer["patchType"], "JSONPatch");
    let patch = base64::engine::general_purpose::STANDARD.decode(answer["patch"].as_str().unwrap()).unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).unwrap();
    object
}

/// The image of the Pod `object` after the patch, or the denial.
pub fn verdict(answer: &Value, object: &Value) -> Result<String, String> {
    if answer["allowed"] == true {
        Ok(patched(answer, object)["spec"]["containers"][0]["image"].as_str().unwrap().to_owned())
    } else {
        Err(answer["status"]["message"].as_str().unwrap().to_owned())
    }
}

/// With the setting `endpoint`, requests for a registry go to an address in the cluster. DNS need not know the
/// registry's name, and images keep the registry's name.
#[tokio::test]
async fn an_endpoint_stands_in_for_the_host_that_images_name() {
    let registry = Registry::start().await;
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\n\
         health: {{listen: \"127.0.0.1:0\"}}\nshutdown: {{drain: 50ms}}\n\
         resolve: {{registries: [{{host: \"registry.test:5000\", endpoint: \"{}\", plainHttp: true}}]}}\n",
        registry.host()
    );
    let service = Service::start("admission", &config, Options::default()).await;
    let object = pod(&["registry.test:5000/good:1"]);
    let answer = ask(&service.webhook(Protocol::Http1), &review("v1", &object)).await;
    let image = &patched(&answer, &object)["spec"]["containers"][0]["image"];
    assert_eq!(image, &format!("registry.test:5000/good:1@{}", digest()));
    service.app.stop().await;
}

#[tokio::test]
async fn tags_are_pinned_in_both_versions_and_protocols_and_a_second_round_changes_nothing() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let (host, digest) = (registry.host(), digest());
    let written: Vec<String> =
        ["good:1", "good", "nohead:1", "nodigest:1", "token:1"].map(|name| format!("{host}/{name}")).into();
    let pinned = format!("{host}/x:1@sha256:{}", "a".repeat(64));
    let mut images: Vec<&str> = written.iter().map(String::as_str).collect();
    images.extend(["skip.io/app:1", &pinned, ""]);
    for (version, protocol) in [("v1", Protocol::Http1), ("v1beta1", Protocol::Http2)] {
        let client = service.webhook(protocol);
        let object = pod(&images);
        let answer = ask(&client, &review(version, &object)).await;
        assert_eq!(answer["allowed"], true, "{answer}");
        let stored = patched(&answer, &object);
        for (index, image) in written.iter().enumerate() {
            assert_eq!(stored["spec"]["containers"][index]["image"], format!("{image}@{digest}"));
        }
        for index in written.len()..images.len() {
            assert_eq!(stored["spec"]["containers"][index]["image"], images[index], "left alone");
        }
        let again = ask(&client, &review(version, &stored)).await;
        assert_eq!(again, json!({"uid": "the-uid", "allowed": true}), "no patch, no patchType");
    }
    service.app.stop().await;
}

/// If a registry speaks plain HTTP and the configuration does not say so, the message names the key to set, with or
/// without an entry for the registry.
#[tokio::test]
async fn a_registry_without_tls_is_named_with_the_key_to_set() {
    let registry = Registry::start().await;
    let host = registry.host();
    for (entry, remedy) in [
        (format!("{{host: \"{host}\"}}"), "set resolve.registries[0].plainHttp: true".to_owned()),
        (
            "{host: elsewhere.test}".to_owned(),
            format!("add {{host: \"{host}\", plainHttp: true}} to resolve.registries"),
        ),
    ] {
        let config = format!(
            "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\n\
             health: {{listen: \"127.0.0.1:0\"}}\nshutdown: {{drain: 50ms}}\nresolve: {{registries: [{entry}]}}\n"
        );
        let service = Service::start("admission", &config, Options::default()).await;
        let image = format!("{host}/good:1");
        let answer = ask(&service.webhook(Protocol::Http1), &review("v1", &pod(&[&image]))).await;
        let message = answer["status"]["message"].as_str().unwrap();
        assert!(message.contains("misconfigured: "), "{message}");
        let said = format!("speaks no TLS, most likely plain HTTP; if that is meant, {remedy}");
        assert!(message.contains(&said), "{message}");
        service.app.stop().await;
    }
}

#[tokio::test]
async fn all_failing_images_are_named_with_their_class() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let host = registry.host();
    let names = ["good:1", "absent:1", "denied:1", "broken:1", "hang:1", "liar:1", "UPPER:1"];
    let images = names.map(|name| format!("{host}/{name}"));
    let images: Vec<&str> = images.iter().map(String::as_str).collect();
    let started = Instant::now();
    let answer = ask(&service.webhook(Protocol::Http1), &review("v1", &pod(&images))).await;
    assert!(started.elapsed() < Duration::from_secs(4), "resolve.timeout holds and images are asked in parallel");
    assert_eq!((&answer["allowed"], &answer["status"]["code"]), (&json!(false), &json!(403)));
    assert!(answer.get("patch").is_none());
    let message = answer["status"]["message"].as_str().unwrap();
    assert!(message.starts_with("6 images have no digest: "), "{message}");
    for (name, class) in [
        ("absent:1", "not-found"),
        ("denied:1", "auth"),
        ("broken:1", "unavailable"),
        ("hang:1", "unavailable"),
        ("liar:1", "unavailable"),
        ("UPPER:1", "misconfigured"),
    ] {
        assert!(message.contains(&format!("{host}/{name}: {class}: ")), "{class} is missing in: {message}");
    }
    let (_, metrics) = service.health("/metrics").await;
    assert!(metrics.contains(r#"longhaul_admission_image_failures_total{class="unavailable"} 3"#), "{metrics}");
    assert!(!metrics.contains("absent"), "no image may be a label");
    service.app.stop().await;
}

#[tokio::test]
async fn five_hundred_reviews_of_one_image_cost_few_requests_and_delay_no_other() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let client = Arc::new(service.webhook(Protocol::Http2));
    let slow = Arc::new(review("v1", &pod(&[&format!("{}/slow:1", registry.host())])));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let (client, slow) = (Arc::clone(&client), Arc::clone(&slow));
        callers.spawn(async move { ask(&client, &slow).await["allowed"] == true });
    }
    let other = review("v1", &pod(&[&format!("{}/good:1", registry.host())]));
    assert_eq!(ask(&client, &other).await["allowed"], true);
    let mut allowed = 0;
    while let Some(result) = callers.join_next().await {
        allowed += usize::from(result.unwrap());
    }
    assert_eq!(allowed, 500);
    let requests = registry.requests.load(Ordering::Relaxed);
    assert!(requests <= 4 + 1, "{requests} requests for two images");
    service.app.stop().await;
}

#[tokio::test]
async fn only_a_definite_failure_is_remembered() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let client = service.webhook(Protocol::Http1);
    for (name, requests_of_second_ask) in [("absent:1", 0), ("denied:1", 1)] {
        let review = review("v1", &pod(&[&format!("{}/{name}", registry.host())]));
        ask(&client, &review).await;
        let before = registry.requests.load(Ordering::Relaxed);
        ask(&client, &review).await;
        assert_eq!(registry.requests.load(Ordering::Relaxed) - before, requests_of_second_ask, "{name}");
    }
    service.app.stop().await;
}

#[tokio::test]
async fn the_deadline_of_the_caller_is_kept() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let review = review("v1", &pod(&[&format!("{}/hang:1", registry.host())]));
    let started = Instant::now();
    let answer = post(&service.webhook(Protocol::Http1), "/v1/mutate?timeout=1s", review.to_string()).await;
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_secs(1), "answered after {elapsed:?}");
    assert!(String::from_utf8_lossy(answer.body()).contains("unavailable: "));
    service.app.stop().await;
}

#[tokio::test]
async fn exemptions_cost_nothing() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let client = service.webhook(Protocol::Http1);
    let object = pod(&[&format!("{}/absent:1", registry.host())]);
    let mut deleting = object.clone();
    deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    for (operation, sub_resource, old) in [
        ("DELETE", None, Value::Null),
        ("UPDATE", Some("status"), object.clone()),
        ("UPDATE", Some("scale"), object.clone()),
        // It must be able to lose its finalizers.
        ("UPDATE", None, deleting.clone()),
    ] {
        let mut review = review("v1", &object);
        review["request"]["operation"] = operation.into();
        review["request"]["subResource"] = sub_resource.into();
        review["request"]["oldObject"] = old;
        assert_eq!(ask(&client, &review).await["allowed"], true, "{operation} {sub_resource:?}");
    }
    assert_eq!(registry.requests.load(Ordering::Relaxed), 0);
    let created_as_deleting = ask(&client, &review("v1", &deleting)).await;
    assert_eq!(created_as_deleting["allowed"], false, "a timestamp in a new object exempts nothing");
    // A finalizer keeps it alive, and its controller makes children from its template.
    let mut changed = review("v1", &pod(&[&format!("{}/absent:2", registry.host())]));
    (changed["request"]["operation"], changed["request"]["oldObject"]) = ("UPDATE".into(), deleting);
    assert_eq!(ask(&client, &changed).await["allowed"], false, "a new image of what is being deleted is judged");
    service.app.stop().await;
}

#[tokio::test]
async fn what_is_no_review_gets_its_status() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let client = service.webhook(Protocol::Http1);
    let send = async |method: Method, path: &str, content_type: &str, body: Bytes| {
        let request =
            Request::builder().method(method).uri(path).header("content-type", content_type).body(body).unwrap();
        client.fetch(request, 1 << 20, deadline()).await.unwrap().status().as_u16()
    };
    let good = Bytes::from(review("v1", &pod(&[])).to_string());
    assert_eq!(send(Method::POST, "/mutate", "application/json", good.clone()).await, 200);
    assert_eq!(send(Method::GET, "/mutate", "application/json", Bytes::new()).await, 405);
    assert_eq!(send(Method::POST, "/other", "application/json", good.clone()).await, 404);
    assert_eq!(send(Method::POST, "/mutate", "text/plain", good.clone()).await, 415);
    assert_eq!(send(Method::POST, "/mutate", "application/json", Bytes::from_static(b"{")).await, 400);
    assert_eq!(send(Method::POST, "/mutate", "application/json", Bytes::from_static(b"{}")).await, 400);
    let other = Bytes::from_static(br#"{"apiVersion":"admission.k8s.io/v2","kind":"AdmissionReview"}"#);
    assert_eq!(send(Method::POST, "/mutate", "application/json", other).await, 400);
    assert_eq!(send(Method::POST, "/mutate", "application/json", Bytes::from(vec![b' '; (1 << 20) + 1])).await, 413);
    service.app.stop().await;
}

#[tokio::test]
async fn too_many_reviews_are_shed_with_429() {
    let registry = Registry::start().await;
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key, maxInFlight: 1}}\n\
         shutdown: {{drain: 50ms}}\n\
         resolve: {{registries: [{{host: \"{}\", plainHttp: true}}]}}\n",
        registry.host()
    );
    let service = Service::start("admission", &config, Options::default()).await;
    let client = Arc::new(service.webhook(Protocol::Http2));
    let slow = review("v1", &pod(&[&format!("{}/slow:1", registry.host())])).to_string();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let (client, slow) = (Arc::clone(&client), slow.clone());
        callers.spawn(async move { post(&client, "/mutate", slow).await });
    }
    let mut statuses = Vec::new();
    while let Some(answer) = callers.join_next().await {
        let answer = answer.unwrap();
        assert!(answer.status() == 200 || answer.headers()["retry-after"] == "1");
        statuses.push(answer.status().as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses[0], 200);
    assert_eq!(statuses[9], 429);
    service.app.stop().await;
}

#[tokio::test]
async fn draining_answers_every_call_and_closes_by_the_answer() {
    let registry = Registry::start().await;
    let service = start(&registry, "shutdown: {drain: 10s}\n").await;
    assert_eq!(service.health("/readyz").await, (200, "ok\n".into()));
    let client = service.webhook(Protocol::Http1);
    let good = review("v1", &pod(&[&format!("{}/good:1", registry.host())])).to_string();
    assert!(post(&client, "/mutate", good.clone()).await.headers().get("connection").is_none());
    let Service { app, folder: _folder, .. } = service;
    let started = Instant::now();
    let stop = tokio::spawn(app.stop());
    // The earlier connection is idle now; the next call on it is answered and ends it.
    let closing = async {
        loop {
            let answer = post(&client, "/mutate", good.clone()).await;
            assert_eq!(answer.status(), 200);
            if answer.headers().get("connection").is_some_and(|value| value == "close") {
                break;
            }
        }
    };
    tokio::time::timeout(crate::support::PATIENCE, closing).await.unwrap();
    stop.await.unwrap();
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_secs(9), "nobody is connected any more, so the drain ends early: {elapsed:?}");
}

#[tokio::test]
async fn a_restart_under_load_fails_no_call() {
    let registry = Registry::start().await;
    let service = start(&registry, "shutdown: {drain: 1s}\n").await;
    let good = review("v1", &pod(&[&format!("{}/good:1", registry.host())])).to_string();
    let mut callers = tokio::task::JoinSet::new();
    for protocol in [Protocol::Http1, Protocol::Http1, Protocol::Http1, Protocol::Http2] {
        let (client, good) = (service.webhook(protocol), good.clone());
        callers.spawn(async move {
            let mut answered = 0;
            // Each caller continues until the listener is gone. A connection that the kernel had not handed over at
            // that moment is reset before a call was sent; every sent call must be answered.
            loop {
                let request = Request::post("/mutate").header("content-type", "application/json");
                let request = request.body(Bytes::from(good.clone())).unwrap();
                match client.fetch(request, 1 << 20, deadline()).await {
                    Ok(answer) => assert_eq!(answer.status(), 200),
                    Err(wire::Error::Connect { .. } | wire::Error::Tls { .. }) => break,
                    Err(error) => panic!("a call failed: {error}"),
                }
                answered += 1;
                if answered % 50 == 0 {
                    // Idle for a moment, as real callers are: an idle connection must not be closed under a call.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            answered
        });
    }
    let Service { app, folder: _folder, .. } = service;
    app.stop().await;
    while let Some(answered) = callers.join_next().await {
        assert!(answered.unwrap() > 0);
    }
}
