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
pub const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIV01IOENBUUF3SFRFTk1Bc0dBMVVFQ2d3RVpHVjJjekVNTUFv\
                       R0ExVUVBd3dEWVc1dU1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUVoZytia1pkcWwvaW1OV3IrVlF6SzlPRWl3\
                       KzhNYVAxd3FNYXFxeVJlCmdvaTR4aTJuM3htWkZhMzJKWWlURUVqQ25pZTZUSnora1dWREJQRHc0c3NpSHFBQU1Bb0dDQ3FHU000\
                       OUJBTUMKQTBjQU1FUUNJR1dBQ2o4NGI4Z2tJTStaTnZ1aE1xZmphMVA3NEp4Ti9oOG1CdmNsay9FbkFpQmI5eTJvV3pyNgpjQlpY\
                       QVlIQ3Y3Y0J1RXNzdFpDb1ZYZnZ4blRXZXp2WTR3PT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

/// `openssl req -new -subj /O=system:masters/CN=ann`, as base64.
const OF_MASTERS: &str = "\
    LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIak1JR0pBZ0VBTUNjeEZ6QVZCZ05WQkFvTURuTjVjM1J\
    sYlRwdFlYTjBaWEp6TVF3d0NnWURWUVFEREFOaApibTR3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVRwSz\
    NZZnM1aEFlUkhnTmtpUHE0bzFxMTVICkF3aHZzQ2JwVDdNbE0xcDBnY1JJb1NTTlB5SEowb1J4U2Y2Y2wzaHN2U1dLbXBDN\
    UJFclhWTWc5RnYyRm9BQXcKQ2dZSUtvWkl6ajBFQXdJRFNRQXdSZ0loQUpiWDVuWmJSUHowY1JwamMyTlNrZ1MxSWJWNmdY\
    YXJydjZLL1ZHVApvTTJoQWlFQWdId2QrM3RRdTRPTHFCZ01hNlBFY1JNcEthVENvVEFhUDN0Rm1ndEM1Z3c9Ci0tLS0tRU5\
    EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

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

#[tokio::test]
async fn a_request_that_its_key_did_not_sign_is_refused_and_so_are_masters() {
    let (_world, mut client) = world().await;
    let pem = String::from_utf8(BASE64.decode(REQUEST).unwrap()).unwrap();
    let mut forged = request("forged", &["client auth"]);
    forged["spec"]["request"] = json!(BASE64.encode(pem.replace("cBZX", "cBZY")));
    let (status, refused) = client.post(REQUESTS, &forged).await;
    assert_eq!((status, &refused["details"]["causes"][0]["field"]), (422, &json!("spec.request")), "{refused}");
    let mut masters = request("masters", &["client auth"]);
    masters["spec"]["request"] = json!(OF_MASTERS);
    let (status, refused) = client.post(REQUESTS, &masters).await;
    let why = "certificatesigningrequests.certificates.k8s.io \"masters\" is forbidden: use of \
               kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
    masters["spec"]["signerName"] = json!("example.com/other");
    assert_eq!(client.post(REQUESTS, &masters).await.0, 201, "another signer decides itself");
}

fn quota(hard: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}})
}

/// Twelve clients create a Secret each at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_at_the_same_time_do_not_exceed_a_quota() {
    let (world, mut client) = world().await;
    assert_eq!(client.post("/api/v1/namespaces/default/resourcequotas", &quota(&json!({"secrets": "3"}))).await.0, 201);
    let mut running = tokio::task::JoinSet::new();
    for number in 0..12 {
        let mut client = world.client(Protocol::Http1, "harness").await;
        running.spawn(async move {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("s-{number}")}});
            client.post("/api/v1/namespaces/default/secrets", &secret).await.0
        });
    }
    let answers = running.join_all().await;
    let made = answers.iter().filter(|status| **status == 201).count();
    let refused = answers.iter().filter(|status| **status == 403).count();
    assert_eq!((made, refused), (3, 9), "{answers:?}");
}

#[tokio::test]
async fn an_update_is_charged_for_what_it_adds_to_a_quota() {
    let (_world, mut client) = world().await;
    let hard = quota(&json!({"services.nodeports": "2"}));
    assert_eq!(client.post("/api/v1/namespaces/default/resourcequotas", &hard).await.0, 201);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let services = "/api/v1/namespaces/default/services";
    assert_eq!(client.post(services, &service).await.0, 201);
    let ports = |numbers: &[u16]| {
        let ports: Vec<Value> = numbers.iter().map(|port| json!({"name": format!("p{port}"), "port": port})).collect();
        json!({"spec": {"ports": ports}})
    };
    let path = format!("{services}/s");
    assert_eq!(client.patch(&path, MERGE, &ports(&[80, 81])).await.0, 200);
    let (status, refused) = client.patch(&path, MERGE, &ports(&[80, 81, 82])).await;
    let why = "services \"s\" is forbidden: exceeded quota: q, requested: services.nodeports=1, used: \
               services.nodeports=2, limited: services.nodeports=2";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
    assert_eq!(client.patch(&path, MERGE, &ports(&[80])).await.0, 200, "less is always allowed");
}

/// The warnings in a policy's status are those of the type checker of kube-apiserver 1.34.1.
#[tokio::test]
async fn expressions_are_checked_against_the_types_of_matched_objects() {
    let (_world, mut client) = world().await;
    let rule =
        json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "variables": [{"name": "n", "expression": "object.spec.replicas"}],
            "validations": [
                {"expression": "object.replicas > 1"},
                {"expression": "variables.n > 1 && object.metadata.name != ''"},
                {"expression": "true", "messageExpression": "variables.n + 'a'"},
            ],
        },
    });
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    assert_eq!(client.post(policies, &policy).await.0, 201);
    let path = format!("{policies}/p");
    let seen = until(&mut client, &path, |seen| seen["status"]["observedGeneration"] == 1).await;
    let warning = |field: &str, text: &str| json!({"fieldRef": field, "warning": text});
    let expected = json!({"expressionWarnings": [
        warning("spec.validations[0].expression", "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field \
            'replicas'\n | object.replicas > 1\n | ......^\n"),
        warning("spec.validations[2].messageExpression", "apps/v1, Kind=Deployment: ERROR: <input>:1:13: found no \
            matching overload for '_+_' applied to '(int, string)'\n | variables.n + 'a'\n | ............^\n"),
    ]});
    assert_eq!(seen["status"]["typeChecking"], expected);
    let right = json!({"spec": {"validations": [{"expression": "object.spec.replicas > 1"}]}});
    assert_eq!(client.patch(&path, MERGE, &right).await.0, 200);
    let seen = until(&mut client, &path, |seen| seen["status"]["observedGeneration"] == 2).await;
    assert_eq!(seen["status"]["typeChecking"], json!({}));
}
