//! The state of the rollout of a subject's Deployments, checked as `kubectl rollout status` does.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result};
use hyper::{Method, StatusCode};
use kind::node::{Limits, Pressed, press};
use serde_json::{Value, json};

use super::Cluster;
use crate::scenario::{Manifest, PodsOf};

const MERGE: &str = "application/merge-patch+json";
/// Timeout of a connection to a Service.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

pub(in crate::run) struct Rollout {
    cluster: Cluster,
    deployments: Vec<Named>,
    /// Addresses of Services that must accept connections before the rollout is complete.
    reached: Vec<SocketAddr>,
}

struct Named {
    path: String,
    /// Path and query for the list of the subject's Pods.
    pods: String,
    name: String,
    namespace: String,
    /// The label selector of the subject's Pods.
    labels: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) struct Pod {
    pub(in crate::run) uid: String,
    pub(in crate::run) namespace: String,
    pub(in crate::run) name: String,
    /// The node of the Pod; `None` before the Pod is scheduled.
    pub(in crate::run) node: Option<String>,
    pub(in crate::run) is_ready: bool,
    pub(in crate::run) is_going: bool,
    /// The Pod IP; `None` before an address is assigned.
    pub(in crate::run) address: Option<IpAddr>,
    pub(in crate::run) containers: Vec<Container>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) struct Container {
    pub(in crate::run) name: String,
    pub(in crate::run) restarts: u64,
    pub(in crate::run) runs: bool,
    /// The last termination of the container.
    pub(in crate::run) ended: Option<Ended>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) struct Ended {
    /// The reason and the exit code of the termination, such as `OOMKilled, exit code 137`.
    pub(in crate::run) status: String,
    pub(in crate::run) ran: Duration,
}

