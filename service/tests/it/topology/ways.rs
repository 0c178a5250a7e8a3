//! Tests of connections to validators that stop, come back, are replaced one by one, or get new keys or certificates,
//! and of a start without validators.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use service::run::Options;
use service_core::wire::{Client, Protocol};

use super::world::{Pki, admission, all, at, config, cosign, manager, signed, validator};
use crate::admission::{ask, pod, review};
use crate::support::signed::Key;
use crate::support::{PATIENCE, Service};

async fn about(client: &Client, image: &str) -> Value {
    ask(client, &review("v1", &pod(&[image]))).await
}

fn message(answer: &Value) -> &str {
    answer["status"]["message"].as_str().unwrap_or_default()
}

/// A free port that a later process can bind again.
fn port() -> std::net::SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_validator_that_is_gone_is_unavailable_and_asked_again_when_it_is_back() {
    let (key, pki) = (Key::new(), Pki::new());
    let (registry, _) = signed(&key).await;
    let (host, address) = (registry.host(), port());
    let manager = manager(&host, &pki, &[address], &all()).await;
    let client = manager.webhook(Protocol::Http1);
    let answer = ask_within(&client, &registry.image("good"), "1s").await;
    assert_eq!(answer["allowed"], false);
    let said = message(&answer);
    assert!(said.contains(": unavailable: "), "{said}");
    let text =
        config(&host, &[cosign(&[("default", &key)])], &json!({}), &json!({"validator": pki.listen_at(address)}));
    let back = Service::start("validator", &text, Options::default()).await;
    let started = Instant::now();
    loop {
        let answer = about(&client, &registry.image("good")).await;
        if answer["allowed"] == true {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{answer}");
    }
    assert!(message(&about(&client, &registry.image("bad")).await).contains(": unsigned: "));
    back.app.stop().await;
}

async fn ask_within(client: &Client, image: &str, timeout: &str) -> Value {
    let path = format!("/mutate?timeout={timeout}");
    let answer = crate::admission::post(client, &path, review("v1", &pod(&[image])).to_string()).await;
    serde_json::from_slice::<Value>(answer.body()).unwrap()["response"].clone()
}

/// While validators are replaced one after the other, no inquiry fails.
#[tokio::test(flavor = "multi_thread")]
async fn no_question_fails_while_validators_are_replaced() {
    let (key, pki) = (Key::new(), Pki::new());
    let (registry, _) = signed(&key).await;
    let (host, address) = (registry.host(), port());
    let text =
        config(&host, &[cosign(&[("default", &key)])], &json!({}), &json!({"validator": pki.listen_at(address)}));
    let mut running = Service::start("validator", &text, Options::default()).await;
    // Nothing is cached, so that each review asks.
    let mut policy = all();
    policy["cache"] = json!({"maxBytes": "0B"});
    let manager = manager(&host, &pki, &[address], &policy).await;
    let image = registry.image("good");
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut askers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (client, image, stopped) = (manager.webhook(Protocol::Http1), image.clone(), stopped.clone());
        askers.spawn(async move {
            let mut asked = 0;
            while !*stopped.borrow() {
                let answer = about(&client, &image).await;
                assert_eq!(answer["allowed"], true, "{answer}");
                asked += 1;
            }
            asked
        });
    }
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        running.app.stop().await;
        running = Service::start("validator", &text, Options::default()).await;
    }
    stop.send(true).unwrap();
    let asked: usize = askers.join_all().await.into_iter().sum();
    assert!(asked > 50, "{asked}");
}

