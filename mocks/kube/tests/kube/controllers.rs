//! Tests of the status of disruption budgets and of signed certificate requests, which controllers write in a real
//! cluster.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mock_kube::Workloads;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::MERGE;
use crate::client::{Client, PATIENCE, Protocol, World};

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// `openssl req -new -subj /O=devs/CN=ann`, as base64.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIV01IOENBUUF3SFRFTk1Bc0dBMVVFQ2d3RVpHVjJjekVNTUFv\
                       R0ExVUVBd3dEWVc1dU1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUVoZytia1pkcWwvaW1OV3IrVlF6SzlPRWl3\
                       KzhNYVAxd3FNYXFxeVJlCmdvaTR4aTJuM3htWkZhMzJKWWlURUVqQ25pZTZUSnora1dWREJQRHc0c3NpSHFBQU1Bb0dDQ3FHU000\
                       OUJBTUMKQTBjQU1FUUNJR1dBQ2o4NGI4Z2tJTStaTnZ1aE1xZmphMVA3NEp4Ti9oOG1CdmNsay9FbkFpQmI5eTJvV3pyNgpjQlpY\
                       QVlIQ3Y3Y0J1RXNzdFpDb1ZYZnZ4blRXZXp2WTR3PT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

async fn world() -> (World, Client) {
    let ready_after = Duration::from_millis(20);
    let world = World::with(|config| config.workloads = Some(Workloads { ready_after, ..Workloads::default() })).await;
    let client = world.client(Protocol::Http1, "harness").await;
    (world, client)
}

/// Repeats a GET request until `wanted` accepts the answer.
async fn until(client: &mut Client, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let seen = client.get(path).await.1;
        if wanted(&seen) {
            return seen;
        }
        assert!(tokio::time::Instant::now() < deadline, "{path}: {seen:#}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_budget_counts_its_pods() {
    let (_world, mut client) = world().await;
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}});
    assert_eq!(client.post("/apis/apps/v1/namespaces/default/deployments", &deployment).await.0, 201);
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p"},
        "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"a": "b"}}}});
    assert_eq!(client.post(BUDGETS, &budget).await.0, 201);
    let path = format!("{BUDGETS}/p");
    let counted = until(&mut client, &path, |seen| seen["status"]["currentHealthy"] == 3).await;
    let status = &counted["status"];
    let numbers =
        ["expectedPods", "desiredHealthy", "disruptionsAllowed", "observedGeneration"].map(|key| &status[key]);
    assert_eq!(numbers, [&json!(3), &json!(1), &json!(2), &json!(1)], "{status}");
    assert_eq!(status["conditions"][0]["reason"], "SufficientPods");
    let more = json!({"spec": {"maxUnavailable": 0}});
    assert_eq!(client.patch(&path, MERGE, &more).await.0, 200);
    let counted = until(&mut client, &path, |seen| seen["status"]["observedGeneration"] == 2).await;
    assert_eq!(counted["status"]["disruptionsAllowed"], 0);
    assert_eq!(counted["status"]["conditions"][0]["reason"], "InsufficientPods");
}

fn request(name: &str, usages: &[&str]) -> Value {
    json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": REQUEST, "signerName": "kubernetes.io/kube-apiserver-client", "usages": usages,
                 "username": "somebody else"}})
}

fn approval() -> Value {
    json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}})
}

