//! Tests of the reconciler over real sockets: start empty, do the work, stop empty.

use serde_json::{Value, json};
use service::run::Options;

use crate::support::api::Api;
use crate::support::{Service, until};

async fn start(api: &Api) -> Service {
    Service::watching(api.address(), "", "packages: {retries: [50ms, 50ms]}", Options::default()).await
}

fn phase(api: &Api, name: &str) -> Value {
    api.world.lock().packages.get(name).map_or(Value::Null, |object| object["status"]["phase"].clone())
}

/// Ports that the present policies open.
fn ports(api: &Api) -> Vec<u64> {
    let world = api.world.lock();
    let mut ports: Vec<_> = world
        .policies
        .values()
        .map(|policy| policy["spec"]["egress"][0]["ports"][0]["port"].as_u64().unwrap())
        .collect();
    ports.sort_unstable();
    ports
}

#[tokio::test]
async fn a_package_lives_changes_and_goes_without_a_trace() {
    let api = Api::start(false).await;
    let service = start(&api).await;
    api.create("app", &[80, 443]);
    until("the package is ready", || phase(&api, "app") == "Ready").await;
    assert_eq!(ports(&api), [80, 443]);
    {
        let world = api.world.lock();
        let package = &world.packages["app"];
        assert_eq!(package["metadata"]["finalizers"], json!(["longhaul.dev/cleanup"]));
        assert_eq!(package["status"]["observedGeneration"], 1);
        assert_eq!(package["status"]["networkPolicyCount"], 2);
        assert_eq!(package["status"]["conditions"][0]["status"], "True");
        let since = package["status"]["conditions"][0]["lastTransitionTime"].as_str().unwrap();
        assert!(since.parse::<jiff::Timestamp>().is_ok(), "{since} is no date-time, which a CRD's schema asks for");
        for policy in world.policies.values() {
            assert_eq!(policy["metadata"]["ownerReferences"][0]["uid"], package["metadata"]["uid"]);
            assert_eq!(policy["metadata"]["labels"]["longhaul.dev/generation"], "1");
        }
    }
    api.update("app", &[443, 8080]);
    until("the second generation is done", || api.world.lock().packages["app"]["status"]["observedGeneration"] == 2)
        .await;
    assert_eq!(ports(&api), [443, 8080], "the orphan is removed");
    api.delete("app");
    until("the package is gone", || api.world.lock().packages.is_empty()).await;
    assert!(api.world.lock().policies.is_empty(), "stop empty");
    service.app.stop().await;
}

