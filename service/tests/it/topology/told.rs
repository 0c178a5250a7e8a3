//! Tests of alerts that one process passes to another.

use serde_json::{Value, json};
use service::run::Options;
use service_core::wire::Protocol;

use super::world::{Pki, admission, at, config};
use crate::admission::{pod, post, review};
use crate::alerts::receiver;
use crate::support::registry::Registry;
use crate::support::{Service, until};

fn remote(pki: &Pki, address: std::net::SocketAddr, blocking: bool) -> Value {
    json!({"url": format!("https://{address}"), "caFile": pki.path("ca.crt"), "certificate": pki.path("client.crt"),
           "key": pki.path("client.key"), "failIfAlertSendingFails": blocking})
}

async fn manager(registry: &Registry, alerts: Value) -> Service {
    let mut more = admission();
    more["alerting"] = alerts;
    Service::start("admission", &config(&registry.host(), &[], &json!({}), &more), Options::default()).await
}

async fn ask(service: &Service, image: &str) -> Value {
    let review = review("v1", &pod(&[image])).to_string();
    let answer = post(&service.webhook(Protocol::Http1), "/mutate?timeout=2s", review).await;
    serde_json::from_slice::<Value>(answer.body()).unwrap()["response"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_are_told_by_another_process_in_their_order_and_the_last_ones_at_the_end() {
    let (registry, pki) = (Registry::start().await, Pki::new());
    let (server, told) = receiver(200).await;
    let receivers = json!({"receivers": [{"template": "ecs-1-12-0", "url": format!("http://{}/", server.address)}]});
    let text = config("r:1", &[], &json!({}), &json!({"alerting": {"listener": pki.listen(), "reject": receivers}}));
    let alerting = Service::start("alerting", &text, Options::default()).await;
    for blocking in [false, true] {
        let alerts = json!({"remote": remote(&pki, at(&alerting, "alerting"), blocking)});
        let manager = manager(&registry, alerts).await;
        let before = told.lock().len();
        for index in 0..5 {
            assert_eq!(ask(&manager, &format!("{}/absent:{index}", registry.host())).await["allowed"], false);
        }
        manager.app.stop().await;
        until("all are told", || told.lock().len() >= before + 5).await;
        let images: Vec<_> =
            told.lock()[before..].iter().map(|alert| alert["container"]["image"]["name"].to_string()).collect();
        let expected: Vec<_> = (0..5).map(|index| format!("\"{}/absent:{index}\"", registry.host())).collect();
        assert_eq!(images, expected, "blocking: {blocking}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_alerts_that_is_gone_delays_nothing_unless_nothing_is_admitted_without_it() {
    let (registry, pki) = (Registry::start().await, Pki::new());
    let good = format!("{}/good:1", registry.host());
    let gone = "127.0.0.1:1".parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let dead = folder.path().join("dead");
    let mut short = remote(&pki, gone, false);
    short["queue"] = json!(1);
    let quiet = manager(&registry, json!({"remote": short, "deadLetters": dead})).await;
    let started = std::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(ask(&quiet, &good).await["allowed"], true);
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(2), "{:?}", started.elapsed());
    // Alerts without a place in its queue become dead letters, as for a receiver of this process.
    let letters = || std::fs::read_to_string(&dead).unwrap_or_default();
    until("letters are written", || letters().lines().count() >= 10).await;
    let letter: Value = serde_json::from_str(letters().lines().next().unwrap()).unwrap();
    assert_eq!((&letter["receiver"], &letter["error"]), (&json!("alerting"), &json!("its queue is full")), "{letter}");
    assert!(letter["body"]["images"].to_string().contains("good"), "{letter}");
    let strict = manager(&registry, json!({"remote": remote(&pki, gone, true)})).await;
    let answer = ask(&strict, &good).await;
    let said = answer["status"]["message"].as_str().unwrap_or_default();
    assert!(
        answer["allowed"] == false && said.starts_with("the alert could not be brought to https://127.0.0.1:1: "),
        "{answer}"
    );
}

/// Reviews can wait for a receiver that belongs to another process.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_of_the_other_process_may_decide() {
    let (registry, pki) = (Registry::start().await, Pki::new());
    let (server, told) = receiver(400).await;
    let url = format!("http://{}/", server.address);
    let receivers =
        json!({"receivers": [{"name": "ops", "template": "slack", "url": url, "failIfAlertSendingFails": true}]});
    let text = config("r:1", &[], &json!({}), &json!({"alerting": {"listener": pki.listen(), "admit": receivers}}));
    let alerting = Service::start("alerting", &text, Options::default()).await;
    let manager = manager(&registry, json!({"remote": remote(&pki, at(&alerting, "alerting"), true)})).await;
    let answer = ask(&manager, &format!("{}/good:1", registry.host())).await;
    let said = answer["status"]["message"].as_str().unwrap_or_default();
    assert!(
        answer["allowed"] == false && said.contains("the alert could not be sent to ops: it answered 400"),
        "{answer}"
    );
    assert_eq!(told.lock().len(), 1, "it is told once");
}
