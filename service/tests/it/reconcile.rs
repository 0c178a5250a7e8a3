//! The reconciler over real sockets: start empty, do the work, stop empty.

use serde_json::{Value, json};
use service::cli::Role;
use service::run::Options;

use crate::support::api::Api;
use crate::support::{Service, kubeconfig, until};

async fn start(api: &Api) -> Service {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kube.yaml");
    kubeconfig(&path, api.address());
    let config = format!(
        "health: {{listen: \"127.0.0.1:0\"}}\nkubernetes: {{kubeconfig: \"{}\"}}\nwatch: {{backoff: {{initial: 20ms, max: 200ms}}}}\n\
         reconcile: {{retries: [50ms, 50ms]}}\n",
        path.display()
    );
    Service::start(Role::Watch, &config, Options::default()).await
}

fn phase(api: &Api, name: &str) -> Value {
    api.world.lock().packages.get(name).map_or(Value::Null, |object| object["status"]["phase"].clone())
}

/// Ports that the policies of the world open.
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
        assert_eq!(world.count("GET /apis/networking"), 1, "one list of policies");
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
    // Somebody takes the finalizer away and deletes.
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
    {
        let mut world = api.world.lock();
        world.policies.clear();
        world.requests.clear();
    }
    let service = start(&api).await;
    until("the policy is back", || ports(&api) == [80]).await;
    api.create("next", &[]);
    until("another package is ready", || phase(&api, "next") == "Ready").await;
    assert_eq!(api.world.lock().count("PATCH /apis/longhaul.dev/v1alpha1/namespaces/n/packages/app"), 0);
    service.app.stop().await;
}
