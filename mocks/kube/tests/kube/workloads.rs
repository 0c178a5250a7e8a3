//! Tests, through the API, of workloads that become ready: the user of each write, webhooks, and roles.

use std::time::Duration;

use mock_faults::{Fault, FaultId, Name, On};
use mock_kube::{Authorization, User, Workloads};
use serde_json::{Value, json};
use units::Span;

use crate::PODS;
use crate::client::{Client, PATIENCE, Protocol, World};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const AFTER: Duration = Duration::from_millis(50);

async fn world() -> (World, Client) {
    let world = World::with(|config| {
        config.workloads = Some(Workloads { ready_after: AFTER, nodes: 2, ..Workloads::default() });
    })
    .await;
    let client = world.client(Protocol::Http1, "harness").await;
    (world, client)
}

fn template(app: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}})
}

fn deployment(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template(name)}})
}

/// Repeats a GET until `wanted` accepts the answer; returns the last answer.
async fn until(client: &mut Client, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut seen = Value::Null;
    let waited = tokio::time::timeout(PATIENCE, async {
        loop {
            seen = client.get(path).await.1;
            if wanted(&seen) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let waited = waited.await.is_ok();
    assert!(waited, "{path}: {seen:#}");
    seen
}

fn items(list: &Value) -> usize {
    list["items"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn a_deployment_becomes_ready_by_the_hands_of_its_controllers() {
    let (world, mut client) = world().await;
    assert_eq!(client.post(DEPLOYMENTS, &deployment("web", 2)).await.0, 201);
    let web = until(&mut client, &format!("{DEPLOYMENTS}/web"), |web| web["status"]["readyReplicas"] == 2).await;
    assert_eq!(web["metadata"]["generation"], 1, "a status is no change");
    let owners = web["metadata"]["managedFields"].as_array().unwrap();
    assert!(
        owners.iter().any(|owner| owner["manager"] == "kube-controller-manager" && owner["subresource"] == "status")
    );
    let pods = client.get(PODS).await.1;
    assert_eq!(items(&pods), 2);
    let mut writers = std::collections::BTreeSet::new();
    for request in world.server.requests() {
        if request.user.starts_with("system:") {
            assert!((200..300).contains(&request.status), "{request:?}");
            writers.insert(request.user.to_string());
        }
    }
    for writer in [
        "system:kube-scheduler",
        "system:serviceaccount:kube-system:deployment-controller",
        "system:serviceaccount:kube-system:replicaset-controller",
    ] {
        assert!(writers.contains(writer), "{writers:?}");
    }
    assert!(writers.iter().any(|writer| writer.starts_with("system:node:node-")), "{writers:?}");
    // A deletion also removes all dependents.
    client.delete(&format!("{DEPLOYMENTS}/web")).await;
    until(&mut client, PODS, |pods| items(pods) == 0).await;
    until(&mut client, SETS, |sets| items(sets) == 0).await;
}

/// When nothing changes, the simulated programs send no requests, and a watch of the subject gets no events.
#[tokio::test]
async fn at_rest_nothing_is_asked() {
    let (world, mut client) = world().await;
    client.post(DEPLOYMENTS, &deployment("web", 3)).await;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}});
    client.post("/api/v1/namespaces/default/services", &service).await;
    until(&mut client, &format!("{DEPLOYMENTS}/web"), |web| web["status"]["availableReplicas"] == 3).await;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let ready = |slices: &Value| {
        let endpoints = slices["items"][0]["endpoints"].as_array().cloned().unwrap_or_default();
        endpoints.len() == 3 && endpoints.iter().all(|endpoint| endpoint["conditions"]["ready"] == true)
    };
    until(&mut client, slices, ready).await;
    until(&mut client, "/api/v1/namespaces/default/services/web", |web| {
        web["status"]["loadBalancer"]["ingress"][0]["ip"].is_string()
    })
    .await;
    // Writes in progress then end within twice their time.
    let quiet = async || {
        let before = world.server.revision();
        tokio::time::sleep(AFTER * 4).await;
        world.server.revision() == before
    };
    let rests = tokio::time::timeout(PATIENCE, async { while !quiet().await {} }).await;
    assert!(rests.is_ok());
    let asked =
        |world: &World| world.server.requests().iter().filter(|request| request.user.starts_with("system:")).count();
    let before = asked(&world);
    tokio::time::sleep(AFTER * 6).await;
    assert_eq!(asked(&world), before);
}

/// The simulated programs need no role, and the minimal roles do not contain their requests.
#[tokio::test]
async fn roles_are_not_asked() {
    let world = World::with(|config| {
        config.workloads = Some(Workloads { ready_after: AFTER, ..Workloads::default() });
        config.authorization = Authorization::Rbac;
        config.users = vec![User::admin("subject", "subject-token"), User::admin("harness", "harness-token")];
    })
    .await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    client.post(DEPLOYMENTS, &deployment("web", 1)).await;
    until(&mut client, &format!("{DEPLOYMENTS}/web"), |web| web["status"]["readyReplicas"] == 1).await;
    assert!(
        !world.server.users().iter().any(|user| user.starts_with("system:serviceaccount")),
        "{:?}",
        world.server.users()
    );
}

#[tokio::test]
async fn without_the_key_nothing_becomes_of_a_deployment() {
    let (_world, mut client) = World::alone().await;
    client.post(DEPLOYMENTS, &deployment("web", 1)).await;
    tokio::time::sleep(AFTER * 6).await;
    assert_eq!(client.get(&format!("{DEPLOYMENTS}/web")).await.1["status"], json!({}));
    assert_eq!(items(&client.get("/api/v1/nodes").await.1), 0);
}

#[tokio::test]
async fn a_stateful_set_a_daemon_and_a_job_come_to_their_end() {
    let (_world, mut client) = world().await;
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let stateful = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template("db"), "volumeClaimTemplates": [claim]}});
    let daemon = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template("agent")}});
    let mut ends = template("work");
    ends["spec"]["restartPolicy"] = json!("Never");
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": {"completions": 3, "parallelism": 2, "template": ends}});
    for (path, body) in [
        ("apps/v1/namespaces/default/statefulsets", stateful),
        ("apps/v1/namespaces/default/daemonsets", daemon),
        ("batch/v1/namespaces/default/jobs", job),
    ] {
        let (status, answer) = client.post(&format!("/apis/{path}"), &body).await;
        assert_eq!(status, 201, "{answer}");
    }
    until(&mut client, "/apis/apps/v1/namespaces/default/statefulsets/db", |db| {
        db["status"]["availableReplicas"] == 2 && db["status"]["currentReplicas"] == 2
    })
    .await;
    until(&mut client, "/apis/apps/v1/namespaces/default/daemonsets/agent", |agent| {
        agent["status"]["numberAvailable"] == 2
    })
    .await;
    let work = until(&mut client, "/apis/batch/v1/namespaces/default/jobs/work", |work| {
        work["status"]["completionTime"].is_string()
    })
    .await;
    assert_eq!((&work["status"]["succeeded"], &work["status"]["uncountedTerminatedPods"]), (&json!(3), &json!({})));
    let claims = client.get("/api/v1/namespaces/default/persistentvolumeclaims").await.1;
    assert!(claims["items"].as_array().unwrap().iter().all(|claim| claim["status"]["phase"] == "Bound"), "{claims:#}");
}

