//! Many watches over TLS, each on a connection of its own, that count what they are sent.
//!
//! Owns the reading side: a counter that all share. It keeps no event.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::Incoming;
use tokio::task::JoinSet;

use crate::kit::client::{Client, Endpoint};

/// Handshakes at a time.
const OPENING: usize = 32;
/// Nothing is delivered for so long: no more will come.
const STANDSTILL: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);

/// Open watches. Dropping them closes the connections.
pub(crate) struct Watchers {
    tasks: JoinSet<Result<()>>,
    events: Arc<AtomicU64>,
}

impl Watchers {
    /// Opens `count` watches of a namespace from now on.
    pub async fn open(to: &Endpoint, namespace: &str, count: usize) -> Result<Self> {
        let events = Arc::new(AtomicU64::new(0));
        let from = revision(to, namespace).await?;
        let path: Arc<str> =
            format!("/api/v1/namespaces/{namespace}/configmaps?watch=1&resourceVersion={from}&timeoutSeconds=3600")
                .into();
        let mut opening: JoinSet<Result<(Client, Incoming)>> = JoinSet::new();
        let mut tasks = JoinSet::new();
        for index in 0..count + OPENING {
            if index >= OPENING
                && let Some(opened) = opening.join_next().await
            {
                let (client, body) = opened??;
                tasks.spawn(follow(client, body, Arc::clone(&events)));
            }
            if index < count {
                let (to, path) = (to.clone(), path.clone());
                opening.spawn(async move {
                    let mut client = to.connect().await.with_context(|| format!("watch {index}"))?;
                    let answer = client.open(Method::GET, &path, "").await?;
                    anyhow::ensure!(answer.status().is_success(), "watch {index}: {}", answer.status());
                    Ok((client, answer.into_body()))
                });
            }
        }
        Ok(Self { tasks, events })
    }

    /// Waits until `expected` events were delivered since the start, or nothing moves; how many were.
    pub async fn delivered(&mut self, expected: u64) -> Result<u64> {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            if let Some(ended) = self.tasks.try_join_next() {
                ended?.context("a watch ended")?;
                anyhow::bail!("a watch ended while events were expected");
            }
            let events = self.events.load(Ordering::Relaxed);
            if events != last {
                (last, since) = (events, Instant::now());
            }
            if events >= expected || since.elapsed() > STANDSTILL {
                return Ok(events);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Closes all connections.
    pub async fn close(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Holds the connection for as long as it reads.
async fn follow(_client: Client, mut body: Incoming, events: Arc<AtomicU64>) -> Result<()> {
    // No deadline here: an idle watch is silent for as long as nobody writes. Whoever waits for events has one.
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        events.fetch_add(memchr::memchr_iter(b'\n', &data).count() as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// The revision of an empty page of the namespace: the present.
async fn revision(to: &Endpoint, namespace: &str) -> Result<u64> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps?limit=1");
    let text = to.connect().await?.call(Method::GET, &path, "").await?;
    let list: serde_json::Value = serde_json::from_slice(&text)?;
    list["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).context("a list without a revision")
}