impl Rollout {
    pub(super) fn of(cluster: Cluster, deployments: &[Manifest], reached: Vec<SocketAddr>) -> Self {
        let named = |manifest: &Manifest| {
            let object = &manifest.object;
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
            let labels: BTreeMap<String, String> =
                serde_json::from_value(object["spec"]["selector"]["matchLabels"].clone()).unwrap_or_default();
            let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}%3D{value}")).collect();
            let selector = labels.join("%2C").replace('/', "%2F");
            Named {
                path: format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"),
                pods: format!("/api/v1/namespaces/{namespace}/pods?labelSelector={selector}"),
                name,
                namespace: namespace.to_owned(),
                labels: object["spec"]["selector"].clone(),
            }
        };
        Self { cluster, deployments: deployments.iter().map(named).collect(), reached }
    }

    /// The state of the Pods that a label selector finds, without their Deployments, which are not known.
    pub(super) fn of_pods(cluster: Cluster, of: &PodsOf) -> Self {
        let PodsOf { namespace, selector } = of;
        // All characters of a selector are allowed in a query except those that end its value.
        let encoded =
            |c: char| if c.is_ascii_alphanumeric() || "-._~".contains(c) { c.to_string() } else { escaped(c) };
        let selector: String = selector.chars().map(encoded).collect();
        let named = Named {
            path: String::new(),
            pods: format!("/api/v1/namespaces/{namespace}/pods?labelSelector={selector}"),
            name: String::new(),
            namespace: namespace.clone(),
            labels: Value::Null,
        };
        Self { cluster, deployments: vec![named], reached: Vec::new() }
    }

    /// The reasons why the rollout is not complete: Pods that are missing, not ready or superfluous. `None` if the
    /// rollout is complete.
    pub(in crate::run) async fn missing(&self) -> Option<String> {
        match self.look().await {
            Ok(missing) => missing,
            Err(error) => Some(format!("{error:#}")),
        }
    }

    async fn look(&self) -> Result<Option<String>> {
        for Named { path, name, .. } in &self.deployments {
            let deployment = self.cluster.get(path).await?;
            if let Some(missing) = missing(&deployment) {
                let mut why = Vec::new();
                for pod in self.pods().await? {
                    if !pod.is_ready {
                        why.push(pod.name);
                    }
                }
                let waits = if why.is_empty() { String::new() } else { format!(" (not ready: {})", why.join(", ")) };
                return Ok(Some(format!("the Deployment {name} {missing}{waits}")));
            }
        }
        for address in &self.reached {
            let connect = tokio::time::timeout(CONNECT_LIMIT, tokio::net::TcpStream::connect(address));
            if !matches!(connect.await, Ok(Ok(_))) {
                return Ok(Some(format!("its Service at {address} is not open")));
            }
        }
        Ok(None)
    }

    pub(in crate::run) async fn pods(&self) -> Result<Vec<Pod>> {
        let mut pods = Vec::new();
        for Named { pods: path, .. } in &self.deployments {
            let list = self.cluster.get(path).await?;
            pods.extend(list["items"].as_array().into_iter().flatten().map(Pod::of));
        }
        pods.sort_by(|one: &Pod, other| one.name.cmp(&other.name));
        Ok(pods)
    }

    /// Starts a rollout of each Deployment, as `kubectl rollout restart` does.
    pub(in crate::run) async fn restart(&self) -> Result<()> {
        let now = jiff::Timestamp::now().to_string();
        let annotations = json!({"kubectl.kubernetes.io/restartedAt": now});
        let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
        for Named { path, name, .. } in &self.deployments {
            let (status, answer) = self.cluster.ask(Method::PATCH, path, patch.to_string(), MERGE).await?;
            anyhow::ensure!(status.is_success(), "{name} could not be restarted: {status}: {}", answer["message"]);
        }
        Ok(())
    }

    /// Deletes a Pod without a grace period.
    pub(in crate::run) async fn delete(&self, pod: &Pod) -> Result<()> {
        let Pod { namespace, name, uid, .. } = pod;
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": uid}
        });
        let asked = self.cluster.ask(Method::DELETE, &path, options.to_string(), super::install::JSON);
        let (status, answer) = asked.await.with_context(|| format!("failed to delete the Pod {name}"))?;
        anyhow::ensure!(status.is_success(), "the Pod {name} could not be deleted: {status}: {}", answer["message"]);
        Ok(())
    }

    /// Requests the eviction of a Pod, as `kubectl drain` does. Returns false if a `PodDisruptionBudget` forbids the
    /// eviction for now.
    pub(in crate::run) async fn evict(&self, pod: &Pod) -> Result<bool> {
        let Pod { namespace, name, .. } = pod;
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
        let metadata = json!({"name": name, "namespace": namespace});
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata});
        let asked = self.cluster.ask(Method::POST, &path, eviction.to_string(), super::install::JSON).await;
        let (status, answer) = asked.with_context(|| format!("failed to evict the Pod {name}"))?;
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Ok(false);
        }
        anyhow::ensure!(status.is_success(), "the Pod {name} could not be evicted: {status}: {}", answer["message"]);
        Ok(true)
    }

    /// Annotates all Pods, so that their kubelets sync them at once and read their Secrets again.
    pub(in crate::run) async fn touch(&self) -> Result<()> {
        let now = jiff::Timestamp::now().to_string();
        let patch = json!({"metadata": {"annotations": {"longhaul.dev/touched": now}}}).to_string();
        for Pod { namespace, name, .. } in self.pods().await? {
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
            let (status, answer) = self.cluster.ask(Method::PATCH, &path, patch.clone(), MERGE).await?;
            // A Pod that is gone need not read anything.
            let is_fine = status.is_success() || status == StatusCode::NOT_FOUND;
            anyhow::ensure!(is_fine, "{name} could not be annotated: {status}: {}", answer["message"]);
        }
        Ok(())
    }

    /// The wanted number of Pods of each Deployment (`spec.replicas`).
    pub(in crate::run) async fn replicas(&self) -> Result<Vec<u64>> {
        let mut all = Vec::new();
        for Named { path, .. } in &self.deployments {
            let deployment = self.cluster.get(path).await?;
            all.push(deployment.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1));
        }
        Ok(all)
    }

    /// Sets the number of Pods of each Deployment, in the order of [`Self::replicas`].
    pub(in crate::run) async fn scale(&self, replicas: &[u64]) -> Result<()> {
        for (Named { path, name, .. }, replicas) in self.deployments.iter().zip(replicas) {
            let patch = json!({"spec": {"replicas": replicas}}).to_string();
            let (status, answer) = self.cluster.ask(Method::PATCH, &format!("{path}/scale"), patch, MERGE).await?;
            anyhow::ensure!(status.is_success(), "{name} could not be scaled: {status}: {}", answer["message"]);
        }
        Ok(())
    }

    /// Limits the resources of a Pod's containers, except for containers in `known`.
    pub(in crate::run) fn press(&self, pod: &Pod, limits: Limits, known: &[String]) -> std::io::Result<Vec<Pressed>> {
        press(&self.first_processes(pod), limits, known)
    }

    /// The Pod selector of each Deployment, with its namespace and name.
    pub(in crate::run) fn selectors(&self) -> Vec<(String, String, Value)> {
        self.deployments.iter().map(|one| (one.namespace.clone(), one.name.clone(), one.labels.clone())).collect()
    }

    /// The addresses of the subject's Services.
    pub(in crate::run) fn reached(&self) -> &[SocketAddr] {
        &self.reached
    }

    pub(in crate::run) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(in crate::run) fn first_processes(&self, pod: &Pod) -> Vec<u32> {
        self.cluster.pods.first_processes(&pod.uid)
    }
}

