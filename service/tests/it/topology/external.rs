//! Tests of Gatekeeper's external data: this project's provider, and a rule that uses a provider.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use service::run::Options;
use service_contract::link::{Files, Link};
use service_core::wire::{Limits, Protocol};

use super::world::{Pki, Says, Speaker, admission, all, at, config, cosign, signed};
use crate::admission::{pod, post, review};
use crate::support::signed::{Key, Signed};
use crate::support::{Body, Service, deadline, status};

const API_VERSION: &str = "externaldata.gatekeeper.sh/v1beta1";

/// A process with the role validator, whose policy demands a signature for every image.
pub async fn provider(registry: &Signed, pki: &Pki, key: &Key) -> Service {
    let text = config(&registry.host(), &[cosign(&[("default", key)])], &all(), &json!({"validator": pki.listen()}));
    Service::start("validator", &text, Options::default()).await
}

fn question(keys: &[&str]) -> Value {
    json!({"apiVersion": API_VERSION, "kind": "ProviderRequest", "request": {"keys": keys}})
}

#[tokio::test(flavor = "multi_thread")]
async fn gatekeeper_asks_us_and_gets_the_class_in_the_value() {
    let (key, pki) = (Key::new(), Pki::new());
    let (registry, digest) = signed(&key).await;
    let provider = provider(&registry, &pki, &key).await;
    let files =
        Files { ca: Some(pki.path("ca.crt")), identity: Some((pki.path("client.crt"), pki.path("client.key"))) };
    let url = format!("https://{}", at(&provider, "validator"));
    let link = Link::open(&url, &files, Protocol::Http1, Limits { open_max: 1, idle_max: 1 }).unwrap();
    let ask = async |body: String| {
        let request = Request::post("/externaldata/v1beta1").body(Bytes::from(body)).unwrap();
        let answer = link.client().fetch(request, 1 << 20, deadline()).await.unwrap();
        assert_eq!(answer.status(), 200);
        serde_json::from_slice::<Value>(answer.body()).unwrap()
    };
    let (good, bad, absent) = (registry.image("good"), registry.image("bad"), registry.image("absent"));
    let answer = ask(question(&[&good, &bad, &absent, "no reference"]).to_string()).await;
    assert_eq!((&answer["apiVersion"], &answer["kind"]), (&json!(API_VERSION), &json!("ProviderResponse")));
    let items = answer["response"]["items"].as_array().unwrap();
    let seen: Vec<_> =
        items.iter().map(|item| (item["key"].as_str().unwrap(), item["value"]["verdict"].as_str().unwrap())).collect();
    assert_eq!(
        seen,
        [(&*good, "verified"), (&*bad, "unsigned"), (&*absent, "not-found"), ("no reference", "misconfigured")]
    );
    assert_eq!((&items[0]["value"]["digest"], items[0].get("error")), (&json!(digest), None));
    assert!(items[1]["error"].as_str().unwrap().starts_with("unsigned: "), "who looks at errors alone lets nothing in");
    for wrong in ["{}".to_owned(), "[".to_owned(), question(&["x"; 129]).to_string()] {
        let answer = ask(wrong).await;
        assert!(!answer["response"]["systemError"].as_str().unwrap_or_default().is_empty(), "{answer}");
    }
}

async fn manager(registry: &Signed, pki: &Pki, address: std::net::SocketAddr, path: &str, form: &str) -> Service {
    let mut remote = pki.remote(&[address]);
    remote["instances"][0]["url"] = format!("https://{address}{path}").into();
    remote["answers"] = form.into();
    remote["timeout"] = "500ms".into();
    let validator = json!({"name": "other", "type": "externalData", "remote": remote});
    let policy = json!({"rules": [{"pattern": "*", "validator": "other"}]});
    Service::start("admission", &config(&registry.host(), &[validator], &policy, &admission()), Options::default())
        .await
}

async fn review_image(service: &Service, image: &str) -> (bool, String) {
    let review = review("v1", &pod(&[image])).to_string();
    let answer = post(&service.webhook(Protocol::Http1), "/mutate?timeout=3s", review).await;
    let answer: Value = serde_json::from_slice(answer.body()).unwrap();
    let said = answer["response"]["status"]["message"].as_str().unwrap_or_default().to_owned();
    (answer["response"]["allowed"] == true, said)
}

#[tokio::test(flavor = "multi_thread")]
async fn our_rule_asks_our_provider_and_keeps_the_classes() {
    let (key, pki) = (Key::new(), Pki::new());
    let (registry, _) = signed(&key).await;
    let provider = provider(&registry, &pki, &key).await;
    let manager = manager(&registry, &pki, at(&provider, "validator"), "/externaldata/v1beta1", "longhaul").await;
    assert!(review_image(&manager, &registry.image("good")).await.0);
    let (allowed, said) = review_image(&manager, &registry.image("bad")).await;
    assert!(!allowed && said.contains(": unsigned: "), "{said}");
}

