//! Sends the load to a server: writes, either as fast as the server answers or at a rate, and lists.
//!
//! The mock and the real server get the same bytes from the same code.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use hyper::Method;
use tokio::task::JoinSet;

use super::lags::Lags;
use crate::kit::client::{Client, Endpoint};

/// Number of writing connections, each with one request at a time.
pub(crate) const CONNECTIONS: usize = 16;
/// Default size of a write's request body, in bytes.
const OBJECT_BYTES: usize = 1024;
/// Words from which the names of settings in an object are made.
const PARTS: &str = "cache cluster.peer http.server http.client log metrics pool queue storage.backend tls";
const SETTINGS: &str = "backoff-max-ms batch-size certificate-fingerprint enabled endpoint expires-after-s idle-timeout-ms instances level limit-bytes \
                        max-connections name path refresh-interval-s retries seed shards threads token warm-up-s";

/// A write that creates an object, or a write that replaces an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Create,
    Update,
}

/// The number and the rate of the writes to send.
#[derive(Clone, Default)]
pub(crate) struct Course {
    pub count: usize,
    /// Time after which no further write is sent.
    pub until: Option<Instant>,
    /// The planned writes per second, independent of the answers. `None`: each connection sends the next write as soon
    /// as it has an answer.
    pub per_second: Option<f64>,
    /// Receives the sending time of each write.
    pub lags: Option<Arc<Lags>>,
}

/// The writing connections, opened before the clock starts.
pub(crate) struct Writers {
    to: Endpoint,
    clients: Vec<Client>,
    namespace: &'static str,
    object_bytes: usize,
    /// The number of the next write. By these numbers no two writes of an object are equal, because a server would skip
    /// a write that changes nothing.
    pub next: usize,
}

impl Writers {
    /// Opens the connections and creates the namespace.
    pub async fn open(to: &Endpoint, namespace: &'static str) -> Result<Self> {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(to.connect().await?);
        }
        let object = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{namespace}"}}}}"#);
        clients[0].call(Method::POST, "/api/v1/namespaces", object).await?;
        Ok(Self { to: to.clone(), clients, namespace, object_bytes: OBJECT_BYTES, next: 0 })
    }

    /// Changes the size of the objects.
    pub fn of(self, object_bytes: usize) -> Self {
        Self { object_bytes, ..self }
    }

    /// Sends `count` writes to the first `objects` objects in turn, as fast as the server answers.
    pub async fn flat_out(&mut self, write: Write, objects: usize, count: usize) -> Result<()> {
        self.send(write, objects, Course { count, ..Course::default() }).await.map(|_| ())
    }

    /// Sends writes to the first `objects` objects in turn. Returns the number of answered writes.
    pub async fn send(&mut self, write: Write, objects: usize, course: Course) -> Result<usize> {
        // A failed round of the real server takes its connections along; the next round counts.
        while self.clients.len() < CONNECTIONS {
            self.clients.push(self.to.connect().await?);
        }
        let (next, begun, first) = (Arc::new(AtomicUsize::new(0)), Instant::now(), self.next);
        self.next += course.count;
        let mut tasks = JoinSet::new();
        for mut client in self.clients.drain(..) {
            let (next, course, bytes) = (Arc::clone(&next), course.clone(), self.object_bytes);
            let path = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
            tasks.spawn(async move {
                let mut answered = 0;
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= course.count || course.until.is_some_and(|until| Instant::now() >= until) {
                        return Ok::<_, anyhow::Error>((client, answered));
                    }
                    let (number, body) = (index % objects, object(index % objects, first + index, bytes));
                    if let Some(per_second) = course.per_second {
                        tokio::time::sleep_until((begun + Duration::from_secs_f64(index as f64 / per_second)).into())
                            .await;
                    }
                    if let Some(lags) = &course.lags {
                        lags.sent(first + index);
                    }
                    match write {
                        Write::Create => client.call(Method::POST, &path, body).await?,
                        Write::Update => client.call(Method::PUT, &format!("{path}/object-{number:06}"), body).await?,
                    };
                    answered += 1;
                }
            });
        }
        let mut answered = 0;
        while let Some(done) = tasks.join_next().await {
            let (client, of_it) = done??;
            self.clients.push(client);
            answered += of_it;
        }
        Ok(answered)
    }

    /// Lists everything in the namespace as one page. Returns the time until the last byte of the list, and the size of
    /// the list in bytes.
    pub async fn list(&mut self) -> Result<(Duration, usize)> {
        let path = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        let start = Instant::now();
        let size = self.clients[0].size(&path).await?;
        Ok((start.elapsed(), size))
    }
}

/// A `ConfigMap` whose JSON has exactly this length. The settings in the `ConfigMap` resemble those of applications:
/// most objects have the same keys, with different values. A server that compresses its objects therefore saves as much
/// as with real objects.
fn object(number: usize, write: usize, bytes: usize) -> Vec<u8> {
    let mut body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"object-{number:06}"}},"data":{{"write":"{write:016}","settings":""#
    )
    .into_bytes();
    // The values depend only on object and write, so that both servers get the same bytes.
    let mut random = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ write as u64;
    let mut next = |below: usize| {
        // xorshift64 (Marsaglia 2003)
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 33).unwrap_or_default() % below
    };
    let [parts, settings] = [PARTS, SETTINGS].map(|words| words.split_whitespace().collect::<Vec<_>>());
    while body.len() < bytes {
        let (part, setting, value) = (parts[next(parts.len())], settings[next(settings.len())], next(1_000_000_000));
        body.extend_from_slice(format!("{part}.{setting}={value:x}\\n").as_bytes());
    }
    body.truncate(bytes - 3);
    // Half an escape sequence at the end would include the closing quote.
    if let Some(last) = body.last_mut().filter(|last| **last == b'\\') {
        *last = b'0';
    }
    body.extend_from_slice(br#""}}"#);
    body
}
