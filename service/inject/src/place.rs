//! Chooses where the injected program runs: a node that accepts its Pod, and an image that this node already has.
//!
//! The injected program is static and needs nothing from the image except a file system to start in. The functions take
//! objects as the API server returns them; missing fields count as empty.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::quantity::milli;

/// CPU request of the injected program's Pod, in thousandths of a processor.
pub const CPU_MILLI: i128 = 500;
/// Memory request of the injected program's Pod, in bytes.
pub const MEMORY_BYTES: i128 = 64 << 20;
/// Maximum number of reasons that are shown if no node is suitable.
const REASONS_MAX: usize = 20;

/// The fields of a node that affect the choice of node and image.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    metadata: Metadata,
    spec: NodeSpec,
    status: NodeStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    namespace: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    unschedulable: bool,
    taints: Vec<Taint>,
}

/// A taint of a node, or (with an operator) a toleration of a Pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Taint {
    key: String,
    value: String,
    effect: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeStatus {
    allocatable: BTreeMap<String, String>,
    conditions: Vec<Condition>,
    node_info: NodeInfo,
    images: Vec<NodeImage>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeInfo {
    architecture: String,
    operating_system: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeImage {
    names: Option<Vec<String>>,
    size_bytes: u64,
}

/// The fields of a Pod that affect the choice of node and image.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    metadata: Metadata,
    spec: PodSpec,
    status: PodStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: String,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    overhead: BTreeMap<String, String>,
    image_pull_secrets: Vec<serde::de::IgnoredAny>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
    image: String,
    resources: Resources,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Resources {
    requests: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    phase: String,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(clippy::zero_sized_map_values, reason = "the key is the state, what it says is left out")]
struct ContainerStatus {
    name: String,
    #[serde(rename = "imageID")]
    image_id: String,
    state: BTreeMap<String, serde::de::IgnoredAny>,
}

/// The demands on the node and image of the injected program.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// The architecture as in `nodeInfo.architecture`: `amd64`, `arm64`.
    pub architecture: String,
    pub node: Option<String>,
    /// Tolerated taints: `key` or `key=value`, each with an optional `:effect`.
    pub tolerations: Vec<String>,
    /// Registry hosts whose images are not used, because the injected program replaces these registries.
    pub avoided_hosts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub node: String,
    /// The image as a Pod writes it, with its digest if the digest is known.
    pub image: String,
    /// The Pod that uses the image now, for messages.
    pub seen_in: String,
}

/// The error that no node is suitable: each node with its reason.
#[derive(Debug, thiserror::Error)]
#[error("no node accepts the seed: {}", reasons.join("; "))]
pub struct NoPlace {
    reasons: Vec<String>,
}

#[derive(Default)]
struct Used {
    cpu_milli: i128,
    memory_milli: i128,
    pods: i128,
}

/// Chooses a node and an image among all suitable nodes. Images of running Pods without pull secrets are preferred,
/// then images with a digest. Among equal candidates, the order of names decides, so that the same cluster gives the
/// same choice.
pub fn choose(nodes: &[Node], pods: &[Pod], needs: &Needs) -> Result<Placement, NoPlace> {
    let mut used: BTreeMap<&str, Used> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !matches!(&*pod.status.phase, "Succeeded" | "Failed")) {
        let of_node = used.entry(&pod.spec.node_name).or_default();
        of_node.cpu_milli += requested(pod, "cpu");
        of_node.memory_milli += requested(pod, "memory");
        of_node.pods += 1;
    }
    let mut reasons = Vec::new();
    let mut best: Option<(Rank, Placement)> = None;
    for node in nodes {
        let name = &*node.metadata.name;
        match unfit(node, used.get(name).unwrap_or(&Used::default()), needs) {
            Some(reason) => reasons.push(format!("{name}: {reason}")),
            None => match image(node, pods, needs) {
                Some(found) if best.as_ref().is_none_or(|best| found.0 < best.0) => best = Some(found),
                Some(_) => {}
                None => reasons.push(format!("{name}: no image on it that could be used; name one with --node-image")),
            },
        }
    }
    if let Some((_, place)) = best {
        return Ok(place);
    }
    if nodes.is_empty() {
        reasons.push("there are no nodes".to_owned());
    }
    reasons.truncate(REASONS_MAX);
    Err(NoPlace { reasons })
}

/// The order in which images are preferred; lower values are better.
type Rank = (bool, bool, bool, String, String);