impl fmt::Debug for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.deployments.iter().map(|one| &one.name)).finish()
    }
}

/// The percent-encoding of a character (RFC 3986, section 2.1).
fn escaped(c: char) -> String {
    let mut text = String::new();
    for byte in c.to_string().bytes() {
        // Writing to a string cannot fail.
        let _ = write!(text, "%{byte:02X}");
    }
    text
}

/// The reason why a Deployment is not complete (Kubernetes documentation, "Deployment status").
fn missing(deployment: &Value) -> Option<String> {
    let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    if number("/status/observedGeneration") < number("/metadata/generation") {
        return Some("was not looked at yet".to_owned());
    }
    let wanted = deployment.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    let updated = number("/status/updatedReplicas");
    if updated < wanted {
        return Some(format!("has {updated} of {wanted} new Pods"));
    }
    if number("/status/replicas") > updated {
        return Some("still has old Pods".to_owned());
    }
    let available = number("/status/availableReplicas");
    (available < updated).then(|| format!("has {available} of {updated} Pods available"))
}

impl Pod {
    fn of(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let list = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        let is_ready = list("/status/conditions").any(|one| one["type"] == "Ready" && one["status"] == "True");
        Self {
            uid: text("/metadata/uid"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            node: Some(text("/spec/nodeName")).filter(|name| !name.is_empty()),
            is_ready,
            is_going: object.pointer("/metadata/deletionTimestamp").is_some(),
            address: text("/status/podIP").parse().ok(),
            containers: list("/status/containerStatuses").map(Container::of).collect(),
        }
    }

    /// Number of restarts of all containers of the Pod.
    pub(in crate::run) fn restarts(&self) -> u64 {
        self.containers.iter().map(|container| container.restarts).sum()
    }
}

impl Container {
    fn of(status: &Value) -> Self {
        let ended = status.pointer("/lastState/terminated").map(|ended| {
            let at = |key: &str| ended[key].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
            let ran = at("startedAt").zip(at("finishedAt")).map(|(from, to)| to.duration_since(from));
            let reason = ended["reason"].as_str().unwrap_or("ended");
            Ended {
                status: format!("{reason}, exit code {}", ended["exitCode"]),
                ran: ran.and_then(|ran| Duration::try_from(ran).ok()).unwrap_or_default(),
            }
        });
        Self {
            name: status["name"].as_str().unwrap_or_default().to_owned(),
            restarts: status["restartCount"].as_u64().unwrap_or(0),
            runs: status.pointer("/state/running").is_some(),
            ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_is_over_when_every_new_pod_is_available_and_no_old_one_is_left() {
        let deployment = |observed: u64, replicas: u64, updated: u64, available: u64| {
            json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": {
                "observedGeneration": observed, "replicas": replicas, "updatedReplicas": updated, "availableReplicas": available
            }})
        };
        let told = |deployment: Value| missing(&deployment).unwrap_or_default();
        assert_eq!(told(deployment(1, 2, 2, 2)), "was not looked at yet");
        assert_eq!(told(deployment(2, 3, 1, 2)), "has 1 of 2 new Pods");
        assert_eq!(told(deployment(2, 3, 2, 3)), "still has old Pods");
        assert_eq!(told(deployment(2, 2, 2, 1)), "has 1 of 2 Pods available");
        assert_eq!(told(deployment(2, 2, 2, 2)), "");
    }

    #[test]
    fn a_pod_tells_how_its_containers_ended() {
        let pod = Pod::of(&json!({
            "metadata": {"uid": "u", "namespace": "n", "name": "p"},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{
                    "name": "c", "restartCount": 2, "state": {"running": {}},
                    "lastState": {"terminated": {
                        "reason": "OOMKilled", "exitCode": 137, "startedAt": "2025-01-01T00:00:00Z", "finishedAt": "2025-01-01T00:00:03Z"
                    }}
                }]
            }
        }));
        assert!(pod.is_ready && !pod.is_going && pod.restarts() == 2);
        let ended = pod.containers[0].ended.as_ref().unwrap();
        assert_eq!((ended.status.as_str(), ended.ran), ("OOMKilled, exit code 137", Duration::from_secs(3)));
    }
}
