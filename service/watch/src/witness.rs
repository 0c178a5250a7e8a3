//! The witness: posts accepted events as JSON lines to a URL, to prove that the watch has seen them.
//!
//! This module owns the queue and its delivery in order, with retries. The queue is limited: if the receiver is
//! unreachable, the watch waits, because a dropped observation looks like a missed event.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::machine::{Change, Event};
use super::object::Kind;
use service_core::wire::{Client, Limits, Origin, Protocol};

/// Maximum number of lines (observations) in one post.
const BATCH_LINES: usize = 500;
/// Time for which a line waits for further lines in its post.
const BATCH_DELAY: Duration = Duration::from_millis(50);
/// Maximum number of lines that wait for delivery: enough for a relist of some thousand objects.
const QUEUE_LINES: usize = 4096;
/// Time limit of a post; a post that exceeds the limit is repeated.
const POST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of bytes of an answer, whose content is not used.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// Time for the delivery of the remaining lines when the process ends.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// Why a URL cannot receive observations.
#[derive(Debug, thiserror::Error)]
#[error("a witness is http://host:port/path")]
pub struct TargetError;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    resource: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    resource_version: &'a str,
    change: &'static str,
}

/// The sender that adds observations to the queue. Without a witness URL, the sender does nothing.
#[derive(Clone)]
pub struct Witness {
    resource: Arc<str>,
    queue: Option<mpsc::Sender<String>>,
}

pub struct Delivery {
    client: Client,
    path: String,
    queue: mpsc::Receiver<String>,
}

pub fn target(url: &str) -> Result<(Origin, String), TargetError> {
    let uri: http::Uri = url.parse().map_err(|_| TargetError)?;
    let (Some("http"), Some(host)) = (uri.scheme_str(), uri.host()) else { return Err(TargetError) };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let origin = Origin { host, port: uri.port_u16().unwrap_or(80), tls: None, server_name: None };
    Ok((origin, uri.path_and_query().map_or("/", |path| path.as_str()).to_owned()))
}

impl Witness {
    pub fn absent() -> Self {
        Self { resource: "".into(), queue: None }
    }

    /// A witness that posts observations of `resource` to `url`, and its delivery task.
    pub fn new(resource: &str, url: &str) -> Result<(Self, Delivery), TargetError> {
        let (origin, path) = target(url)?;
        let (sender, queue) = mpsc::channel(QUEUE_LINES);
        let client = Client::new(origin, Protocol::Http1, Limits { open_max: 1, idle_max: 1 });
        Ok((Self { resource: resource.into(), queue: Some(sender) }, Delivery { client, path, queue }))
    }

    /// Queues the observation of `event`; waits while the queue is full.
    pub async fn saw<K: Kind>(&self, event: &Event<K>) {
        let Some(queue) = &self.queue else { return };
        let object = &event.object;
        let line = Line {
            resource: &self.resource,
            namespace: &object.key.namespace,
            name: &object.key.name,
            uid: &object.uid,
            resource_version: &object.version,
            change: match event.change {
                Change::Added => "added",
                Change::Modified => "modified",
                Change::Deleted => "deleted",
            },
        };
        let line = serde_json::to_string(&line).expect("strings always serialise");
        // The receiver ends only with the process.
        let _ = queue.send(line).await;
    }
}

impl Delivery {
    /// Delivers observations until every sender is dropped and the queue is empty.
    pub async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH_LINES);
        let mut last_try = None;
        let mut down = false;
        while let Some(first) = self.queue.recv().await {
            batch.push(first);
            let full_at = Instant::now() + BATCH_DELAY;
            while batch.len() < BATCH_LINES {
                match tokio::time::timeout_at(full_at, self.queue.recv()).await {
                    Ok(Some(line)) => batch.push(line),
                    Ok(None) | Err(_) => break,
                }
            }
            let mut body = batch.join("\n");
            body.push('\n');
            batch.clear();
            let body = Bytes::from(body);
            while let Err(why) = self.post(body.clone()).await {
                // Logged once for each outage: there are five attempts a second.
                if !std::mem::replace(&mut down, true) {
                    tracing::warn!(name: crate::events::WITNESS_AWAY, why, "the witness does not take observations; the watch waits for it");
                }
                if self.queue.is_closed()
                    && *last_try.get_or_insert_with(|| Instant::now() + FLUSH_MAX) < Instant::now()
                {
                    tracing::warn!(name: crate::events::WITNESS_LEFT, lines = self.queue.len(), "the witness did not take the last observations");
                    return;
                }
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            down = false;
        }
    }

    async fn post(&self, body: Bytes) -> Result<(), String> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.path)
            .header(header::CONTENT_TYPE, "application/x-ndjson")
            .body(body)
            .expect("the path came out of a URI");
        match self.client.fetch(request, ANSWER_BYTES_MAX, Instant::now() + POST_TIMEOUT).await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(format!("it answered {}", response.status())),
            Err(error) => Err(error.to_string()),
        }
    }
}