/// Why a node cannot run the Pod; `None` if the node can run it.
fn unfit(node: &Node, used: &Used, needs: &Needs) -> Option<String> {
    let Node { metadata, spec, status } = node;
    if needs.node.as_ref().is_some_and(|wanted| *wanted != metadata.name) {
        return Some("another node is asked for".to_owned());
    }
    let NodeInfo { architecture, operating_system } = &status.node_info;
    if operating_system != "linux" || *architecture != needs.architecture {
        return Some(format!("it is {operating_system}/{architecture}, and the seed is linux/{}", needs.architecture));
    }
    if !status.conditions.iter().any(|condition| condition.r#type == "Ready" && condition.status == "True") {
        return Some("it is not ready".to_owned());
    }
    if spec.unschedulable {
        return Some("it is cordoned".to_owned());
    }
    let hard = |taint: &&Taint| matches!(&*taint.effect, "NoSchedule" | "NoExecute");
    if let Some(taint) = spec.taints.iter().filter(hard).find(|taint| !tolerated(taint, &needs.tolerations)) {
        return Some(format!("it has the taint {}={}:{} (see --tolerate)", taint.key, taint.value, taint.effect));
    }
    let has = |resource: &str| milli(status.allocatable.get(resource).map_or("0", String::as_str));
    let cpu = has("cpu") - used.cpu_milli;
    if cpu < CPU_MILLI {
        return Some(format!("{cpu}m of its CPU are free, and {CPU_MILLI}m are needed"));
    }
    let memory = (has("memory") - used.memory_milli) / 1_000;
    if memory < MEMORY_BYTES {
        return Some(format!("{} MiB of its memory are free, and {} are needed", memory >> 20, MEMORY_BYTES >> 20));
    }
    if status.allocatable.contains_key("pods") && has("pods") / 1_000 <= used.pods {
        return Some("it has as many Pods as it takes".to_owned());
    }
    None
}

/// Whether `tolerations` contain a toleration for the taint.
fn tolerated(taint: &Taint, tolerations: &[String]) -> bool {
    tolerations.iter().map(|text| toleration(text)).any(|one| {
        one.key == taint.key
            && (one.effect.is_empty() || one.effect == taint.effect)
            && (one.value.is_empty() || one.value == taint.value)
    })
}

pub fn toleration(text: &str) -> Taint {
    let (rest, effect) = text.rsplit_once(':').unwrap_or((text, ""));
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    Taint { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() }
}

impl Taint {
    pub fn tolerating(&self) -> serde_json::Value {
        let mut toleration = serde_json::json!({"key": self.key, "operator": "Exists"});
        if !self.value.is_empty() {
            toleration["operator"] = "Equal".into();
            toleration["value"] = self.value.clone().into();
        }
        if !self.effect.is_empty() {
            toleration["effect"] = self.effect.clone().into();
        }
        toleration
    }
}

/// The thousandths of `resource` that a Pod requests: the sum of its containers or, if larger, its largest init
/// container, plus the overhead of its runtime class.
fn requested(pod: &Pod, resource: &str) -> i128 {
    let of = |container: &Container| milli(container.resources.requests.get(resource).map_or("0", String::as_str));
    let sum: i128 = pod.spec.containers.iter().map(of).sum();
    let largest = pod.spec.init_containers.iter().map(of).max().unwrap_or(0);
    sum.max(largest) + milli(pod.spec.overhead.get(resource).map_or("0", String::as_str))
}

fn image(node: &Node, pods: &[Pod], needs: &Needs) -> Option<(Rank, Placement)> {
    let name = &node.metadata.name;
    let avoided = |image: &str| {
        needs
            .avoided_hosts
            .iter()
            .any(|host| image.strip_prefix(host.as_str()).is_some_and(|rest| rest.starts_with('/')))
    };
    let mut found: Vec<(Rank, Placement)> = Vec::new();
    for pod in pods.iter().filter(|pod| pod.spec.node_name == *name) {
        for container in &pod.spec.containers {
            let status = pod.status.container_statuses.iter().find(|status| status.name == container.name);
            // A running container has its image; a waiting one may wait for just that.
            let Some(status) = status.filter(|status| status.state.contains_key("running")) else { continue };
            if container.image.is_empty() || avoided(&container.image) {
                continue;
            }
            let secrets = !pod.spec.image_pull_secrets.is_empty();
            let seen_in = format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
            let pinned = pinned(&container.image, &status.image_id);
            let image = pinned.clone().unwrap_or_else(|| container.image.clone());
            let rank = (false, secrets, pinned.is_none(), name.clone(), image.clone());
            found.push((rank, Placement { node: name.clone(), image, seen_in }));
        }
    }
    // Images that no Pod uses may be collected before the seed starts: only if there is nothing else.
    for image in &node.status.images {
        let names = image.names.iter().flatten();
        for text in names.filter(|text| !text.starts_with("<none>") && !avoided(text)) {
            let rank = (true, false, !text.contains("@sha256:"), name.clone(), text.clone());
            let seen_in = format!("node {name}, {} bytes", image.size_bytes);
            found.push((rank, Placement { node: name.clone(), image: text.clone(), seen_in }));
        }
    }
    found.into_iter().min_by(|a, b| a.0.cmp(&b.0))
}

/// The image with its digest, if the runtime states a usable name; an image id alone is not usable.
fn pinned(image: &str, id: &str) -> Option<String> {
    let id = id.strip_prefix("docker-pullable://").unwrap_or(id);
    if image.contains("@sha256:") {
        return Some(image.to_owned());
    }
    (id.contains('/') || id.contains('@')).then_some(id).filter(|id| id.contains("@sha256:")).map(str::to_owned)
}

#[cfg(test)]
mod tests;