fn answers(repository: &str, key: &str) -> Response<Body> {
    let item = |item: Value| {
        let response = json!({"idempotent": true, "items": [item]});
        json!({"apiVersion": API_VERSION, "kind": "ProviderResponse", "response": response})
    };
    let answer = match repository {
        "good" => item(json!({"key": key, "value": {"isSuccess": true, "verifierReports": []}})),
        "text" => item(json!({"key": key, "value": "{\"isSuccess\": true}"})),
        "bad" => item(json!({"key": key, "value": {"isSuccess": false, "verifierReports": [{"isSuccess": false}]}})),
        "error" => item(json!({"key": key, "value": null, "error": "no such image: unsigned"})),
        "system" => {
            json!({"apiVersion": API_VERSION, "kind": "ProviderResponse", "response": {"items": [], "systemError": "down"}})
        }
        "other-key" => item(json!({"key": "another:1", "value": {"isSuccess": true}})),
        "twice" => {
            let mut answer = item(json!({"key": key, "value": {"isSuccess": true}}));
            let again = answer["response"]["items"][0].clone();
            answer["response"]["items"].as_array_mut().unwrap().push(again);
            answer
        }
        "doubled" | "doubled-text" => {
            let text = r#"{"isSuccess": false, "isSuccess": true}"#;
            let value = if repository == "doubled" { text.to_owned() } else { json!(text).to_string() };
            let answer = item(json!({"key": key, "value": "VALUE"})).to_string();
            return status(200, &answer.replace("\"VALUE\"", &value));
        }
        "form" => item(json!({"key": key, "value": {"ok": true}})),
        "ours" => item(json!({"key": key, "value": {"verdict": "verified"}})),
        "kind" => json!({"kind": "List", "items": []}),
        "html" => return status(200, "<html>"),
        "status" => return status(500, "oops"),
        _ => return status(200, &"x".repeat(1 << 20)),
    };
    status(200, &answer.to_string())
}

fn foreign() -> Says {
    Arc::new(|request| {
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let question: Value = serde_json::from_slice(&body).unwrap();
            let keys = question["request"]["keys"].as_array().unwrap();
            assert_eq!((keys.len(), &question["apiVersion"]), (1, &json!(API_VERSION)));
            let key = keys[0].as_str().unwrap();
            let repository = key.split('/').next_back().unwrap().split('@').next().unwrap().to_owned();
            if repository == "slow" {
                tokio::time::sleep(Duration::from_secs(20)).await;
            }
            answers(&repository, key)
        }
        .boxed()
    })
}

/// If a provider gives no answer about the image itself, the failure class is `unavailable`, whatever the provider's
/// message is.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_slow_wrong_or_enormous_approves_nothing() {
    let (pki, registry) = (Pki::new(), Signed::start().await);
    let provider = Speaker::start(&pki, foreign()).await;
    let manager = manager(&registry, &pki, provider.address, "/ratify/gatekeeper/v1/verify", "ratify").await;
    for repository in ["good", "text"] {
        registry.push(repository);
        assert_eq!(review_image(&manager, &registry.image(repository)).await, (true, String::new()), "{repository}");
    }
    for (repository, class, what) in [
        ("bad", "invalid", "the provider `other` does not approve of it"),
        ("error", "unavailable", "the provider `other` says: no such image: unsigned"),
        ("system", "unavailable", "the provider says: down"),
        ("other-key", "unavailable", "it answers other keys than asked: 1 items, 0 of them for this image"),
        ("twice", "unavailable", "it answers other keys than asked: 2 items, 2 of them for this image"),
        ("doubled", "unavailable", "its answer is not the fields of the contract at line 1"),
        ("doubled-text", "unavailable", "answers in another form than the configuration says (remote.answers)"),
        ("form", "unavailable", "answers in another form than the configuration says (remote.answers)"),
        ("ours", "unavailable", "answers in another form than the configuration says (remote.answers)"),
        ("kind", "unavailable", "its answer is no ProviderResponse of externaldata.gatekeeper.sh/v1beta1"),
        ("html", "unavailable", "its answer is no JSON at line 1, column 1"),
        ("enormous", "unavailable", "its answer is larger than 262144 bytes"),
        ("status", "unavailable", "it answered 500 Internal Server Error"),
        ("slow", "unavailable", "no answer within "),
    ] {
        registry.push(repository);
        let (allowed, said) = review_image(&manager, &registry.image(repository)).await;
        let late = ["status", "slow"].contains(&repository) && said.contains("no verdict on its signatures");
        assert!(
            !allowed && said.contains(&format!(": {class}: ")) && (said.contains(what) || late),
            "{repository}: {said}"
        );
    }
}
