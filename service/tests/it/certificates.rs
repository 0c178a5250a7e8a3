//! Tests of the webhook's certificates that two replicas make while reviews are sent: from an empty Secret, through
//! rotations of certificate and authority.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use service::run::Options;
use service_core::wire::{Client, Limits, Origin, Protocol, Trust, certificates_from_pem, client_config};

use crate::admission::{pod, review};
use crate::support::api::Api;
use crate::support::{Service, deadline, kubeconfig, until};

const SECRET: &str = "/api/v1/namespaces/ours/secrets/longhaul-webhook-certificates";
const WEBHOOK: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/longhaul-webhook";

/// An API server with the objects of the manifests: an empty Secret, and a webhook configuration without `caBundle`.
async fn applied() -> Api {
    let api = Api::start(false).await;
    let service = json!({"namespace": "ours", "name": "longhaul-webhook", "path": "/mutate"});
    let ours = json!({"name": "images.longhaul.dev", "clientConfig": {"service": service}});
    let other = json!({"name": "other", "clientConfig": {"service": {"namespace": "theirs", "name": "x"}}});
    let mut world = api.world.lock();
    world.core.insert(SECRET.into(), json!({"metadata": {"resourceVersion": "1"}}));
    world.core.insert(WEBHOOK.into(), json!({"webhooks": [ours, other]}));
    drop(world);
    api
}

async fn replica(api: &Api, section: &str) -> Service {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kube.yaml");
    kubeconfig(&path, api.address());
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", ownCertificates: {{namespace: ours, {section}}}}}\n\
         health: {{listen: \"127.0.0.1:0\"}}\nkubernetes: {{kubeconfig: \"{}\"}}\nshutdown: {{drain: 50ms}}\n",
        path.display()
    );
    Service::start("admission", &config, Options::default()).await
}

fn decoded(value: &Value) -> Option<Vec<u8>> {
    base64::engine::general_purpose::STANDARD.decode(value.as_str()?).ok()
}

/// The authorities that the webhook configuration of the API server contains at present.
fn bundle(api: &Api) -> Option<Vec<u8>> {
    decoded(&api.world.lock().core[WEBHOOK]["webhooks"][0]["clientConfig"]["caBundle"])
}

fn held(api: &Api, key: &str) -> Option<Vec<u8>> {
    decoded(&api.world.lock().core[SECRET]["data"][key])
}

/// Sends one review over a new connection, as an API server that trusts `bundle`.
async fn call(service: &Service, bundle: &[u8]) -> Result<(), String> {
    let tls = client_config(Trust::Pem(bundle), None).map_err(|error| error.to_string())?;
    let port = service.app.address("admission").unwrap().port();
    let name = Some("longhaul-webhook.ours.svc".to_owned());
    let origin = Origin { host: "127.0.0.1".into(), port, tls: Some(Arc::new(tls)), server_name: name };
    let client = Client::new(origin, Protocol::Http1, Limits { open_max: 1, idle_max: 0 });
    let body = Bytes::from(review("v1", &pod(&[])).to_string());
    let request = Request::post("/mutate").header("content-type", "application/json").body(body).unwrap();
    let answer = client.fetch(request, 1 << 20, deadline()).await.map_err(|error| error.to_string())?;
    if answer.status() == 200 { Ok(()) } else { Err(answer.status().to_string()) }
}

