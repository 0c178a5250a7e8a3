//! Tests of evictions and budgets. No controller counts pods here: the tests write its results.

use serde_json::{Value, json};

use crate::client::{Client, Protocol, World};
use crate::{MERGE, PODS};

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// Makes a running and ready pod `app=web`.
async fn running(client: &mut Client, name: &str) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(client.post(PODS, &pod).await.0, 201);
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(client.patch(&format!("{PODS}/{name}/status"), MERGE, &status).await.0, 200);
}

async fn budget(client: &mut Client, name: &str, status: &Value) {
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    assert_eq!(client.post(BUDGETS, &budget).await.0, 201);
    says(client, name, status).await;
}

/// Writes the status of a budget as its controller does.
async fn says(client: &mut Client, name: &str, status: &Value) {
    let (status, answer) = client.patch(&format!("{BUDGETS}/{name}/status"), MERGE, &json!({"status": status})).await;
    assert_eq!(status, 200, "{answer}");
}

async fn evict(client: &mut Client, name: &str, options: &Value) -> (u16, Value) {
    let mut eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    if !options.is_null() {
        eviction["deleteOptions"] = options.clone();
    }
    client.post(&format!("{PODS}/{name}/eviction"), &eviction).await
}

async fn exists(client: &mut Client, name: &str) -> bool {
    client.get(&format!("{PODS}/{name}")).await.0 == 200
}

#[tokio::test]
async fn a_budget_gives_its_disruptions_away_one_by_one() {
    let (world, mut client) = World::alone().await;
    for name in ["a", "b", "c"] {
        running(&mut client, name).await;
    }
    budget(&mut client, "web", &json!({})).await;
    let (status, refused) = evict(&mut client, "a", &Value::Null).await;
    let cause = json!({"reason": "DisruptionBudget", "message": "The disruption budget web is still being processed by the server."});
    assert_eq!((status, &refused["reason"]), (429, &json!("TooManyRequests")), "{refused}");
    assert_eq!(refused["details"], json!({"causes": [cause], "retryAfterSeconds": 10}));

    let counted = json!({"observedGeneration": 1, "disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1});
    says(&mut client, "web", &counted).await;
    assert_eq!(evict(&mut client, "a", &json!({"dryRun": ["All"]})).await.0, 201);
    let (_, untouched) = client.get(&format!("{BUDGETS}/web")).await;
    assert_eq!((&untouched["status"]["disruptionsAllowed"], exists(&mut client, "a").await), (&json!(2), true));

    let pods = client.get(PODS).await.1["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut watcher = world.client(Protocol::Http1, "subject").await;
    let mut events = watcher.watch(&format!("{PODS}?watch=true&resourceVersion={pods}")).await;
    assert_eq!(evict(&mut client, "a", &Value::Null).await.0, 201);
    let noted = events.next().await.unwrap().unwrap();
    let condition = noted["object"]["status"]["conditions"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&condition["type"], &condition["reason"]),
        (&json!("DisruptionTarget"), &json!("EvictionByEvictionAPI"))
    );
    assert_eq!((&noted["type"], noted["object"]["metadata"].get("deletionTimestamp")), (&json!("MODIFIED"), None));
    assert_eq!(events.event().await.0, "MODIFIED");
    assert_eq!(events.event().await.0, "DELETED");

    let (_, told) = client.get(&format!("{BUDGETS}/web")).await;
    assert_eq!(
        (&told["status"]["disruptionsAllowed"], told["status"]["disruptedPods"]["a"].is_string()),
        (&json!(1), true)
    );
    let owners = told["metadata"]["managedFields"].as_array().unwrap();
    assert!(owners.iter().any(|entry| entry["manager"] == "kube-apiserver" && entry["subresource"] == "status"));
    assert_eq!(evict(&mut client, "b", &Value::Null).await.0, 201);
    let (status, refused) = evict(&mut client, "c", &Value::Null).await;
    let why = "Cannot evict pod as it would violate the pod's disruption budget.";
    assert_eq!((status, &refused["message"]), (429, &json!(why)));
    assert_eq!((refused["details"].get("retryAfterSeconds"), exists(&mut client, "c").await), (None, true));
    let (_, spent) = client.get(&format!("{BUDGETS}/web")).await;
    assert_eq!(spent["status"]["conditions"][0]["reason"], "InsufficientPods");
    assert_eq!(evict(&mut client, "none", &Value::Null).await.0, 404);
}

#[tokio::test]
async fn what_no_budget_can_decide_is_refused() {
    let (_world, mut client) = World::alone().await;
    running(&mut client, "p").await;
    budget(&mut client, "web", &json!({"observedGeneration": 1, "disruptionsAllowed": -1})).await;
    let (status, refused) = evict(&mut client, "p", &Value::Null).await;
    let why = "poddisruptionbudget.policy \"web\" is forbidden: pdb disruptions allowed is negative";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
    budget(&mut client, "second", &json!({"observedGeneration": 1, "disruptionsAllowed": 1})).await;
    let (status, refused) = evict(&mut client, "p", &Value::Null).await;
    let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    assert_eq!((status, &refused["message"], refused.get("reason")), (500, &json!(why), None));
    assert!(exists(&mut client, "p").await);
    // A budget of another namespace does not apply here.
    for name in ["web", "second"] {
        assert_eq!(client.delete(&format!("{BUDGETS}/{name}")).await.0, 200);
    }
    assert_eq!(evict(&mut client, "p", &Value::Null).await.0, 201);
}

/// As many as the budget allows, and no more, however many come at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evictions_at_the_same_time_take_no_more_than_there_is() {
    let (world, mut client) = World::alone().await;
    let names: Vec<String> = (0..8).map(|n| format!("p{n}")).collect();
    for name in &names {
        running(&mut client, name).await;
    }
    budget(
        &mut client,
        "web",
        &json!({"observedGeneration": 1, "disruptionsAllowed": 3, "currentHealthy": 8, "desiredHealthy": 5}),
    )
    .await;
    let evictions = names.iter().map(|name| {
        let world = &world;
        async move {
            let mut client = world.client(Protocol::Http1, "subject").await;
            evict(&mut client, name, &Value::Null).await.0
        }
    });
    let mut answers = futures_util::future::join_all(evictions).await;
    answers.sort_unstable();
    assert_eq!(answers, [201, 201, 201, 429, 429, 429, 429, 429]);
    let (_, told) = client.get(&format!("{BUDGETS}/web")).await;
    assert_eq!(told["status"]["disruptedPods"].as_object().unwrap().len(), 3);
    assert_eq!(client.get(PODS).await.1["items"].as_array().unwrap().len(), 5);
}
