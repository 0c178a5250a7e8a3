//! A subject in Pods: loads its images, applies its manifests, applies its Deployments last, and then follows its Pods.
//!
//! Owns the order in which images are loaded, objects are applied and Pods are followed. The scenario defines the
//! objects ([`Planned`]). When the run removes its node, all Pods of the subject end too.

mod follow;
mod logs;
mod rollout;
mod stats;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use hyper::Method;
use kind::provider::{Nodes, Reach};
use loadgen::churn;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::install::{self, Api};
use super::manifests;
use crate::scenario::{DeploymentImage, Manifest, Planned, PodsOf, ServicePort};
use crate::subject::{Log, Pods};

pub(super) use rollout::{Pod, Rollout};

/// Environment variables of Pods: the URL of the witness, and the Pod's name.
const WITNESS: &str = "LONGHAUL_WITNESS_URL";
const POD: &str = "LONGHAUL_POD";
/// Suffix of the name of the Service through which this machine reaches the Pods.
const DOOR: &str = "-longhaul";

/// A subject in Pods whose objects all exist, except its Deployments.
pub(super) struct Deployed {
    cluster: Cluster,
    deployments: Vec<Manifest>,
    pub(super) pods: Pods,
    pub(super) rollout: Arc<Rollout>,
    /// The address of the subject's webhook, reachable from this machine.
    pub(super) webhook: Option<SocketAddr>,
    /// The address of the subject's metrics and health pages.
    pub(super) pages: Option<SocketAddr>,
    /// Namespace and name of the Secret with the serving certificate, if the run makes the certificate.
    pub(super) secret: Option<(String, String)>,
}

/// The cluster of the subject, shared by all observers.
#[derive(Debug, Clone)]
pub(super) struct Cluster {
    api: churn::Api,
    pods: kind::node::Pods,
}

impl Cluster {
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: String,
        content: &str,
    ) -> Result<(hyper::StatusCode, Value)> {
        let api = Api::from(&self.api);
        let (status, answer) = api.ask_as(method, path, body, install::JSON, content).await?;
        Ok((status, serde_json::from_slice(&answer).unwrap_or_default()))
    }

    /// The object, with the label of the run if the run uses a label.
    pub(super) fn marked(&self, object: &Value) -> Value {
        Api::from(&self.api).marked(object)
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        let (status, answer) = self.ask(Method::GET, path, String::new(), install::JSON).await?;
        anyhow::ensure!(status.is_success(), "GET {path} answers {}: {}", status.as_u16(), answer["message"]);
        Ok(answer)
    }
}

impl Deployed {
    /// Loads the images and applies all objects except the Deployments. The Pods get the environment variables
    /// `variables`.
    pub(super) async fn prepare(
        planned: Planned,
        nodes: Nodes<'_>,
        api: churn::Api,
        variables: &[(String, String)],
    ) -> Result<Self> {
        for image in planned.images {
            let (what, archive) = tokio::task::spawn_blocking(move || archive(image)).await??;
            nodes.load(archive).await.with_context(|| format!("failed to load {what} into the cluster"))?;
        }
        let (mut deployments, before): (Vec<_>, Vec<_>) =
            planned.objects.into_iter().partition(Manifest::is_deployment);
        anyhow::ensure!(!deployments.is_empty(), "`deployment`: there is no Deployment in `manifests`");
        for deployment in &mut deployments {
            give(&mut deployment.object, variables);
        }
        let asks = Api::from(&api);
        manifests::apply(&asks, &before, install::QUIET).await.context("failed to apply what the subject needs")?;
        let cluster = Cluster { api, pods: nodes.pods() };
        let webhook = address(&cluster, planned.webhook.as_ref(), nodes.reach()).await?;
        let pages = address(&cluster, planned.pages.as_ref(), nodes.reach()).await?;
        let reached = webhook.iter().chain(&pages).copied().collect();
        let rollout = Arc::new(Rollout::of(cluster.clone(), &deployments, reached));
        let pods = Pods::default();
        let secret = planned.secret;
        Ok(Self { cluster, deployments, pods, rollout, webhook, pages, secret })
    }

    /// Applies the Deployments, and begins to follow their Pods.
    pub(super) async fn enter(self, log: &Log) -> Result<(Pods, AbortOnDropHandle<()>)> {
        let api = &self.cluster.api;
        let asks = Api::from(api);
        manifests::apply(&asks, &self.deployments, Duration::ZERO).await.context("failed to deploy the subject")?;
        let follows =
            follow::follow(self.cluster, self.rollout, follow::Restarts::new(), self.pods.clone(), log.clone());
        Ok((self.pods, AbortOnDropHandle::new(tokio::spawn(follows))))
    }
}

/// Pods that existed before the run, and which the run only observes.
pub(super) struct Watched {
    cluster: Cluster,
    rollout: Arc<Rollout>,
    /// Container restarts before this run, which are not reported as crashes.
    before: follow::Restarts,
}

impl Watched {
    /// Finds the Pods. Fails if no Pod exists, because the run would observe nothing.
    pub(super) async fn find(of: &PodsOf, nodes: Nodes<'_>, api: churn::Api) -> Result<Self> {
        let cluster = Cluster { api, pods: nodes.pods() };
        let rollout = Arc::new(Rollout::of_pods(cluster.clone(), of));
        let PodsOf { namespace, selector } = of;
        let pods = rollout.pods().await.with_context(|| format!("`pods`: {selector} in {namespace}"))?;
        anyhow::ensure!(
            !pods.is_empty(),
            "`pods`: there is none in {namespace} with {selector}: `kubectl get pods -n {namespace} --show-labels` shows which there are"
        );
        let before = follow::before(&pods);
        Ok(Self { cluster, rollout, before })
    }

