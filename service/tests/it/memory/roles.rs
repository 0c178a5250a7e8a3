//! Tests of the memory for data that waits: alerts whose receiver hangs, calls of other processes, and objects of a
//! watched resource.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Value, json};
use service_core::wire::{
    Client, Identity, Limits, Origin, Protocol, Trust, certificates_from_pem, client_config, key_from_pem,
};

use super::process::{self, Process};
use super::{LIMIT_BYTES, config, held_within_the_limit, others_are_answered};
use crate::admission::{pod, review};
use crate::alerts::receiver;
use crate::support::registry::Registry;
use crate::support::{PATIENCE, Server, deadline, kubeconfig, status};

/// Sends reviews of Pods with 500 images each, all with different names; each review is refused at once.
async fn refused_pods(process: &Process) {
    let clients: Vec<_> = (0..8).map(|_| process.client()).collect();
    let each = clients.iter().enumerate().map(async |(at, client)| {
        for number in (at..321).step_by(8) {
            let images: Vec<_> =
                (0..500).map(|image| format!("127.0.0.1/NO/{number}-{image}-{}", "x".repeat(250))).collect();
            let images: Vec<_> = images.iter().map(String::as_str).collect();
            let (status, body) = process::post(client, &review("v1", &pod(&images))).await;
            let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
            assert!(status == 429 || answer["response"]["allowed"] == false, "{status}");
        }
    });
    futures_util::future::join_all(each).await;
}