async fn ready(service: &Service) -> String {
    let begun = Instant::now();
    loop {
        let (status, text) = service.health("/readyz?verbose").await;
        if status == 200 {
            return text;
        }
        assert!(begun.elapsed() < crate::support::PATIENCE, "{text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn certificate_and_authority_are_replaced_under_load_without_a_failed_call() {
    let api = applied().await;
    let section = "authorityLifetime: 12s, leafLifetime: 4s, settle: 1s, interval: 100ms";
    let replicas = [replica(&api, section).await, replica(&api, section).await];
    for service in &replicas {
        ready(service).await;
    }
    until("the configuration trusts somebody", || bundle(&api).is_some()).await;
    let first = held(&api, "authority.crt").unwrap();
    // An open connection is kept all the time.
    let kept = bundle(&api).unwrap();
    let (begun, mut calls, mut failed, mut leaves) = (Instant::now(), 0, Vec::new(), std::collections::BTreeSet::new());
    // The configuration as this API server has read it: half a second late.
    let mut seen = (Instant::now(), kept);
    let over = |api: &Api| {
        held(api, "authority.crt").is_some_and(|now| now != first)
            && held(api, "next.crt").is_none()
            && held(api, "previous.crt").is_none()
    };
    while !over(&api) {
        assert!(
            begun.elapsed() < crate::support::PATIENCE * 2,
            "no rotation ends: {:?}",
            api.world.lock().core[SECRET]
        );
        if seen.0.elapsed() > Duration::from_millis(500) {
            seen = (Instant::now(), bundle(&api).unwrap());
        }
        leaves.extend(held(&api, "tls.crt"));
        for service in &replicas {
            calls += 1;
            if let Err(error) = call(service, &seen.1).await {
                failed.push((begun.elapsed(), error));
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(failed.is_empty(), "of {calls} calls {} failed: {:?}", failed.len(), failed.first());
    assert!(calls > 20 && leaves.len() >= 4, "{calls} calls, {} certificates", leaves.len());
    // The configuration is written after the Secret.
    let trusted = || certificates_from_pem(&bundle(&api).unwrap()).unwrap().len();
    until("the first authority is trusted no more", || trusted() == 1).await;
    let steps = format!("{}{}", replicas[0].health("/metrics").await.1, replicas[1].health("/metrics").await.1);
    for step in ["begin", "publish", "introduce", "confirm", "switch", "retire", "renew"] {
        assert!(steps.contains(&format!("longhaul_certificates_steps_total{{step=\"{step}\"}}")), "{step}");
    }
    {
        let world = api.world.lock();
        assert!(world.core[WEBHOOK]["webhooks"][1]["clientConfig"]["caBundle"].is_null(), "nobody else's is touched");
        assert!(
            held_names(&world.core[SECRET]).iter().all(|name| !name.starts_with("next")),
            "what is over is removed"
        );
    }
    for service in replicas {
        service.app.stop().await;
    }
}

fn held_names(secret: &Value) -> Vec<String> {
    secret["data"].as_object().unwrap().keys().cloned().collect()
}

#[tokio::test]
async fn a_replica_without_a_certificate_is_not_ready_and_says_why() {
    let api = applied().await;
    let secret = api.world.lock().core.remove(SECRET).unwrap();
    let service = replica(&api, "interval: 100ms").await;
    let begun = Instant::now();
    while !service.health("/readyz").await.1.contains("does not exist: apply what") {
        assert!(begun.elapsed() < crate::support::PATIENCE, "{}", service.health("/readyz?verbose").await.1);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(service.health("/readyz").await.0, 503);
    assert_eq!(service.health("/livez").await.0, 200, "a restart would not help");
    api.world.lock().core.insert(SECRET.into(), secret);
    ready(&service).await;
    until("the configuration trusts somebody", || bundle(&api).is_some()).await;
    call(&service, &bundle(&api).unwrap()).await.unwrap();
    // If it is applied again without a bundle, the bundle is restored; and a missing configuration is named.
    api.world.lock().core.get_mut(WEBHOOK).unwrap()["webhooks"][0]["clientConfig"]["caBundle"] = Value::Null;
    until("the configuration trusts somebody again", || bundle(&api).is_some()).await;
    api.world.lock().core.remove(WEBHOOK);
    let begun = Instant::now();
    while !ready(&service)
        .await
        .contains("[!]certificates: there is no mutatingwebhookconfigurations/longhaul-webhook: apply it")
    {
        assert!(begun.elapsed() < crate::support::PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    service.app.stop().await;
    assert!(api.world.lock().lease["spec"]["holderIdentity"].is_null(), "the lease was given back");
}
