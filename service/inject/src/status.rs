//! The status of an injection: which of its objects exist, and why it does not serve.

use serde_json::Value;
use service_seed::index::Index;

use super::cluster::{Cluster, Error};
use super::explain::{self, Event, Finding};
use super::objects::INDEX_KEY;
use super::send;

#[derive(Debug)]
pub struct Status {
    /// The index of the payload; `None` if the index does not exist or is invalid.
    pub index: Option<Index>,
    pub chunks: usize,
    /// The numbers of the first missing chunks.
    pub missing: Vec<u32>,
    /// The number of objects that belong to other runs than the run of the index.
    pub others: usize,
    pub pod: Option<Value>,
    pub node_port: Option<u16>,
    pub findings: Vec<Finding>,
}

/// Maximum number of missing chunks that are listed.
const MISSING_MAX: usize = 10;

impl Status {
    pub fn is_ready(&self) -> bool {
        self.pod.as_ref().is_some_and(is_ready)
    }
}

pub fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

pub async fn status(cluster: &Cluster) -> Result<Status, Error> {
    let names = &cluster.names;
    let object = cluster.read(&names.path("configmaps", &names.index())).await?;
    let text = object.as_ref().and_then(|object| object["data"][INDEX_KEY].as_str());
    let index = match text.map(Index::parse) {
        None => None,
        Some(Ok(index)) => Some(index),
        Some(Err(error)) => return Err(Error::Refused(format!("configmaps/{}: {error}", names.index()))),
    };
    let (mut chunks, mut missing, mut others) = (0, Vec::new(), 0);
    if let Some(index) = &index {
        let census = send::census(cluster, index).await?;
        chunks = census.claimed.len();
        others = census.others.values().sum();
        let absent = (0..index.chunks.len()).filter(|place| !census.claimed.contains(place));
        missing = absent.map(|place| index.chunks[place].number).take(MISSING_MAX).collect();
    }
    let pod = cluster.read(&names.path("pods", &names.name)).await?;
    let findings = match &pod {
        Some(pod) => explain::pod(pod, &events(cluster).await),
        None => Vec::new(),
    };
    let service = cluster.read(&names.path("services", &names.name)).await?;
    let node_port = service.as_ref().and_then(node_port);
    Ok(Status { index, chunks, missing, others, pod, node_port, findings })
}

pub fn node_port(service: &Value) -> Option<u16> {
    service["spec"]["ports"][0]["nodePort"].as_u64().and_then(|port| u16::try_from(port).ok())
}

/// The events of the injected program's Pod. Without the right to read events, the list is empty and the status
/// contains less detail.
pub async fn events(cluster: &Cluster) -> Vec<Event> {
    let names = &cluster.names;
    let query = format!("fieldSelector=involvedObject.kind%3DPod,involvedObject.name%3D{}", names.name);
    cluster.list(&format!("{}?{query}", names.path("events", ""))).await.unwrap_or_default()
}