/// A receiver that accepts requests and never answers.
async fn hanging() -> Server {
    Server::start(false, Arc::new(|_| std::future::pending().boxed())).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn alerts_of_160_000_images_wait_for_receivers_that_hang() {
    let (registry, hangs, healthy) = (Registry::start().await, hanging().await, receiver(200).await);
    let receivers = format!(
        "{{template: slack, url: 'http://{0}/a', timeout: 1h}}, {{template: msteams, url: 'http://{0}/b', timeout: 1h, collapse: 1h}}, \
         {{template: slack, url: 'http://{1}/', collapse: 1h}}",
        hangs.address, healthy.0.address
    );
    let more = format!("alerting: {{deadLetters: dead.jsonl, reject: {{receivers: [{receivers}]}}}}\n");
    let process = Process::start(&config(&[&registry.host()], &more), LIMIT_BYTES).await;
    let image = format!("{}/good:1", registry.host());
    others_are_answered(&process, &image, refused_pods(&process)).await;
    held_within_the_limit(process, "alerts");
    let told = healthy.1.lock();
    let text = told.iter().map(Value::to_string).find(|text| text.contains("127.0.0.1/NO/")).unwrap();
    assert!(text.contains(" more\\n*Object*"), "{}", &text[text.len().saturating_sub(1000)..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_another_process_hold_no_more_than_their_part() {
    let pki = crate::topology::world::Pki::new();
    let hangs = hanging().await;
    let config = json!({
        "health": {"listen": "127.0.0.1:0"}, "log": {"format": "json"}, "shutdown": {"drain": "50ms"},
        "alerting": {"listener": pki.listen(), "reject": {"receivers": [{"template": "slack", "url": format!("http://{}/", hangs.address), "timeout": "1h"}]}},
    });
    let process = Process::start_as("alerting", "alerting", &config.to_string(), LIMIT_BYTES).await;
    if !process.is_limited() {
        return;
    }
    let pem = |name: &str| std::fs::read(pki.path(name)).unwrap();
    let identity = Identity {
        chain: certificates_from_pem(&pem("client.crt")).unwrap(),
        key: key_from_pem(&pem("client.key")).unwrap(),
    };
    let tls = client_config(Trust::Pem(&pem("ca.crt")), Some(identity)).unwrap();
    let origin = Origin { host: "127.0.0.1".into(), port: process.port, tls: Some(Arc::new(tls)), server_name: None };
    let client = Client::new(origin, Protocol::Http1, Limits { open_max: 100, idle_max: 0 });
    let call = async |images: String| {
        let alert = format!(
            r#"{{"admitted":false,"message":"m","kind":"Pod","namespace":"n","name":"p","requestId":"u","images":[{images}]}}"#
        );
        let body = format!(r#"{{"contract":1,"alerts":[{alert}]}}"#);
        let request = Request::post("/internal/v1/alerts").header("content-type", "application/json");
        client
            .fetch(request.body(Bytes::from(body)).unwrap(), 1 << 20, deadline())
            .await
            .map(|answer| answer.status().as_u16())
    };
    // Lists of empty items: eight times their text if they are read into memory.
    let large = || format!("{}\"\"", "\"\",".repeat((4 << 20) / 3 - 200));
    for _ in 0..3 {
        let answers = futures_util::future::join_all((0..20).map(|_| call(large()))).await;
        // A client that is refused while it sends may see the connection end.
        let taken = answers.iter().filter(|answer| matches!(answer, Ok(200))).count();
        assert!(answers.iter().all(|answer| matches!(answer, Ok(200 | 429) | Err(_))), "{answers:?}");
        assert!(taken < 20, "{answers:?}");
    }
    assert_eq!(call("\"a\"".to_owned()).await.unwrap(), 200);
    held_within_the_limit(process, "calls");
}

/// An API server with 280 `ConfigMap`s, each with an annotation of 250 KB. The server lists the objects in one page,
/// whatever page size is requested, or as a stream.
async fn annotated() -> Server {
    let item = |number: usize| {
        let metadata = json!({
            "namespace": "n", "name": format!("m-{number}"), "uid": format!("u-{number}"), "resourceVersion": "5",
            "annotations": {"big": "x".repeat(250_000)}, "managedFields": [{"manager": "y".repeat(10_000)}],
        });
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
    };
    let handler = move |request: Request<hyper::body::Incoming>| {
        let query = request.uri().query().unwrap_or_default();
        let event = |number| format!("{}\n", json!({"type": "ADDED", "object": item(number)}));
        let pieces: Vec<String> = if query.contains("sendInitialEvents") {
            let end =
                json!({"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}});
            (0..280).map(event).chain([format!("{}\n", json!({"type": "BOOKMARK", "object": end}))]).collect()
        } else if query.contains("watch") {
            Vec::new()
        } else {
            let head = r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":["#;
            let items = (0..280).map(|number| format!("{}{}", if number == 0 { "" } else { "," }, item(number)));
            [head.to_owned()].into_iter().chain(items).chain(["]}".to_owned()]).collect()
        };
        let is_watch = query.contains("watch");
        let frames = futures_util::stream::iter(
            pieces.into_iter().map(|piece| Ok(hyper::body::Frame::data(Bytes::from(piece)))),
        );
        let answer = if is_watch {
            let open = futures_util::stream::pending();
            StreamBody::new(futures_util::StreamExt::chain(frames, open)).boxed()
        } else {
            StreamBody::new(frames).boxed()
        };
        std::future::ready(Response::new(answer)).boxed()
    };
    Server::start(false, Arc::new(handler)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_that_nobody_asked_for_is_not_kept() {
    let (api, hook) =
        (annotated().await, Server::start(false, Arc::new(|_| std::future::ready(status(200, "")).boxed())).await);
    for streaming in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kube.yaml");
        kubeconfig(&path, api.address);
        let config = format!(
            "health: {{listen: \"127.0.0.1:0\"}}\nlog: {{format: json}}\nkubernetes: {{kubeconfig: \"{}\"}}\nwatcher:\n  \
             streamingLists: {streaming}\n  actions:\n  - {{id: some, resource: configmaps/v1, action: watch, annotations: {{big: \"\"}}, url: \"http://{}/\"}}\n",
            path.display(),
            hook.address
        );
        let process = Process::start_as("watcher", "health", &config, LIMIT_BYTES).await;
        let origin = Origin { host: "127.0.0.1".into(), port: process.port, tls: None, server_name: None };
        let health = Client::new(origin, Protocol::Http1, Limits { open_max: 1, idle_max: 0 });
        let page = async |path: &str| {
            let answer = health.fetch(Request::get(path).body(Bytes::new()).unwrap(), 1 << 20, deadline()).await;
            answer.map(|answer| String::from_utf8_lossy(answer.body()).into_owned()).unwrap_or_default()
        };
        let begun = Instant::now();
        while !page("/metrics").await.contains(r#"longhaul_watcher_calls_total{action="some",outcome="taken"} 280"#) {
            assert!(begun.elapsed() < PATIENCE, "{}", page("/readyz?verbose").await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        held_within_the_limit(process, if streaming { "a streamed list" } else { "a list" });
    }
}
