//! The witness: proof of the events that the watch accepted, posted as JSON lines to a URL.
//!
//! This module owns the queue and its delivery, in order, with retries. The queue is bounded: if the receiver is away,
//! the watch waits, because a dropped observation looks like a missed event.

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

/// Most lines in one post.
const BATCH_LINES: usize = 500;
/// How long a line waits for further lines of the same post.
const BATCH_DELAY: Duration = Duration::from_millis(50);
/// Lines that wait for delivery: a relist of some thousand objects fits.
const QUEUE_LINES: usize = 4096;
/// A post that takes longer is repeated.
const POST_TIMEOUT: Duration = Duration::from_secs(5);
/// No part of the answer is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// How long the rest of the queue is delivered after the order to end.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// Why a URL cannot be a witness.
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

/// The sending side of the queue; does nothing without a witness URL.
#[derive(Clone)]
pub struct Witness {
    resource: Arc<str>,
    queue: Option<mpsc::Sender<String>>,
}

/// The task that delivers the queue.
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
    /// A witness without a receiver.
    pub fn absent() -> Self {
        Self { resource: "".into(), queue: None }
    }

    /// A witness at `url` for observations of `resource`, and the delivery to run.
    pub fn new(resource: &str, url: &str) -> Result<(Self, Delivery), TargetError> {
        let (origin, path) = target(url)?;
        let (sender, queue) = mpsc::channel(QUEUE_LINES);
        let client = Client::new(origin, Protocol::Http1, Limits { open_max: 1, idle_max: 1 });
        Ok((Self { resource: resource.into(), queue: Some(sender) }, Delivery { client, path, queue }))
    }

    /// Queues the line of `event`; waits while the queue is full.
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
    /// Delivers until every sender is gone and the queue is empty.
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
