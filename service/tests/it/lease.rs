//! Tests of two replicas with one Lease: both watch, only the holder reconciles, and the second replica takes over
//! after the holder's end.

use std::time::{Duration, Instant};

use serde_json::Value;
use service::run::Options;

use crate::support::api::Api;
use crate::support::{Service, until};

/// A replica whose Lease lasts 3 s.
async fn replica(api: &Api) -> Service {
    let lease = "packages: {lease: {namespace: ours, duration: 3s, renew: 2s, retry: 100ms}}";
    Service::watching(api.address(), "", lease, Options::default()).await
}

async fn leads(service: &Service) -> bool {
    service.health("/metrics").await.1.contains("longhaul_watch_leader 1")
}

async fn wait_to_lead(service: &Service) {
    let begun = Instant::now();
    while !leads(service).await {
        assert!(begun.elapsed() < crate::support::PATIENCE, "it never leads");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_ready(api: &Api, name: &str) -> bool {
    api.world.lock().packages[name]["status"]["phase"] == "Ready"
}

fn holder(api: &Api) -> Value {
    api.world.lock().lease["spec"]["holderIdentity"].clone()
}

#[tokio::test]
async fn of_two_replicas_one_reconciles_and_both_watch() {
    let api = Api::start(false).await;
    let first = replica(&api).await;
    wait_to_lead(&first).await;
    let second = replica(&api).await;
    until("the second waits for the lease", || api.world.lock().count("GET /apis/coordination") >= 3).await;
    api.create("app", &[80]);
    until("the package is ready", || is_ready(&api, "app")).await;
    {
        let world = api.world.lock();
        assert_eq!(world.count("PATCH /apis/longhaul.dev"), 3, "one finalizer, one Pending, one Ready");
        assert_eq!(world.count("POST /apis/networking"), 1);
        assert_eq!(world.lease["spec"]["leaseDurationSeconds"], 3);
        let path = "/apis/coordination.k8s.io/v1/namespaces/ours/leases";
        assert_eq!(
            (world.count(&format!("POST {path}")), world.lease["metadata"]["name"].as_str()),
            (1, Some("longhaul-watch"))
        );
    }
    assert!(leads(&first).await && !leads(&second).await);
    assert_eq!((first.health("/readyz").await.0, second.health("/readyz").await.0), (200, 200));
    let page: Value = serde_json::from_str(&second.health("/debug/watch").await.1).unwrap();
    assert_eq!(page["objects"], 1, "the one that waits has the view");
    second.app.stop().await;
    assert!(leads(&first).await);
    first.app.stop().await;
}

#[tokio::test]
async fn a_leader_that_is_killed_is_replaced_after_its_lease_and_one_that_stops_at_once() {
    let api = Api::start(false).await;
    let (first, second) = (replica(&api).await, replica(&api).await);
    let begun = Instant::now();
    let (leader, other) = loop {
        match (leads(&first).await, leads(&second).await) {
            (true, false) => break (first, second),
            (false, true) => break (second, first),
            (true, true) => panic!("both lead"),
            (false, false) => assert!(begun.elapsed() < crate::support::PATIENCE),
        }
    };
    let died = holder(&api);
    let renewed = Instant::now();
    drop(leader);
    api.create("app", &[80]);
    until("the package is ready", || is_ready(&api, "app")).await;
    assert!(renewed.elapsed() > Duration::from_secs(2), "taken over after {:?}", renewed.elapsed());
    assert_ne!(holder(&api), died);
    assert_eq!(api.world.lock().lease["spec"]["leaseTransitions"], 1);
    let third = replica(&api).await;
    until("the third waits for the lease", || api.world.lock().count("GET /apis/coordination") >= 5).await;
    let leads_until_now = holder(&api);
    other.app.stop().await;
    // The lease is given back by name, not left to expire: so no replica waits, however busy the machine is.
    // On a machine so busy that the lease expired, the third replica was the leader before the stop.
    let has_moved = holder(&api) != leads_until_now;
    assert!(has_moved || leads(&third).await, "the one that stopped still holds the lease");
    wait_to_lead(&third).await;
    third.app.stop().await;
    assert_eq!(holder(&api), Value::Null, "given back");
}

#[tokio::test]
async fn a_leader_that_cannot_renew_stops_before_anybody_may_take_the_lease() {
    let api = Api::start(false).await;
    let service = replica(&api).await;
    wait_to_lead(&service).await;
    let version = api.world.lock().lease["metadata"]["resourceVersion"].clone();
    api.world.lock().lease_failures.extend(std::iter::repeat_n(500, 10_000));
    let begun = Instant::now();
    while leads(&service).await {
        assert!(begun.elapsed() < Duration::from_secs(3), "it still leads when others may take over");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let refused = api.world.lock().requests.len();
    api.create("app", &[80]);
    until("it tries to get the lease again", || api.world.lock().requests.len() > refused + 5).await;
    assert_eq!(api.world.lock().count("PATCH /apis/longhaul.dev"), 0, "nobody reconciles");
    assert!(version != Value::Null);
    api.world.lock().lease_failures.clear();
    until("the package is ready", || is_ready(&api, "app")).await;
    service.app.stop().await;
}