#[tokio::test]
async fn a_fault_holds_workloads_and_counts_them() {
    let (world, mut client) = world().await;
    client.post(DEPLOYMENTS, &deployment("web", 2)).await;
    let at = format!("{DEPLOYMENTS}/web");
    until(&mut client, &at, |web| web["status"]["readyReplicas"] == 2).await;
    let (id, faults) = (FaultId(3), world.server.faults());
    let fault = Fault {
        lasts: Some(Span::from_secs(60)),
        resource: Some("deployments".to_owned()),
        ..Fault::new(Name::NotReady, Span::default())
    };
    faults.begin(id, &fault).unwrap();
    until(&mut client, &at, |web| web["status"]["unavailableReplicas"] == 2).await;
    assert_eq!(faults.hits(id), 2);
    faults.end(id);
    until(&mut client, &at, |web| web["status"]["readyReplicas"] == 2).await;
    assert_eq!(faults.hits(id), 2);
}

/// Faults of requests hit only clients, never the simulated programs, even if every user is a target.
#[tokio::test]
async fn faults_of_requests_leave_the_programs_alone() {
    let (world, mut client) = world().await;
    let (id, faults) = (FaultId(4), world.server.faults());
    faults.target_everybody();
    let fault = Fault { on: Some(On::Create), resource: Some("pods".to_owned()), ..Fault::armed(Name::HttpError) };
    faults.begin(id, &fault.set("status", 500)).unwrap();
    client.post(DEPLOYMENTS, &deployment("web", 1)).await;
    until(&mut client, &format!("{DEPLOYMENTS}/web"), |web| web["status"]["readyReplicas"] == 1).await;
    assert_eq!(faults.hits(id), 0);
}
