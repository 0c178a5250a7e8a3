//! Tests of the role `packages` and its watch with an API server that fails in all documented ways.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::Value;
use service::run::Options;

use crate::support::api::{Api, Fault};
use crate::support::{Service, until};

/// Starts a service that watches `api` with short time limits.
async fn start(api: &Api, transport: &str, more: &str) -> Service {
    let options = Options { witness_url: Some(api.witness_url()), ..Options::default() };
    let watch = format!(", transport: {transport}, silenceLimit: 1s{more}");
    Service::watching(api.address(), &watch, "shutdown: {drain: 1s}", options).await
}

async fn page(service: &Service) -> Value {
    serde_json::from_str(&service.health("/debug/watch").await.1).unwrap()
}

/// Waits until the service's view equals the server's objects, and the witness has an observation of every existing
/// object.
async fn agrees(api: &Api, service: &Service) {
    // Measured from the last change of the view: a slow machine takes long for a thousand objects, a stuck service
    // stands still.
    let (mut moved, mut seen) = (Instant::now(), Value::Null);
    loop {
        // Both sides change until the reconciler has settled; equality at one moment is enough.
        let before = api.checksum();
        let page = page(service).await;
        if page["checksum"] == before.as_str() && api.checksum() == before {
            break;
        }
        if page["resourceVersion"] != seen {
            (moved, seen) = (Instant::now(), page["resourceVersion"].clone());
        }
        assert!(moved.elapsed() < crate::support::PATIENCE, "the views differ: {page:#}");
        // Both checksums go over every object, on the thread that the service uses too.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (mut moved, mut lines) = (Instant::now(), 0);
    while !is_witnessed(api) {
        let known = api.world.lock().witnessed.len();
        if known != lines {
            (moved, lines) = (Instant::now(), known);
        }
        assert!(moved.elapsed() < crate::support::PATIENCE, "the witness learns of every object: {lines} lines");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether the witness has an observation of the present version of every existing object.
fn is_witnessed(api: &Api) -> bool {
    let world = api.world.lock();
    // This runs on the service's thread, so it compares only if it can be true, and without a copy.
    world.witnessed.len() >= world.packages.len() && {
        let told: HashSet<_> = world.witnessed.iter().map(version).collect();
        world.packages.values().all(|object| told.contains(&version(&object["metadata"])))
    }
}

fn version(from: &Value) -> (Option<&str>, Option<&str>) {
    (from["uid"].as_str(), from["resourceVersion"].as_str())
}

fn deleted(api: &Api, name: &str) -> bool {
    api.world.lock().witnessed.iter().any(|line| line["name"] == name && line["change"] == "deleted")
}

#[tokio::test]
async fn a_list_in_pages_then_events_over_both_transports() {
    for (transport, http2) in [("http1", false), ("http2", true)] {
        let api = Api::start(http2).await;
        for index in 0..1201 {
            api.create(&format!("p{index:05}"), &[]);
        }
        let service = start(&api, transport, "").await;
        until("all pages are listed", || api.world.lock().count("GET /apis/longhaul.dev/v1alpha1/packages") >= 3).await;
        api.create("late", &[80]);
        agrees(&api, &service).await;
        assert_eq!(service.health("/readyz").await.0, 200);
        assert_eq!(service.health("/livez").await.0, 200);
        api.delete("late");
        until("the deletion is witnessed", || deleted(&api, "late")).await;
        agrees(&api, &service).await;
        let page = page(&service).await;
        assert_eq!((&page["relists"]["start"], &page["lost"]), (&1.into(), &0.into()), "{page:#}");
        service.app.stop().await;
    }
}

/// Causes a fault in a running watch, changes objects during the fault, and expects the right view afterwards.
async fn survives(fault: Fault, expected: impl Fn(&Value) -> bool) {
    let api = Api::start(false).await;
    api.create("stays", &[]);
    api.create("goes", &[]);
    let service = start(&api, "http1", "").await;
    agrees(&api, &service).await;
    api.fault(fault.clone());
    // Silence ends the first stream, and the next request meets the fault.
    until("the fault is hit", || api.world.lock().watch_faults.is_empty()).await;
    api.delete("goes");
    api.create("comes", &[]);
    agrees(&api, &service).await;
    until("the deletion is witnessed", || deleted(&api, "goes")).await;
    let page = page(&service).await;
    assert!(expected(&page), "after {fault:?}: {page:#}");
    service.app.stop().await;
}

const GONE: &str = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
const ERROR: &str = r#"{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd"}}"#;

#[tokio::test]
async fn gone_as_status_leads_to_a_relist() {
    survives(Fault::Status(410, None), |page| page["relists"]["expired"].as_u64() >= Some(1)).await;
}

#[tokio::test]
async fn gone_in_a_stream_that_stays_open_leads_to_a_relist() {
    survives(Fault::LineThenHold(GONE.into()), |page| page["relists"]["expired"].as_u64() >= Some(1)).await;
}

#[tokio::test]
async fn another_error_in_a_stream_that_stays_open_is_resumed() {
    survives(Fault::LineThenHold(ERROR.into()), |page| page["relists"]["expired"] == 0).await;
}

#[tokio::test]
async fn silence_is_noticed_and_resumed() {
    survives(Fault::Silence, |page| page["lastError"]["text"].as_str().is_some_and(|text| text.contains("torn down")))
        .await;
}

#[tokio::test]
async fn a_torn_line_and_unavailability_are_resumed() {
    survives(Fault::Torn(1), |page| page["lost"] == 0).await;
    survives(Fault::Status(503, Some(1)), |page| page["lost"] == 0).await;
}

#[tokio::test]
async fn streams_that_end_at_once_make_no_hot_loop() {
    no_hot_loop("http1", false).await;
}

#[tokio::test]
async fn streams_that_end_at_once_make_no_hot_loop_over_http2() {
    no_hot_loop("http2", true).await;
}

async fn no_hot_loop(transport: &str, http2: bool) {
    let api = Api::start(http2).await;
    for _ in 0..50 {
        api.fault(Fault::Empty);
    }
    let service = start(&api, transport, "").await;
    let begun = Instant::now();
    until("some watches are opened", || api.world.lock().count("packages?watch") >= 5).await;
    let elapsed = begun.elapsed().as_secs_f64();
    assert!(5.0 / elapsed < 2.0, "5 requests in {elapsed} s");
    until("the empty streams are answered with a list", || {
        api.world.lock().requests.iter().filter(|(_, request)| request.ends_with("/packages")).count() >= 2
    })
    .await;
    let watches = api.world.lock().count("packages?watch");
    assert!(watches < 10, "{watches} watches ended at once before the first list");
    service.app.stop().await;
}

#[tokio::test]
async fn failing_lists_are_tried_for_ever_and_the_service_is_not_ready_meanwhile() {
    let api = Api::start(false).await;
    api.create("a", &[]);
    api.world.lock().list_failures.extend([500, 429, 401, 403, 500, 500, 500, 500]);
    let service = start(&api, "http1", "").await;
    let (code, text) = service.health("/readyz").await;
    assert_eq!(code, 503);
    assert!(text.contains("the first list of packages.longhaul.dev is not done"), "{text}");
    agrees(&api, &service).await;
    assert_eq!(service.health("/readyz").await.0, 200);
    service.app.stop().await;
}

#[tokio::test]
async fn the_safety_list_finds_a_deletion_that_the_watch_lost() {
    let api = Api::start(false).await;
    api.create("stays", &[]);
    api.create("goes", &[]);
    for _ in 0..100 {
        api.fault(Fault::WithoutDeletions);
    }
    let service = start(&api, "http1", ", relistInterval: 1s").await;
    agrees(&api, &service).await;
    api.world.lock().packages.get_mut("goes").unwrap()["metadata"]["finalizers"] = serde_json::json!([]);
    api.delete("goes");
    api.create("after", &[]);
    until("the deletion is witnessed", || deleted(&api, "goes")).await;
    let page = page(&service).await;
    assert!(page["lost"].as_u64() >= Some(1), "{page:#}");
    assert!(!deleted(&api, "stays") && !deleted(&api, "after"), "no phantom deletion");
    service.app.stop().await;
}

#[tokio::test]
async fn a_watch_without_any_progress_is_not_alive() {
    let api = Api::start(false).await;
    let service = start(&api, "http1", ", serverTimeout: 1s").await;
    agrees(&api, &service).await;
    for _ in 0..100 {
        api.fault(Fault::Swallow);
    }
    api.world.lock().list_failures.extend([500; 1000]);
    let start = Instant::now();
    loop {
        let (code, text) = service.health("/livez").await;
        if code == 503 {
            assert!(text.starts_with("watch: no progress for "), "{text}");
            break;
        }
        assert!(start.elapsed() < crate::support::PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    service.app.stop().await;
}

#[tokio::test]
async fn observations_arrive_once_and_in_order_also_when_the_receiver_stumbles() {
    let api = Api::start(false).await;
    api.world.lock().witness_failures = 3;
    for index in 0..600 {
        api.create(&format!("p{index:03}"), &[]);
    }
    let service = start(&api, "http1", "").await;
    agrees(&api, &service).await;
    assert_eq!(api.world.lock().witness_failures, 0);
    let world = api.world.lock().witnessed.clone();
    let added: Vec<_> =
        world.iter().filter(|line| line["change"] == "added").map(|line| line["name"].as_str().unwrap()).collect();
    let expected: Vec<_> = (0..600).map(|index| format!("p{index:03}")).collect();
    assert_eq!(added, expected);
    let mut last = std::collections::BTreeMap::new();
    for line in &world {
        let version: u64 = line["resourceVersion"].as_str().unwrap().parse().unwrap();
        let before = last.insert(line["uid"].as_str().unwrap(), version);
        assert!(before.is_none_or(|before| before < version), "{line} came after {before:?}");
        assert_eq!(line["resource"], "packages.longhaul.dev");
    }
    service.app.stop().await;
}