/// During a rollout, one validator process already trusts the new key and another does not. Each validator process
/// answers by its own key; after the rollout, no old verdict is used.
#[tokio::test(flavor = "multi_thread")]
async fn half_a_rollout_answers_both_and_another_trust_leaves_no_old_verdict() {
    let (key, stranger, pki) = (Key::new(), Key::new(), Pki::new());
    let (registry, _) = signed(&key).await;
    let host = registry.host();
    let old = validator(&host, &pki, &[cosign(&[("default", &key)])]).await;
    let new = validator(&host, &pki, &[cosign(&[("default", &stranger)])]).await;
    let addresses = [at(&old, "validator"), at(&new, "validator")];
    let mut policy = all();
    policy["cache"] = json!({"maxBytes": "0B"});
    let both = manager(&host, &pki, &addresses, &policy).await;
    let client = both.webhook(Protocol::Http1);
    let (mut yes, mut no) = (0, 0);
    for _ in 0..20 {
        match about(&client, &registry.image("good")).await {
            answer if answer["allowed"] == true => yes += 1,
            answer if message(&answer).contains(": invalid: ") => no += 1,
            answer => panic!("{answer}"),
        }
    }
    assert!(yes >= 5 && no >= 5, "{yes} by the old trust, {no} by the new one");
    // A verdict is cached for an hour, but not past the trust that gave it.
    let remembering = manager_of_one(&host, &pki, addresses[0]).await;
    let client = remembering.webhook(Protocol::Http1);
    assert_eq!(about(&client, &registry.image("good")).await["allowed"], true);
    old.app.stop().await;
    let text = config(
        &host,
        &[cosign(&[("default", &stranger)])],
        &json!({}),
        &json!({"validator": pki.listen_at(addresses[0])}),
    );
    let rotated = Service::start("validator", &text, Options::default()).await;
    let started = Instant::now();
    while about(&client, &registry.image("good")).await["allowed"] == true {
        assert!(started.elapsed() < PATIENCE, "the old verdict is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    rotated.app.stop().await;
}

async fn manager_of_one(host: &str, pki: &Pki, address: std::net::SocketAddr) -> Service {
    manager(host, pki, &[address], &all()).await
}

/// If no validator runs, the validator's own image starts by its digest in its namespace, and no other image starts.
#[tokio::test(flavor = "multi_thread")]
async fn the_validators_own_image_starts_by_its_digest_alone() {
    let (key, pki) = (Key::new(), Pki::new());
    let (registry, _) = signed(&key).await;
    let own = registry.push("validator");
    let mut policy = all();
    policy["bootstrap"] = json!({"namespace": "longhaul-system", "digests": [own]});
    policy["cache"] = json!({"maxBytes": "0B"});
    let manager = manager(&registry.host(), &pki, &["127.0.0.1:1".parse().unwrap()], &policy).await;
    let client = manager.webhook(Protocol::Http1);
    let in_namespace = async |namespace: &str, images: &[&str]| {
        let mut review = review("v1", &pod(images));
        review["request"]["namespace"] = namespace.into();
        let answer = crate::admission::post(&client, "/mutate?timeout=1s", review.to_string()).await;
        serde_json::from_slice::<Value>(answer.body()).unwrap()["response"].clone()
    };
    let listed = format!("{}@{own}", registry.image("validator"));
    let answer = in_namespace("longhaul-system", &[&listed]).await;
    assert_eq!(answer["allowed"], true, "{answer}");
    assert_eq!(answer["auditAnnotations"]["bootstrap"], json!(format!("[\"{listed}\"]")));
    for (namespace, images) in [
        ("default", vec![&*listed]),
        ("longhaul-system", vec![&*registry.image("validator")]),
        ("longhaul-system", vec![&*listed, &*registry.image("good")]),
    ] {
        let answer = in_namespace(namespace, &images).await;
        assert_eq!(answer["allowed"], false, "{namespace} {images:?}");
        assert!(message(&answer).contains(": unavailable: "), "{answer}");
    }
}

/// A client without a certificate of the installation gets no answer. A process with the role admission whose
/// certificate is replaced continues to work.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_addresses_and_files_are_refused_at_the_start() {
    let refused = |remote: Value| {
        let validators = [json!({"name": "default", "type": "remote", "remote": remote})];
        let text = config("r:1", &validators, &json!({"rules": [{"pattern": "*"}]}), &admission());
        service::config::parse(&text, std::path::Path::new("/c/s.yaml")).unwrap_err().to_string()
    };
    let url = "https://v:1";
    for (remote, what) in [
        (
            json!({"instances": [{"url": "http://v:1"}]}),
            "remote.instances[0].url: `http://v:1` is no address: write https://host:port",
        ),
        (json!({"instances": []}), "remote.instances: 0 is out of range: 1 to 32"),
        (
            json!({"instances": [{"url": url}, {"url": url}]}),
            "remote.instances[1].url: is there twice: write a weight instead",
        ),
        (json!({"instances": [{"url": url, "weight": 0}]}), "remote.instances[0].weight: 0 is out of range"),
        (json!({"instances": [{"url": url}], "key": "k"}), "certificate and key go together"),
        (json!({"instances": [{"url": url}], "answers": "ratify"}), "has no effect with `type: remote`"),
        (json!({"instances": [{"url": url}], "wieght": 1}), "wieght"),
    ] {
        let said = refused(remote);
        assert!(said.contains(what), "{said}");
    }
}
