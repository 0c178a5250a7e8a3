//! Tests with a real kube-controller-manager against the mock API server, for kinds without a simulated controller.

use std::path::PathBuf;
use std::process::Stdio;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;
use tokio::process::Command;

use crate::world::{World, until};

const PROGRAM: &str = "kube-controller-manager";
/// The controllers that kube-controller-manager runs in this test: controllers of workloads, and the garbage collector.
const CONTROLLERS: &str = "deployment,replicaset,garbagecollector,namespace,endpoint";

/// The path of kube-controller-manager in the folder of envtest's binaries.
fn program() -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os("KUBEBUILDER_ASSETS")?).join(PROGRAM);
    path.is_file().then_some(path)
}

/// The real controllers make a replica set and pods for a deployment, scale them, and delete them with the deployment.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: kube-controller-manager"]
async fn a_real_one_makes_pods_of_a_deployment_and_takes_them_away() {
    let Some(program) = program() else {
        println!("skipped: needs {PROGRAM}");
        return;
    };
    let world = World::start().await;
    let home = tempfile::tempdir().unwrap();
    let kubeconfig = home.path().join("config");
    std::fs::write(&kubeconfig, world.kubeconfig()).unwrap();
    let log = std::fs::File::create(home.path().join("log")).unwrap();
    let mut command = Command::new(program);
    command.arg(format!("--kubeconfig={}", kubeconfig.display()));
    command.args(["--leader-elect=false", "--secure-port=0"]).arg(format!("--controllers={CONTROLLERS}"));
    let _running = command.stderr(log).stdout(Stdio::null()).kill_on_drop(true).spawn().unwrap();

    let deployments: Api<Deployment> = Api::default_namespaced(world.harness.clone());
    let sets: Api<ReplicaSet> = Api::default_namespaced(world.harness.clone());
    let pods: Api<Pod> = Api::default_namespaced(world.harness.clone());
    let count = async || pods.list(&ListParams::default()).await.unwrap().items.len();
    let labels = json!({"app": "web"});
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
        }
    });
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
    until("three pods were made", async || count().await == 3).await;
    let mut scaled = deployments.get("web").await.unwrap();
    scaled.spec.as_mut().unwrap().replicas = Some(1);
    scaled.metadata.resource_version = None;
    deployments.replace("web", &PostParams::default(), &scaled).await.unwrap();
    until("two of them were taken away", async || count().await == 1).await;
    until("the status tells it", async || {
        let status = deployments.get("web").await.unwrap().status.unwrap_or_default();
        status.replicas == Some(1) && status.observed_generation == Some(2)
    })
    .await;
    deployments.delete("web", &DeleteParams::background()).await.unwrap();
    until("nothing is left", async || {
        count().await == 0 && sets.list(&ListParams::default()).await.unwrap().items.is_empty()
    })
    .await;
}
