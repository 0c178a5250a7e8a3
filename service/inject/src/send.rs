//! The transfer of chunks: finds existing chunks and sends missing chunks.
//!
//! This module owns the tasks of one transfer. Only as many chunks are in memory as `pace` allows to send at one time.
//! All state of a transfer is in the cluster, so an interrupted transfer continues where it stopped.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use rand::RngExt as _;
use serde_json::Value;
use service_seed::digest::Digest;
use service_seed::index::Index;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::cluster::{APPLY_TIME, Cluster, Error, PATIENCE, is_temporary};
use super::objects::{DIGEST_ANNOTATION, Owner, PART_LABEL, RUN_LABEL};
use super::pace::Pace;
use super::payload::Payload;
use super::progress::Progress;
use service_core::kube;

/// Number of chunks that are read back at one time: reads cost a server little, but each chunk takes a megabyte of
/// memory in this process.
const READS: usize = 4;
/// Maximum number of times that one chunk is deleted and sent again because an existing `ConfigMap` is immutable.
const REPLACED_MAX: u32 = 3;

#[derive(Debug, Default)]
pub struct Census {
    /// Positions of chunks of this run whose annotation has the right digest.
    pub claimed: BTreeSet<usize>,
    /// Number of objects of each other run.
    pub others: BTreeMap<String, usize>,
    /// Objects of other programs with names that the injection needs.
    pub strangers: Vec<String>,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Sent {
    pub chunks: usize,
    pub request_bytes: u64,
    pub refusals: u64,
    pub requests: u64,
    /// Time from the first request to the last answer.
    pub elapsed: Duration,
}

/// Finds the existing objects of the injection by labels and annotations.
pub async fn census(cluster: &Cluster, index: &Index) -> Result<Census, Error> {
    let names = &cluster.names;
    let places: BTreeMap<String, usize> =
        index.chunks.iter().enumerate().map(|(place, chunk)| (names.chunk(chunk.number), place)).collect();
    let mut census = Census::default();
    for resource in ["configmaps", "pods", "services"] {
        // All existing objects, whatever their labels: an apply would take over a foreign object with one of our names.
        for metadata in cluster.metadata(&format!("{}?", names.path(resource, ""))).await? {
            if !names.owns(&metadata) {
                if names.wants(resource, &metadata.name) {
                    census.strangers.push(format!("{resource}/{}", metadata.name));
                }
                continue;
            }
            let run = metadata.labels.get(RUN_LABEL).map_or("unknown", String::as_str);
            if run != index.run {
                *census.others.entry(run.to_owned()).or_default() += 1;
                continue;
            }
            let is_payload = metadata.labels.get(PART_LABEL).is_some_and(|part| part == "payload");
            let place = places.get(&metadata.name).copied().filter(|_| is_payload && resource == "configmaps");
            let Some(place) = place else { continue };
            let digest = metadata.annotations.get(DIGEST_ANNOTATION).and_then(|text| Digest::from_hex(text));
            if digest == Some(index.chunks[place].digest) {
                census.claimed.insert(place);
            }
        }
    }
    Ok(census)
}

/// Reads back the chunks whose annotation has the right digest; returns the chunks whose bytes are right.
pub async fn verify(
    cluster: &Arc<Cluster>,
    index: &Index,
    claimed: &BTreeSet<usize>,
) -> Result<BTreeSet<usize>, Error> {
    let (mut right, mut todo, mut reading) = (BTreeSet::new(), claimed.iter().copied(), JoinSet::new());
    loop {
        while reading.len() < READS
            && let Some(place) = todo.next()
        {
            let (cluster, chunk) = (Arc::clone(cluster), index.chunks[place]);
            let path = cluster.names.path("configmaps", &cluster.names.chunk(chunk.number));
            reading.spawn(async move {
                let object = cluster.read(&path).await?;
                let is_right = object.is_some_and(|object| held(&object, &chunk.name()) == Some(chunk.digest));
                Ok::<_, Error>((place, is_right))
            });
        }
        match reading.join_next().await {
            None => return Ok(right),
            Some(read) => {
                let (place, is_right) = read.map_err(|error| Error::Refused(format!("a task broke: {error}")))??;
                if is_right {
                    right.insert(place);
                }
            }
        }
    }
}

/// The digest of the bytes that a `ConfigMap` has under the key `key`.
fn held(object: &Value, key: &str) -> Option<Digest> {
    let text = object["binaryData"][key].as_str()?;
    base64_simd::STANDARD.decode_to_vec(text).ok().map(|bytes| Digest::of(&bytes))
}

struct Tried {
    place: usize,
    latency: Duration,
    request_bytes: u64,
    outcome: Result<(), kube::Error>,
}

/// Sends the chunks at the positions in `todo`, at most `most` chunks at one time.
pub async fn send(
    cluster: &Arc<Cluster>,
    payload: &Payload,
    owner: &Owner,
    mut todo: VecDeque<usize>,
    most: usize,
    progress: &mut Progress,
) -> Result<Sent, Error> {
    let begun = Instant::now();
    let mut pace = Pace::new(most, begun.into_std());
    let (mut sent, mut sending, mut replaced) = (Sent::default(), JoinSet::new(), BTreeMap::<usize, u32>::new());
    while !todo.is_empty() || !sending.is_empty() {
        let now = Instant::now().into_std();
        let wait = match (todo.front(), pace.may_send(sending.len(), now)) {
            (Some(&place), Ok(())) => {
                todo.pop_front();
                let object = cluster.names.chunk_object(&payload.index, place, &payload.chunk(place)?, owner);
                let (cluster, number) = (Arc::clone(cluster), payload.index.chunks[place].number);
                sending.spawn(async move {
                    let path = cluster.names.applied("configmaps", &cluster.names.chunk(number));
                    let (began, request_bytes) = (Instant::now(), object.len() as u64);
                    let outcome = cluster.client.apply(&path, object, began + APPLY_TIME).await.map(drop);
                    Tried { place, latency: began.elapsed(), request_bytes, outcome }
                });
                continue;
            }
            (Some(_), Err(Some(wait))) if sending.is_empty() => {
                progress.waits("the server asks to wait");
                sleep(wait).await;
                continue;
            }
            (_, Err(Some(wait))) => wait,
            _ => APPLY_TIME,
        };
        // Either a chunk comes back, or the time to wait is over.
        let Ok(Some(tried)) = tokio::time::timeout(wait, sending.join_next()).await else { continue };
        let tried = tried.map_err(|error| Error::Refused(format!("a task broke: {error}")))?;
        sent.requests += 1;
        sent.request_bytes += tried.request_bytes;
        let now = Instant::now().into_std();
        match tried.outcome {
            Ok(()) => {
                pace.taken(tried.latency, now);
                sent.chunks += 1;
                progress.sent(u64::from(payload.index.chunks[tried.place].bytes));
            }
            Err(source) => {
                let doing = || format!("apply chunk {:05}", payload.index.chunks[tried.place].number);
                let times = replaced.entry(tried.place).or_default();
                if source.status() == Some(StatusCode::UNPROCESSABLE_ENTITY) && *times < REPLACED_MAX {
                    // It exists with other bytes, and an immutable object can only be made anew.
                    *times += 1;
                    let name = cluster.names.chunk(payload.index.chunks[tried.place].number);
                    cluster.delete(&cluster.names.path("configmaps", &name)).await?;
                } else if is_temporary(&source) && pace.stuck(now) < PATIENCE {
                    sent.refusals += 1;
                    pace.refused(source.retry_after(), rand::rng().random_range(0.0..1.0), now);
                } else {
                    return Err(Error::Api { doing: doing(), source });
                }
                todo.push_front(tried.place);
            }
        }
    }
    sent.elapsed = begun.elapsed();
    Ok(sent)
}
