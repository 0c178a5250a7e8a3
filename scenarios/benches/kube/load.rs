//! What is sent to a server: writes as fast as they are answered, writes at a rate, and lists.
//!
//! Owns the objects and the connections that write them. Both servers get the same bytes from the same code.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use hyper::Method;
use tokio::task::JoinSet;

use crate::kit::client::{Client, Endpoint};

/// Connections that write, each with one request at a time.
pub(crate) const CONNECTIONS: usize = 16;
/// The whole request body of a write.
const OBJECT_BYTES: usize = 1024;
/// Marks the time in an object; 16 digits follow.
pub(crate) const MARK: &[u8] = b"\"dueUs\":\"";
pub(crate) const MARK_DIGITS: usize = 16;

/// What settings are about, and which there are.
const PARTS: &[&str] = &[
    "cache",
    "cluster.peer",
    "http.server",
    "http.client",
    "log",
    "metrics",
    "pool",
    "queue",
    "storage.backend",
    "tls",
];
const SETTINGS: &[&str] = &[
    "backoff-max-ms",
    "batch-size",
    "certificate-fingerprint",
    "enabled",
    "endpoint",
    "expires-after-s",
    "idle-timeout-ms",
    "instances",
    "level",
    "limit-bytes",
    "max-connections",
    "name",
    "path",
    "refresh-interval-s",
    "retries",
    "seed",
    "shards",
    "threads",
    "token",
    "warm-up-s",
];

/// Creates an object or replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Create,
    Update,
}

/// The connections that write, opened before the clock starts.
pub(crate) struct Writers {
    clients: Vec<Client>,
    namespace: &'static str,
    epoch: Instant,
}

impl Writers {
    /// Opens the connections and makes the namespace.
    pub async fn open(to: &Endpoint, namespace: &'static str, epoch: Instant) -> Result<Self> {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(to.connect().await?);
        }
        let object = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{namespace}"}}}}"#);
        clients[0].call(Method::POST, "/api/v1/namespaces", object).await?;
        Ok(Self { clients, namespace, epoch })
    }

    /// `count` writes of the first `objects` objects in turn, as fast as they are answered.
    pub async fn flat_out(&mut self, write: Write, objects: usize, count: usize) -> Result<()> {
        let next = Arc::new(AtomicU64::new(0));
        self.each(write, objects, move || {
            let index = next.fetch_add(1, Ordering::Relaxed);
            (index < count as u64).then_some((index, None))
        })
        .await
    }

    /// `count` updates, one each `every`, each at its time whether the ones before it were answered or not, as long
    /// as a connection is free. A late one keeps its planned time in the object, so that its lateness counts as lag.
    pub async fn paced(&mut self, objects: usize, count: usize, every: Duration) -> Result<()> {
        let (next, start) = (Arc::new(AtomicU64::new(0)), Instant::now());
        self.each(Write::Update, objects, move || {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let due = start + every.mul_f64(index as f64);
            (index < count as u64).then_some((index, Some(due)))
        })
        .await
    }

    async fn each(
        &mut self,
        write: Write,
        objects: usize,
        next: impl Fn() -> Option<(u64, Option<Instant>)> + Clone + Send + 'static,
    ) -> Result<()> {
        let mut tasks = JoinSet::new();
        for mut client in self.clients.drain(..) {
            let (next, namespace, epoch) = (next.clone(), self.namespace, self.epoch);
            tasks.spawn(async move {
                while let Some((index, due)) = next() {
                    if let Some(due) = due {
                        tokio::time::sleep_until(due.into()).await;
                    }
                    let due_us = due.unwrap_or_else(Instant::now).duration_since(epoch).as_micros();
                    let number = usize::try_from(index).unwrap_or(usize::MAX) % objects;
                    let body = object(number, due_us);
                    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
                    match write {
                        Write::Create => client.call(Method::POST, &path, body).await?,
                        Write::Update => client.call(Method::PUT, &format!("{path}/object-{number:06}"), body).await?,
                    };
                }
                Ok::<_, anyhow::Error>(client)
            });
        }
        while let Some(done) = tasks.join_next().await {
            self.clients.push(done??);
        }
        Ok(())
    }

    /// Lists everything in the namespace as one page; the time until its last byte, and its size in bytes.
    pub async fn list(&mut self) -> Result<(Duration, usize)> {
        let path = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        let start = Instant::now();
        let size = self.clients[0].call(Method::GET, &path, "").await?.len();
        Ok((start.elapsed(), size))
    }
}

/// A `ConfigMap` whose JSON is exactly 1 KiB long: settings as applications have them, the same keys in most objects and
/// other values in each, so that a server that packs what it keeps gains what it would gain on real ones.
fn object(number: usize, due_us: u128) -> Vec<u8> {
    let mut body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"object-{number:06}"}},"data":{{"dueUs":"{due_us:016}","settings":""#
    )
    .into_bytes();
    // The same for the same object and time: both servers get the same bytes.
    let mut random =
        (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::try_from(due_us).unwrap_or(u64::MAX);
    let mut next = |below: usize| {
        // xorshift64 (Marsaglia 2003)
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 33).unwrap_or_default() % below
    };
    while body.len() < OBJECT_BYTES {
        let (part, setting, value) = (PARTS[next(PARTS.len())], SETTINGS[next(SETTINGS.len())], next(1_000_000_000));
        body.extend_from_slice(format!("{part}.{setting}={value:x}\\n").as_bytes());
    }
    body.truncate(OBJECT_BYTES - 3);
    // Half an escape at the cut would take the quote with it.
    if let Some(last) = body.last_mut().filter(|last| **last == b'\\') {
        *last = b'0';
    }
    body.extend_from_slice(br#""}}"#);
    body
}
