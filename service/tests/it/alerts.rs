//! Tests of alerts: each review causes each alert once, dry runs cause none, and an absent receiver has a limited cost.

use std::sync::Arc;

use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use service::run::Options;
use service_core::wire::Protocol;

use crate::admission::{pod, post, review};
use crate::support::registry::Registry;
use crate::support::{Server, Service, status, until};

/// A receiver that answers with this status, and the alerts it got.
pub async fn receiver(code: u16) -> (Server, Arc<Mutex<Vec<Value>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&told);
    let handler = move |request: http::Request<hyper::body::Incoming>| {
        let into = Arc::clone(&into);
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            into.lock().push(serde_json::from_slice(&body).unwrap());
            status(code, "ok")
        }
        .boxed()
    };
    (Server::start(false, Arc::new(handler)).await, told)
}

async fn start(registry: &Registry, alerts: &str) -> Service {
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\nshutdown: {{drain: 50ms}}\n\
         resolve: {{registries: [{{host: \"{}\", plainHttp: true}}]}}\nalerting: {{{alerts}}}\n",
        registry.host()
    );
    Service::start("admission", &config, Options::default()).await
}

async fn ask(service: &Service, path: &str, review: Value) -> Value {
    let answer = post(&service.webhook(Protocol::Http1), path, review.to_string()).await;
    serde_json::from_slice::<Value>(answer.body()).unwrap()["response"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_decision_is_told_once_and_dry_runs_never() {
    let registry = Registry::start().await;
    let ((admit, admitted), (reject, refused)) = (receiver(200).await, receiver(200).await);
    let alerts = format!(
        "cluster: c, admit: {{receivers: [{{template: ecs-1-12-0, url: 'http://{}/'}}]}}, \
         reject: {{receivers: [{{template: ecs-1-12-0, url: 'http://{}/'}}]}}",
        admit.address, reject.address
    );
    let service = start(&registry, &alerts).await;
    let (good, absent) = (format!("{}/good:1", registry.host()), format!("{}/absent:1", registry.host()));
    let mut dry = review("v1", &pod(&[&good]));
    dry["request"]["dryRun"] = json!(true);
    assert_eq!(ask(&service, "/mutate", dry.clone()).await["allowed"], true);
    dry["request"]["object"] = pod(&[&absent]);
    assert_eq!(ask(&service, "/mutate", dry).await["allowed"], false);
    let without = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": []}});
    assert_eq!(ask(&service, "/mutate", review("v1", &without)).await["allowed"], true);
    assert_eq!(ask(&service, "/mutate", review("v1", &pod(&[&good, &good]))).await["allowed"], true);
    let pinned = format!("{good}@{}", crate::support::registry::digest());
    assert_eq!(ask(&service, "/validate", review("v1", &pod(&[&pinned]))).await["allowed"], true);
    assert_eq!(ask(&service, "/mutate", review("v1", &pod(&[&absent]))).await["allowed"], false);
    let both = || !admitted.lock().is_empty() && !refused.lock().is_empty();
    until("both are told", both).await;
    // Alerts not sent before these are never sent: each receiver gets them in order.
    assert_eq!(ask(&service, "/mutate", review("v1", &pod(&["127.0.0.1:1/last:1"]))).await["allowed"], false);
    until("the last one is told", || refused.lock().len() > 1).await;
    let (admitted, refused) = (admitted.lock().clone(), refused.lock().clone());
    assert_eq!(admitted.len(), 1, "{admitted:#?}");
    assert_eq!(admitted[0]["container"]["image"]["name"], good);
    assert_eq!((refused.len(), &refused[0]["container"]["image"]["name"]), (2, &json!(absent)));
    assert!(refused[0]["message"].as_str().unwrap().contains("Pod was refused: "), "{}", refused[0]);
    assert_eq!(refused[0]["event"]["id"], "the-uid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_delays_nothing_unless_nothing_is_admitted_without_it() {
    let registry = Registry::start().await;
    let good = format!("{}/good:1", registry.host());
    for (blocking, allowed) in [(false, true), (true, false)] {
        let alerts = format!(
            "admit: {{receivers: [{{name: ops, template: slack, url: 'http://127.0.0.1:1/', failIfAlertSendingFails: {blocking}}}]}}"
        );
        let service = start(&registry, &alerts).await;
        let answer = ask(&service, "/mutate?timeout=2s", review("v1", &pod(&[&good]))).await;
        assert_eq!(answer["allowed"], allowed, "{answer}");
        if blocking {
            let said = answer["status"]["message"].as_str().unwrap();
            assert!(said.starts_with("the alert could not be sent to ops: "), "{said}");
        }
    }
}
