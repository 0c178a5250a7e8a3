//! Tests of a registry that fails: the service sends it no requests for a while, and uses cached results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use service::run::Options;
use service_core::wire::Protocol;

use crate::admission::{ask, pod, review};
use crate::support::raw::{Answer, Raw};
use crate::support::registry::digest;
use crate::support::{PATIENCE, Service};

/// A service that uses the registry at `host`.
async fn service(host: &str) -> Service {
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\nshutdown: {{drain: 50ms}}\n\
         health: {{listen: \"127.0.0.1:0\"}}\nresolve: {{registries: [{{host: \"{host}\", plainHttp: true}}]}}\n"
    );
    Service::start("admission", &config, Options::default()).await
}

/// An HTTP answer with status 200 and the digest of an index.
fn found() -> Vec<u8> {
    let (index, digest) = ("content-type: application/vnd.oci.image.index.v1+json", digest());
    format!("HTTP/1.1 200 OK\r\n{index}\r\ndocker-content-digest: {digest}\r\nconnection: close\r\n\r\n").into()
}

/// An HTTP answer with this status and no body.
fn empty(status: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").into()
}

#[tokio::test]
async fn a_registry_that_keeps_failing_is_not_asked_until_a_probe_succeeds() {
    let sick = Arc::new(AtomicBool::new(false));
    let state = Arc::clone(&sick);
    let registry = Raw::start(move |_| {
        Answer::Bytes(if state.load(Ordering::Relaxed) { empty("503 Service Unavailable") } else { found() })
    })
    .await;
    let host = registry.host();
    let service = service(&host).await;
    let client = service.webhook(Protocol::Http1);
    let about = async |names: &[&str]| {
        let images: Vec<_> = names.iter().map(|name| format!("{host}/{name}")).collect();
        ask(&client, &review("v1", &pod(&images.iter().map(String::as_str).collect::<Vec<_>>()))).await
    };
    let shows = async |line: &str| service.health("/metrics").await.1.contains(line);
    let gauge = |value: u8| format!("longhaul_registry_breakers_open{{registry=\"{host}\"}} {value}\n");
    assert_eq!(about(&["known:1"]).await["allowed"], true);
    assert!(shows(&gauge(0)).await);

    sick.store(true, Ordering::Relaxed);
    // Each of them is requested three times.
    let answer = about(&["a:1", "b:1", "c:1", "d:1"]).await;
    assert_eq!(answer["allowed"], false, "{answer}");
    assert!(shows(&gauge(1)).await);
    let before = registry.heads().len();
    let answer = about(&["e:1"]).await;
    let message = answer["status"]["message"].as_str().unwrap();
    assert!(message.contains("unavailable: ") && message.contains("is not asked for some seconds"), "{message}");
    assert!(message.contains("it answered 503"), "{message}");
    assert_eq!(about(&["known:1"]).await["allowed"], true, "what is known is served");
    assert_eq!(registry.heads().len(), before, "it was left alone");

    sick.store(false, Ordering::Relaxed);
    let healed = async { while about(&["e:1"]).await["allowed"] != true {} };
    tokio::time::timeout(PATIENCE, healed).await.expect("a probe is let through");
    assert!(shows(&gauge(0)).await);
    for to in ["open", "closed"] {
        let line = format!("longhaul_registry_breaker_transitions_total{{registry=\"{host}\",to=\"{to}\"}} 1\n");
        assert!(shows(&line).await, "{line}");
    }
    service.app.stop().await;
}

/// If a registry fails only for some images, its breaker stays closed, because the check of the registry's health
/// succeeds.
#[tokio::test]
async fn images_that_fail_are_no_outage_for_others() {
    let registry = Raw::start(|head| {
        Answer::Bytes(match head {
            head if head.contains("/evil") => empty("500 Internal Server Error"),
            head if head.contains(" /v2/ ") => empty("401 Unauthorized"),
            _ => found(),
        })
    })
    .await;
    let host = registry.host();
    let service = service(&host).await;
    let client = service.webhook(Protocol::Http1);
    let about = async |names: &[String]| {
        let images: Vec<_> = names.iter().map(|name| format!("{host}/{name}")).collect();
        ask(&client, &review("v1", &pod(&images.iter().map(String::as_str).collect::<Vec<_>>()))).await
    };
    for round in 0..3 {
        // Twelve images in twelve repositories, each requested three times.
        let evil: Vec<String> = (0..12).map(|number| format!("evil{round}{number}:1")).collect();
        assert_eq!(about(&evil).await["allowed"], false);
        let good = about(&[format!("good{round}:1")]).await;
        assert_eq!(good["allowed"], true, "{good}");
    }
    let gauge = format!("longhaul_registry_breakers_open{{registry=\"{host}\"}} 0\n");
    assert!(service.health("/metrics").await.1.contains(&gauge));
    service.app.stop().await;
}
