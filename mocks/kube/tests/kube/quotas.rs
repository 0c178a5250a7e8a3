//! Quotas: what they refuse, and what they count. Nobody here plays their controller: the tests write the status.

use serde_json::{Value, json};

use crate::client::{Client, Protocol, World};
use crate::{CONFIG_MAPS, config_map};

const PODS: &str = "/api/v1/namespaces/default/pods";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const MERGE: &str = "application/merge-patch+json";

async fn quota(client: &mut Client, name: &str, hard: &Value) {
    let quota =
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}});
    assert_eq!(client.post(QUOTAS, &quota).await.0, 201);
    let nothing: serde_json::Map<String, Value> =
        hard.as_object().unwrap().keys().map(|key| (key.clone(), json!("0"))).collect();
    says(client, name, &json!({"hard": hard, "used": nothing})).await;
}

async fn says(client: &mut Client, name: &str, status: &Value) {
    let (code, answer) = client.patch(&format!("{QUOTAS}/{name}/status"), MERGE, &json!({"status": status})).await;
    assert_eq!(code, 200, "{answer}");
}

async fn used(client: &mut Client, name: &str, resource: &str) -> String {
    let (_, quota) = client.get(&format!("{QUOTAS}/{name}")).await;
    quota["status"]["used"][resource].as_str().unwrap_or_default().to_owned()
}

fn pod(name: &str, requests: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
           "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}})
}

#[tokio::test]
async fn a_quota_limits_what_its_status_says() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}});
    assert_eq!(client.post(QUOTAS, &quota).await.0, 201);
    assert_eq!(client.post(PODS, &pod("before", &json!({}))).await.0, 201, "nobody has looked at the quota");
    says(&mut client, "q", &json!({"hard": {"pods": "1"}})).await;
    let (status, refused) = client.post(PODS, &pod("a", &json!({}))).await;
    let why = "pods \"a\" is forbidden: status unknown for quota: q, resources: pods";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
    says(&mut client, "q", &json!({"used": {"pods": "0"}})).await;
    assert_eq!(client.post(&format!("{PODS}?dryRun=All"), &pod("a", &json!({}))).await.0, 201);
    assert_eq!(used(&mut client, "q", "pods").await, "0");
    assert_eq!(client.post(PODS, &pod("a", &json!({}))).await.0, 201);
    assert_eq!(used(&mut client, "q", "pods").await, "1");
    for path in [PODS.to_owned(), format!("{PODS}?dryRun=All")] {
        let (status, refused) = client.post(&path, &pod("b", &json!({}))).await;
        let why = "pods \"b\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1";
        assert_eq!((status, &refused["message"]), (403, &json!(why)));
        assert_eq!(refused["details"], json!({"kind": "pods", "name": "b"}));
    }
    let (_, told) = client.get(&format!("{QUOTAS}/q")).await;
    let owners = told["metadata"]["managedFields"].as_array().unwrap();
    assert!(owners.iter().any(|entry| entry["manager"] == "kube-apiserver" && entry["subresource"] == "status"));
}

#[tokio::test]
async fn a_pod_must_say_what_is_limited() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    quota(&mut client, "q", &json!({"requests.cpu": "1", "memory": "64Mi"})).await;
    let (status, refused) = client.post(PODS, &pod("a", &json!({"cpu": "1"}))).await;
    let why = "pods \"a\" is forbidden: failed quota: q: must specify memory for: c";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
    assert_eq!(client.post(PODS, &pod("a", &json!({"cpu": "600m", "memory": "10Mi"}))).await.0, 201);
    assert_eq!(used(&mut client, "q", "requests.cpu").await, "600m");
    let (_, refused) = client.post(PODS, &pod("b", &json!({"cpu": "600m", "memory": "10Mi"}))).await;
    let why = "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: \
               requests.cpu=1";
    assert_eq!(refused["message"], json!(why));
    assert_eq!(used(&mut client, "q", "memory").await, "10Mi", "what is refused is not counted");
}

/// Also what is applied, what changes, and what is of a kind that only its number limits.
#[tokio::test]
async fn everything_that_is_made_is_counted() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let hard =
        json!({"configmaps": "1", "services": "2", "services.nodeports": "1", "count/packages.longhaul.dev": "0"});
    quota(&mut client, "q", &hard).await;
    quota(&mut client, "wide", &json!({"configmaps": "9", "count/configmaps": "9"})).await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("a")).await.0, 201);
    assert_eq!(client.post(CONFIG_MAPS, &config_map("a")).await.0, 403, "the quota comes before the name");
    let apply = format!("{CONFIG_MAPS}/b?fieldManager=one");
    assert_eq!(client.patch(&apply, "application/apply-patch+yaml", &config_map("b")).await.0, 403);
    assert_eq!(
        used(&mut client, "wide", "count/configmaps").await,
        "1",
        "nothing is counted before there is room everywhere"
    );
    assert_eq!(client.put(&format!("{CONFIG_MAPS}/a"), &config_map("a")).await.0, 200, "it is counted already");
    let (status, refused) = client.post(crate::PACKAGES, &crate::package("a")).await;
    assert_eq!((status, &refused["details"]["group"]), (403, &json!("longhaul.dev")), "{refused}");

    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}});
    assert_eq!(client.post(SERVICES, &service).await.0, 201);
    let open = json!({"spec": {"type": "NodePort"}});
    let (status, refused) = client.patch(&format!("{SERVICES}/s"), MERGE, &open).await;
    let why = "services \"s\" is forbidden: exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, \
               limited: services.nodeports=1";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
    says(&mut client, "q", &json!({"hard": {"services.nodeports": "2"}})).await;
    assert_eq!(client.patch(&format!("{SERVICES}/s"), MERGE, &open).await.0, 200);
    assert_eq!(used(&mut client, "q", "services.nodeports").await, "2");
    assert_eq!(client.patch(&format!("{SERVICES}/s"), MERGE, &json!({"spec": {"type": "ClusterIP"}})).await.0, 200);
    let counts = (used(&mut client, "q", "services.nodeports").await, used(&mut client, "q", "services").await);
    assert_eq!(counts, ("2".to_owned(), "1".to_owned()), "less is for the controller to find out");
    // Elsewhere the quota says nothing.
    let elsewhere = CONFIG_MAPS.replace("default", "kube-public");
    assert_eq!(client.post(&elsewhere, &config_map("b")).await.0, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creations_at_the_same_time_get_no_more_than_there_is() {
    let world = World::start().await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    quota(&mut client, "q", &json!({"configmaps": "5"})).await;
    let creations = (0..8).map(|n| {
        let world = &world;
        async move {
            let mut client = world.client(Protocol::Http1, "subject").await;
            client.post(CONFIG_MAPS, &config_map(&format!("m{n}"))).await.0
        }
    });
    let mut answers = futures_util::future::join_all(creations).await;
    answers.sort_unstable();
    assert_eq!(answers, [201, 201, 201, 201, 201, 403, 403, 403]);
    assert_eq!(used(&mut client, "q", "configmaps").await, "5");
}