    pub(super) fn enter(self, log: &Log) -> (Pods, AbortOnDropHandle<()>) {
        let pods = Pods::default();
        let follows = follow::follow(self.cluster, self.rollout, self.before, pods.clone(), log.clone());
        (pods, AbortOnDropHandle::new(tokio::spawn(follows)))
    }
}

/// The bytes of an image, and its name.
fn archive(image: DeploymentImage) -> Result<(String, Vec<u8>)> {
    match image {
        DeploymentImage::Archive(path) if path.is_dir() => {
            let archive = kind::node::image::archive_of_layout(&path);
            let archive = archive.with_context(|| format!("failed to read `images`: {}", path.display()))?;
            Ok((path.display().to_string(), archive))
        }
        DeploymentImage::Archive(path) => {
            let bytes = std::fs::read(&path).with_context(|| format!("failed to read `images`: {}", path.display()))?;
            Ok((path.display().to_string(), bytes))
        }
        DeploymentImage::Program { name, program, user } => {
            let image = kind::node::image::Image::of_program(name, &program, user);
            let archive = image.and_then(|image| image.archive());
            let archive = archive.with_context(|| format!("failed to make an image of {}", program.display()))?;
            Ok((name.to_owned(), archive))
        }
    }
}

/// Adds environment variables to all containers unless the manifest sets them. Allows the Pods on the node that is
/// reserved for the subject.
fn give(deployment: &mut Value, variables: &[(String, String)]) {
    let containers = deployment.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        let mut given = container["env"].as_array().cloned().unwrap_or_default();
        // The kubelet replaces `$(…)` if the name was defined earlier.
        given.push(json!({"name": POD, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}));
        for (name, value) in variables {
            if given.iter().all(|one| one["name"] != name.as_str()) {
                // The path separates several Pods that report the same objects.
                let value = if name == WITNESS { format!("{value}/$({POD})") } else { value.clone() };
                given.push(json!({"name": name, "value": value}));
            }
        }
        container["env"] = Value::Array(given);
    }
    let Some(pod) = deployment.pointer_mut("/spec/template/spec") else { return };
    let mut tolerated = pod["tolerations"].as_array().cloned().unwrap_or_default();
    tolerated.push(json!({"key": kind::node::TAINT, "operator": "Exists"}));
    pod["tolerations"] = Value::Array(tolerated);
}

/// The address of a Service from this machine: the cluster IP if this machine is in the cluster network, otherwise the
/// node port.
async fn address(cluster: &Cluster, port: Option<&ServicePort>, reach: Reach) -> Result<Option<SocketAddr>> {
    let Some(ServicePort { namespace, name, port }) = port else { return Ok(None) };
    let service = cluster.get(&format!("/api/v1/namespaces/{namespace}/services/{name}")).await?;
    let node = match reach {
        Reach::NodePort(node) => node,
        Reach::Service => {
            let address: Option<IpAddr> = service["spec"]["clusterIP"].as_str().and_then(|text| text.parse().ok());
            let address =
                address.with_context(|| format!("the Service {namespace}/{name} has no address in the cluster"))?;
            return Ok(Some(SocketAddr::from((address, *port))));
        }
    };
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let wanted = ports.into_iter().find(|one| one["port"] == *port);
    let wanted = wanted.with_context(|| format!("the Service {namespace}/{name} has no port {port}"))?;
    let door = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("{name}{DOOR}"), "namespace": namespace},
        "spec": {
            "type": "NodePort", "selector": service["spec"]["selector"],
            "ports": [{"port": port, "targetPort": wanted["targetPort"]}]
        }
    });
    let api = Api::from(&cluster.api);
    let (status, made) = api.create(&format!("/api/v1/namespaces/{namespace}/services"), &door).await?;
    let made: Value = serde_json::from_slice(&made).unwrap_or_default();
    let opened = made["spec"]["ports"][0]["nodePort"].as_u64().and_then(|port| u16::try_from(port).ok());
    let opened = opened.with_context(|| {
        format!("no port of the nodes leads to the Service {namespace}/{name}: {status}: {}", made["message"])
    })?;
    Ok(Some(SocketAddr::from((node, opened))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_container_is_given_what_its_manifest_does_not_say() {
        let mut deployment = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "a"}, {"name": "b", "env": [{"name": "X", "value": "own"}]}
        ]}}}});
        let variables = [("X", "1"), (WITNESS, "http://10.200.0.1:7/observe")];
        give(&mut deployment, &variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let containers = &deployment["spec"]["template"]["spec"]["containers"];
        let own = json!({"name": POD, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
        let witness = json!({"name": WITNESS, "value": "http://10.200.0.1:7/observe/$(LONGHAUL_POD)"});
        assert_eq!(containers[0]["env"], json!([own, {"name": "X", "value": "1"}, witness]));
        assert_eq!(containers[1]["env"], json!([{"name": "X", "value": "own"}, own, witness]));
        let tolerated = &deployment["spec"]["template"]["spec"]["tolerations"];
        assert_eq!(tolerated, &json!([{"key": "longhaul.dev/subjects-only", "operator": "Exists"}]));
    }
}