#[tokio::test]
async fn own_writes_cause_no_work() {
    let api = Api::start(false).await;
    let service = start(&api).await;
    api.create("app", &[80]);
    until("the package is ready", || phase(&api, "app") == "Ready").await;
    // All events of our own writes have been seen and dismissed once the position is the server's and nothing waits.
    let begun = std::time::Instant::now();
    loop {
        let page: Value = serde_json::from_str(&service.health("/debug/watch").await.1).unwrap();
        let (_, metrics) = service.health("/metrics").await;
        let dismissed = metrics.contains(r#"reconciles_total{kind="skipped"}"#);
        let version = api.world.lock().version.to_string();
        if dismissed && page["queued"] == 0 && page["resourceVersion"].as_str() == Some(version.as_str()) {
            break;
        }
        assert!(begun.elapsed() < crate::support::PATIENCE, "{page:#}");
    }
    {
        let world = api.world.lock();
        assert_eq!(world.count("PATCH /apis/longhaul.dev"), 3, "finalizer, Pending, Ready: {:#?}", world.requests);
        assert_eq!(world.count("GET /apis/networking.k8s.io/v1/namespaces"), 1, "one list of policies");
    }
    service.app.stop().await;
}

#[tokio::test]
async fn failures_are_retried_reported_and_ended() {
    let api = Api::start(false).await;
    let service = start(&api).await;
    api.world.lock().policy_failures.extend([500, 500]);
    api.create("passes", &[80]);
    until("the third attempt succeeds", || phase(&api, "passes") == "Ready").await;
    {
        let world = api.world.lock();
        assert_eq!(world.events.len(), 2);
        assert_eq!(
            (&world.events[0]["type"], &world.events[0]["reason"]),
            (&json!("Warning"), &json!("ReconciliationFailed"))
        );
    }
    api.world.lock().policy_failures.extend([500, 500, 500]);
    api.create("fails", &[80]);
    until("three attempts are enough", || phase(&api, "fails") == "Failed").await;
    assert_eq!(api.world.lock().packages["fails"]["status"]["observedGeneration"], 1);
    assert_eq!(api.world.lock().packages["fails"]["status"]["retryAttempts"], 3);
    api.update("fails", &[81]);
    until("a new generation is a new chance", || phase(&api, "fails") == "Ready").await;
    service.app.stop().await;
}

#[tokio::test]
async fn a_spec_that_cannot_be_read_fails_at_once_and_can_be_mended() {
    let api = Api::start(false).await;
    let service = start(&api).await;
    api.create("odd", &[]);
    until("the package is ready", || phase(&api, "odd") == "Ready").await;
    api.break_spec("odd");
    until("the package has failed", || phase(&api, "odd") == "Failed").await;
    let message = api.world.lock().packages["odd"]["status"]["conditions"][0]["message"].clone();
    assert!(message.as_str().unwrap().starts_with("spec.network.allow: "), "{message}");
    api.update("odd", &[80]);
    until("the package is ready again", || phase(&api, "odd") == "Ready").await;
    service.app.stop().await;
}

#[tokio::test]
async fn a_package_that_goes_while_nobody_looks_leaves_nothing() {
    let api = Api::start(false).await;
    let service = start(&api).await;
    api.create("app", &[80]);
    until("the package is ready", || phase(&api, "app") == "Ready").await;
    // A foreign client removes the finalizer and deletes the object.
    api.world.lock().packages.get_mut("app").unwrap()["metadata"]["finalizers"] = json!([]);
    api.delete("app");
    until("its policies are removed", || api.world.lock().policies.is_empty()).await;
    service.app.stop().await;
}

#[tokio::test]
async fn what_the_server_calls_invalid_is_not_tried_again() {
    let api = Api::start(false).await;
    let service = start(&api).await;
    api.world.lock().policy_failures.push_back(422);
    api.create("refused", &[80]);
    until("the attempt has an end", || matches!(phase(&api, "refused").as_str(), Some("Failed" | "Ready"))).await;
    assert_eq!(phase(&api, "refused"), "Failed", "another attempt cannot end differently");
    let package = api.world.lock().packages["refused"].clone();
    assert_eq!((&package["status"]["observedGeneration"], &package["status"]["retryAttempts"]), (&json!(1), &json!(1)));
    let message = package["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("network policy: the API server answered 422"), "{message}");
    service.app.stop().await;
}

#[tokio::test]
async fn conditions_of_others_stay_and_the_time_of_ours_as_long_as_its_status() {
    let api = Api::start(false).await;
    let service = start(&api).await;
    api.create("app", &[]);
    api.break_spec("app");
    until("the package has failed", || phase(&api, "app") == "Failed").await;
    let foreign = json!({"type": "Audited", "status": "Unknown", "reason": "R", "message": "m",
                         "lastTransitionTime": "2019-01-01T00:00:00Z"});
    api.edit("app", |object| {
        let conditions = object["status"]["conditions"].as_array_mut().unwrap();
        conditions[0]["lastTransitionTime"] = "2020-01-01T00:00:00Z".into();
        conditions.insert(0, foreign.clone());
    });
    api.break_spec("app");
    let observed = |generation: i64| api.world.lock().packages["app"]["status"]["observedGeneration"] == generation;
    until("it has failed again", || observed(3)).await;
    let conditions = api.world.lock().packages["app"]["status"]["conditions"].clone();
    assert_eq!(conditions[0], foreign);
    assert_eq!((&conditions[1]["type"], &conditions[1]["reason"]), (&json!("Ready"), &json!("Failed")));
    assert_eq!(conditions[1]["lastTransitionTime"], "2020-01-01T00:00:00Z", "it was False all the time");
    api.update("app", &[]);
    until("it is ready", || phase(&api, "app") == "Ready").await;
    let conditions = api.world.lock().packages["app"]["status"]["conditions"].clone();
    assert_eq!(conditions[0], foreign);
    assert_ne!(conditions[1]["lastTransitionTime"], "2020-01-01T00:00:00Z", "it became True");
    service.app.stop().await;
}

#[tokio::test]
async fn a_status_that_stays_is_not_written() {
    let api = Api::start(false).await;
    let service = start(&api).await;
    api.create("app", &[80]);
    until("the package is ready", || phase(&api, "app") == "Ready").await;
    service.app.stop().await;
    let name = api.world.lock().policies.keys().next().unwrap().clone();
    api.put_policy(&name, Value::Null);
    api.world.lock().requests.clear();
    let service = start(&api).await;
    until("the policy is back", || ports(&api) == [80]).await;
    api.create("next", &[]);
    until("another package is ready", || phase(&api, "next") == "Ready").await;
    assert_eq!(api.world.lock().count("PATCH /apis/longhaul.dev/v1alpha1/namespaces/n/packages/app"), 0);
    service.app.stop().await;
}

fn only(api: &Api) -> (String, Value) {
    let world = api.world.lock();
    assert_eq!(world.policies.len(), 1, "{:#?}", world.policies);
    world.policies.iter().next().map(|(name, policy)| (name.clone(), policy.clone())).unwrap()
}

#[tokio::test]
async fn a_policy_that_somebody_edits_or_deletes_is_restored() {
    let api = Api::start(false).await;
    let service = start(&api).await;
    api.create("app", &[80]);
    until("the package is ready", || phase(&api, "app") == "Ready").await;
    let (name, original) = only(&api);
    api.put_policy(&name, Value::Null);
    until("a deleted one is back", || ports(&api) == [80]).await;

    let mut edited = only(&api).1;
    edited["spec"]["egress"][0]["ports"][0]["port"] = 22.into();
    edited["spec"]["ingress"] = json!([{}]);
    edited["spec"]["podSelector"]["matchLabels"] = json!({"app": "none"});
    edited["metadata"]["labels"]["team"] = "theirs".into();
    edited["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "other"}]);
    api.put_policy(&name, edited);
    until("an edited one is as it was", || only(&api).1["spec"] == original["spec"]).await;
    let restored = only(&api).1;
    assert_eq!(restored["metadata"]["labels"]["team"], "theirs", "what is not ours stays");
    let owners = restored["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!((&owners[0]["uid"], &owners[1]), (&json!("other"), &original["metadata"]["ownerReferences"][0]));

    let mut extra = restored.clone();
    extra["metadata"]["resourceVersion"].take();
    api.put_policy("copy", extra);
    until("one that nobody asked for is removed", || api.world.lock().policies.len() == 1).await;
    assert_eq!(phase(&api, "app"), "Ready");
    until("each restoration is told", || api.world.lock().events.len() >= 3).await;
    let events = api.world.lock().events.clone();
    assert_eq!(events.len(), 3, "{events:#?}");
    assert!(events.iter().all(|event| event["reason"] == "NetworkPolicyRestored"));
    service.app.stop().await;
}

#[tokio::test]
async fn policies_of_a_package_that_is_gone_are_removed_also_after_a_restart() {
    let api = Api::start(false).await;
    let service = start(&api).await;
    api.create("stays", &[80]);
    api.create("goes", &[443]);
    until("both are ready", || phase(&api, "stays") == "Ready" && phase(&api, "goes") == "Ready").await;
    service.app.stop().await;
    // No process runs while the package goes, and no garbage collector removes its objects.
    api.edit("goes", |object| object["metadata"]["finalizers"] = json!([]));
    api.delete("goes");
    let service = start(&api).await;
    until("the orphan is removed", || ports(&api) == [80]).await;
    let mut orphan = only(&api).1;
    orphan["metadata"]["labels"]["longhaul.dev/package-uid"] = "nobody".into();
    orphan["metadata"]["ownerReferences"][0]["uid"] = "nobody".into();
    api.put_policy("orphan", orphan.clone());
    until("an orphan that appears is removed", || api.world.lock().policies.len() == 1).await;
    assert_eq!(ports(&api), [80]);
    orphan["metadata"]["labels"] = json!({});
    api.put_policy("foreign", orphan);
    api.create("next", &[]);
    until("another package is ready", || phase(&api, "next") == "Ready").await;
    assert_eq!(api.world.lock().policies.len(), 2, "what has no label of ours is not ours");
    service.app.stop().await;
}

#[tokio::test]
async fn two_who_want_different_things_do_not_write_in_a_hot_loop() {
    let api = Api::start(false).await;
    let service = start(&api).await;
    api.create("app", &[80]);
    until("the package is ready", || phase(&api, "app") == "Ready").await;
    let patches = || api.world.lock().count("PATCH /apis/networking");
    let begun = std::time::Instant::now();
    while patches() < 4 {
        assert!(begun.elapsed() < crate::support::PATIENCE, "{} restorations", patches());
        let (name, mut policy) = only(&api);
        if policy["spec"]["egress"][0]["ports"][0]["port"] != 22 {
            policy["spec"]["egress"][0]["ports"][0]["port"] = 22.into();
            api.put_policy(&name, policy);
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // At once, after half a second, after one, after two: a loop without pauses needs a tenth of it.
    assert!(begun.elapsed() > std::time::Duration::from_secs(3), "four restorations in {:?}", begun.elapsed());
    service.app.stop().await;
}