#[tokio::test]
async fn an_approved_request_gets_a_certificate_that_the_server_accepts() {
    let (_world, mut client) = world().await;
    let (_, made) = client.post(REQUESTS, &request("ann", &["client auth", "digital signature"])).await;
    assert_eq!(made["spec"]["username"], "harness", "{made}");
    assert!(made["status"].get("certificate").is_none());
    assert_eq!(client.patch(&format!("{REQUESTS}/ann/approval"), MERGE, &approval()).await.0, 200);
    let path = format!("{REQUESTS}/ann");
    let signed = until(&mut client, &path, |seen| seen["status"]["certificate"].is_string()).await;
    let pem = BASE64.decode(signed["status"]["certificate"].as_str().unwrap()).unwrap();
    let identity = mock_pki::identity(&CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
    assert_eq!((identity.common_name.as_str(), &identity.organisations[..]), ("ann", &["devs".to_owned()][..]));
}

#[tokio::test]
async fn a_request_with_other_usages_fails() {
    let (_world, mut client) = world().await;
    assert_eq!(client.post(REQUESTS, &request("serving", &["server auth"])).await.0, 201);
    assert_eq!(client.patch(&format!("{REQUESTS}/serving/approval"), MERGE, &approval()).await.0, 200);
    let path = format!("{REQUESTS}/serving");
    let failed = |seen: &Value| seen["status"]["conditions"].as_array().is_some_and(|all| all.len() == 2);
    let seen = until(&mut client, &path, failed).await;
    assert_eq!(seen["status"]["conditions"][1]["reason"], "SignerValidationFailure");
    assert!(seen["status"].get("certificate").is_none());
}

/// Pods of a `ReplicaSet` that names itself as its owner are counted.
#[tokio::test]
async fn owners_that_own_themselves_are_counted() {
    let (_world, mut client) = world().await;
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    let (_, made) = client.post(sets, &set).await;
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": made["metadata"]["uid"],
        "controller": true});
    let owned = json!({"metadata": {"ownerReferences": [owner]}});
    assert_eq!(client.patch(&format!("{sets}/r"), MERGE, &owned).await.0, 200);
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}}});
    assert_eq!(client.post(BUDGETS, &budget).await.0, 201);
    let counted = until(&mut client, &format!("{BUDGETS}/p"), |seen| seen["status"]["currentHealthy"] == 2).await;
    assert_eq!(counted["status"]["expectedPods"], 2, "{counted}");
}

#[tokio::test]
async fn the_approved_request_is_the_one_that_was_made() {
    let (_world, mut client) = world().await;
    assert_eq!(client.post(REQUESTS, &request("ann", &["server auth"])).await.0, 201);
    let other = json!({"spec": {"usages": ["client auth"], "username": "admin"}});
    let (status, seen) = client.patch(&format!("{REQUESTS}/ann"), MERGE, &other).await;
    assert_eq!((status, &seen["spec"]["usages"]), (200, &json!(["server auth"])), "{seen}");
    let both = json!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "reason": "Test"}, {"type": "Denied", "status": "True", "reason": "Test"},
    ]}});
    let (status, refused) = client.patch(&format!("{REQUESTS}/ann/approval"), MERGE, &both).await;
    assert_eq!(status, 422, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("mutually exclusive"), "{refused}");
}

#[tokio::test]
async fn a_quota_refuses_the_object_that_exceeds_it() {
    let (_world, mut client) = world().await;
    let hard = json!({"pods": "1", "limits.ephemeral-storage": "1Gi"});
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}});
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    assert_eq!(client.post(quotas, &quota).await.0, 201);
    let pod = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
               "spec": {"containers": [{"name": "c", "image": "i"}]}})
    };
    let pods = "/api/v1/namespaces/default/pods";
    let (status, made) = client.post(pods, &pod("a")).await;
    assert_eq!(status, 201, "only CPU and memory must be specified: {made}");
    let (status, refused) = client.post(pods, &pod("b")).await;
    let why = "pods \"b\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
    let used = |seen: &Value| seen["status"]["used"]["pods"] == "1";
    until(&mut client, &format!("{quotas}/q"), used).await;
    let missing = json!({"spec": {"hard": {"requests.cpu": "1"}}});
    assert_eq!(client.patch(&format!("{quotas}/q"), MERGE, &missing).await.0, 200);
    let (status, refused) = client.post(pods, &pod("c")).await;
    let why = "pods \"c\" is forbidden: failed quota: q: must specify requests.cpu for: c";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
}
