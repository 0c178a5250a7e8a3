//! The command `inject apply`: creates the index, program, chunks, a Service and the Pod of the injected program, and
//! waits until the program serves.
//!
//! Every step can be repeated, because correct existing objects are not changed. So the same command completes an
//! injection that was interrupted at any time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use service_seed::index::{CHUNK_BYTES_MAX, Index};
use tokio::time::{Instant, sleep};

use super::cluster::{Cluster, Error};
use super::explain;
use super::objects::{Owner, RUN_LABEL, Reach, Run};
use super::payload::Payload;
use super::place::{self, Needs, Node, Placement, Pod, toleration};
use super::progress::Progress;
use super::send::{self, Sent};
use super::status::{events, is_ready, node_port};

/// Time between two reads of the injected program's Pod while it starts.
const LOOK: Duration = Duration::from_millis(500);
/// Time limit for the service account of a new namespace to appear.
const ACCOUNT: Duration = Duration::from_mins(1);
/// Maximum number of requests for another node port, if the assigned port is one to leave free.
const PORTS_MAX: u32 = 10;
/// Pause before each request for another node port.
const PORT_WAIT: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Options {
    pub binary: Vec<u8>,
    /// The demands on the node of the injected program. The node's architecture must be the architecture of the
    /// program.
    pub needs: Needs,
    /// An image in whose file system the injected program runs. If an image is set and no node is named, the scheduler
    /// chooses the node.
    pub image: Option<String>,
    pub reach: Reach,
    /// Node ports that should stay free.
    pub avoided_ports: Vec<u16>,
    /// Maximum number of chunks that are sent at one time.
    pub parallel: usize,
    /// Longest time until the injected program serves, in addition to the time that the kubelet needs for its chunks.
    pub wait: Duration,
    /// Whether an earlier injection of the same name is removed first.
    pub replace: bool,
}

#[derive(Debug)]
pub struct Applied {
    pub sent: Sent,
    /// The number of chunks that already existed and were correct.
    pub kept: usize,
    pub node_port: Option<u16>,
    pub cluster_ip: String,
}

/// The architecture of an ELF program, as Kubernetes names it.
pub fn architecture(binary: &[u8]) -> Option<&'static str> {
    let is_elf = binary.starts_with(b"\x7fELF\x02\x01");
    match (is_elf, binary.get(18..20)?) {
        (true, [62, 0]) => Some("amd64"),
        (true, [183, 0]) => Some("arm64"),
        _ => None,
    }
}

pub async fn place(cluster: &Cluster, needs: &Needs) -> Result<Placement, Error> {
    let nodes: Vec<Node> = cluster.list("/api/v1/nodes?").await?;
    let pods: Vec<Pod> = cluster.list("/api/v1/pods?").await?;
    place::choose(&nodes, &pods, needs).map_err(|none| Error::Refused(none.to_string()))
}

