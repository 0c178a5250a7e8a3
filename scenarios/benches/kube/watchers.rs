//! Opens many watches over TLS and counts their events. Each watch has its own connection, or is a stream of a shared
//! connection.
//!
//! All watches share one counter of events. The benchmark does not keep the events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::Incoming;
use tokio::task::JoinSet;

use super::lags::{Lags, Reading};
use crate::kit::client::{Client, Endpoint};

/// Maximum number of simultaneous TLS handshakes.
const OPENING: usize = 32;
/// Time without an event after which no further events are expected.
const STANDSTILL: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);

/// Settings of the watches to open.
#[derive(Clone, Default)]
pub(crate) struct Wanted {
    pub count: usize,
    /// Number of watches per HTTP/2 connection. If this is `None`, each watch has its own HTTP/1.1 connection.
    pub streams: Option<usize>,
    /// Receives the arrival times of the events.
    pub lags: Option<Arc<Lags>>,
}

/// Open watches. Dropping this value closes the connections of the watches.
pub(crate) struct Watchers {
    tasks: JoinSet<Result<()>>,
    events: Arc<AtomicU64>,
}

impl Watchers {
    /// Opens watches of a namespace that begin at the namespace's present state.
    pub async fn open(to: &Endpoint, namespace: &str, wanted: Wanted) -> Result<Self> {
        let events = Arc::new(AtomicU64::new(0));
        let path: Arc<str> = watching(to, namespace).await?.into();
        let streams = wanted.streams.unwrap_or(1);
        let to = if wanted.streams.is_some() { to.http2() } else { to.clone() };
        let connections = wanted.count.div_ceil(streams);
        let mut opening: JoinSet<Result<Vec<(Client, Incoming)>>> = JoinSet::new();
        let mut tasks = JoinSet::new();
        for index in 0..connections + OPENING {
            if index >= OPENING
                && let Some(opened) = opening.join_next().await
            {
                for (client, body) in opened?? {
                    tasks.spawn(follow(client, body, Arc::clone(&events), wanted.lags.clone()));
                }
            }
            if index < connections {
                let (to, path) = (to.clone(), Arc::clone(&path));
                let streams = streams.min(wanted.count - index * streams);
                opening.spawn(async move {
                    opened(&to, &path, streams).await.with_context(|| format!("watches of connection {index}"))
                });
            }
        }
        Ok(Self { tasks, events })
    }

    /// Waits until `expected` events have arrived since the watches were opened, or until no more arrive. Returns the
    /// number of events that arrived.
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

    pub async fn close(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Opens a connection and `streams` watches on it.
async fn opened(to: &Endpoint, path: &str, streams: usize) -> Result<Vec<(Client, Incoming)>> {
    let mut clients = vec![to.connect().await?];
    for _ in 1..streams {
        clients.push(clients[0].another()?);
    }
    let mut watches = Vec::new();
    for mut client in clients {
        let answer = client.open(Method::GET, path, "").await?;
        anyhow::ensure!(answer.status().is_success(), "{}", answer.status());
        watches.push((client, answer.into_body()));
    }
    Ok(watches)
}

/// Opens a watch over HTTP/1.1 that is never read, so that its data stays in the buffers.
pub(crate) async fn unread(to: &Endpoint, namespace: &str) -> Result<impl Sized + use<>> {
    opened(to, &watching(to, namespace).await?, 1).await
}

/// Counts the events of a watch. Keeps the connection open while it reads events.
async fn follow(_client: Client, mut body: Incoming, events: Arc<AtomicU64>, lags: Option<Arc<Lags>>) -> Result<()> {
    let mut reading = Reading::default();
    // There is no deadline here, because an idle watch is silent while nothing is written. Waiting for events has a
    // deadline of its own.
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if let Some(lags) = &lags {
            lags.read(&mut reading, &data);
        }
        events.fetch_add(memchr::memchr_iter(b'\n', &data).count() as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// The path of a watch that begins at the resourceVersion of an empty list of the namespace, its present state.
async fn watching(to: &Endpoint, namespace: &str) -> Result<String> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let text = to.connect().await?.call(Method::GET, &format!("{path}?limit=1"), "").await?;
    let list: serde_json::Value = serde_json::from_slice(&text)?;
    let from = list["metadata"]["resourceVersion"].as_str().context("a list without a revision")?;
    Ok(format!("{path}?watch=1&resourceVersion={from}&timeoutSeconds=3600"))
}