pub async fn apply(cluster: &Arc<Cluster>, payload: &Payload, options: &Options) -> Result<Applied, Error> {
    let index = &payload.index;
    if options.binary.len() > CHUNK_BYTES_MAX as usize {
        let what =
            format!("the seed's program has {} bytes, and a ConfigMap holds {CHUNK_BYTES_MAX}", options.binary.len());
        return Err(Error::Refused(what));
    }
    let mut census = send::census(cluster, index).await?;
    if let Some(stranger) = census.strangers.first() {
        let more = census.strangers.len() - 1;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let what = format!(
            "{stranger}{more} of this namespace has the name of an object of this injection, but does not belong to it: inject under \
             another --name, into another namespace, or delete the object if it is not needed"
        );
        return Err(Error::Refused(what));
    }
    if !census.others.is_empty() && options.replace {
        let removed = super::clean::clean(cluster).await?;
        eprintln!("removed {removed} objects of an earlier run");
        census = send::census(cluster, index).await?;
    }
    if let Some((run, count)) = census.others.first_key_value() {
        let what = format!(
            "run {run} is there with {count} objects and would be mixed with {}: finish it with the images and settings it was begun with, \
             remove it with `inject clean`, or let --replace do that",
            index.run
        );
        return Err(Error::Refused(what));
    }
    // The place is chosen before anything is sent: an injection without a node is of no use.
    let run = run(cluster, options).await?;
    let name = cluster.names.index();
    let metadata = cluster.apply("configmaps", &name, cluster.names.index_object(index).to_string().into()).await?;
    let owner = Owner { name, uid: metadata.uid };
    let binary = cluster.names.binary_object(&index.run, &options.binary, &owner);
    replaced_unless_applied(cluster, &cluster.names.binary(), binary).await?;
    let right = send::verify(cluster, index, &census.claimed).await?;
    for place in census.claimed.difference(&right) {
        // It has our labels and other content: another writer owns its bytes now, so it is made anew.
        cluster.delete(&cluster.names.path("configmaps", &cluster.names.chunk(index.chunks[*place].number))).await?;
    }
    let mut progress = Progress::new("chunks", index.chunks.len() as u64, index.payload_bytes);
    for place in &right {
        progress.found(u64::from(index.chunks[*place].bytes));
    }
    let todo: VecDeque<usize> = (0..index.chunks.len()).filter(|place| !right.contains(place)).collect();
    let sent = send::send(cluster, payload, &owner, todo, options.parallel, &mut progress).await;
    progress.end();
    let sent = sent?;
    let service = service(cluster, index, options, &owner).await?;
    start(cluster, index, &run, &owner).await?;
    serving(cluster, index, options.wait).await?;
    let cluster_ip = service["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    Ok(Applied { sent, kept: right.len(), node_port: node_port(&service), cluster_ip })
}

async fn run(cluster: &Cluster, options: &Options) -> Result<Run, Error> {
    let Needs { architecture, node, tolerations, .. } = &options.needs;
    let tolerations = tolerations.iter().map(|text| toleration(text)).collect();
    let architecture = architecture.clone();
    if let Some(image) = &options.image {
        return Ok(Run { image: image.clone(), node: node.clone(), architecture, tolerations });
    }
    let place = place(cluster, &options.needs).await?;
    eprintln!("the seed will run on {} in {} (seen in {})", place.node, place.image, place.seen_in);
    Ok(Run { image: place.image, node: Some(place.node), architecture, tolerations })
}

/// Applies the `ConfigMap` `object`. An existing `ConfigMap` with other bytes is deleted and created again, because it
/// is immutable.
async fn replaced_unless_applied(cluster: &Cluster, name: &str, object: bytes::Bytes) -> Result<(), Error> {
    match cluster.apply("configmaps", name, object.clone()).await {
        Err(error) if error.status() == Some(StatusCode::UNPROCESSABLE_ENTITY) => {
            cluster.delete(&cluster.names.path("configmaps", name)).await?;
            cluster.apply("configmaps", name, object).await.map(drop)
        }
        applied => applied.map(drop),
    }
}

/// Creates the Service, again and again until its node port is not one of the ports to leave free.
async fn service(cluster: &Cluster, index: &Index, options: &Options, owner: &Owner) -> Result<Value, Error> {
    let (name, path) = (&cluster.names.name, cluster.names.path("services", &cluster.names.name));
    for _ in 0..PORTS_MAX {
        let object = cluster.names.service_object(&index.run, options.reach, owner);
        cluster.apply("services", name, object.to_string().into()).await?;
        let Some(service) = cluster.read(&path).await? else { continue };
        if !node_port(&service).is_some_and(|port| options.avoided_ports.contains(&port)) {
            return Ok(service);
        }
        cluster.delete(&path).await?;
        sleep(PORT_WAIT).await;
    }
    Err(Error::Refused(format!("in {PORTS_MAX} attempts the service got only ports of --avoid-node-port")))
}

/// Creates the Pod, unless a Pod of this run exists that may still serve.
async fn start(cluster: &Cluster, index: &Index, run: &Run, owner: &Owner) -> Result<(), Error> {
    let (name, path) = (&cluster.names.name, cluster.names.path("pods", &cluster.names.name));
    let until = Instant::now() + ACCOUNT;
    loop {
        let pod = cluster.read(&path).await?;
        match &pod {
            Some(pod) if may_serve(pod, &index.run) => return Ok(()),
            Some(pod) if pod["metadata"]["deletionTimestamp"].is_null() => {
                cluster.delete(&path).await?;
            }
            Some(_) => {}
            None => {
                let object = cluster.names.pod_object(index, run, owner);
                match cluster.apply("pods", name, object.to_string().into()).await {
                    Ok(_) => return Ok(()),
                    // The controller that makes service accounts is a moment behind that of a new namespace.
                    Err(error) if is_account_missing(&error) && Instant::now() < until => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if Instant::now() > until + ACCOUNT {
            return Err(Error::Refused(format!("pods/{name} of an earlier attempt does not go")));
        }
        sleep(LOOK).await;
    }
}

fn is_account_missing(error: &Error) -> bool {
    let text = error.to_string();
    error.status() == Some(StatusCode::FORBIDDEN) && text.contains("serviceaccount") && text.contains("not found")
}

fn may_serve(pod: &Value, run: &str) -> bool {
    pod["metadata"]["labels"][RUN_LABEL] == run
        && pod["metadata"]["deletionTimestamp"].is_null()
        && !matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"))
}

/// Waits until the Pod is ready; prints each new reason for the wait.
async fn serving(cluster: &Cluster, index: &Index, wait: Duration) -> Result<(), Error> {
    let path = cluster.names.path("pods", &cluster.names.name);
    // A kubelet that may send five requests per second needs two for each chunk.
    let until =
        Instant::now() + wait + Duration::from_millis(500) * u32::try_from(index.chunks.len()).unwrap_or(u32::MAX);
    let mut last = String::new();
    loop {
        let pod = cluster.read(&path).await?;
        if pod.as_ref().is_some_and(is_ready) {
            return Ok(());
        }
        let findings = match &pod {
            Some(pod) => explain::pod(pod, &events(cluster).await),
            None => return Err(Error::Refused("the Pod was deleted by another client".to_owned())),
        };
        let text = findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let ended = pod.is_some_and(|pod| matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")));
        if ended {
            return Err(Error::Refused(text));
        }
        if Instant::now() > until {
            return Err(Error::Refused(format!("the seed does not serve yet: {text}")));
        }
        if text != last {
            eprintln!("{text}");
            last = text;
        }
        sleep(LOOK).await;
    }
}
