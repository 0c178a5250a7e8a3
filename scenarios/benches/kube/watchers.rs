//! Many watches over TLS, each on a connection of its own, that count what they are sent.
//!
//! Owns the reading side: a counter that all share and, for a sample of the watches, a histogram of the time from
//! when a write was due until its event was read. It keeps no event.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::load::{MARK, MARK_DIGITS};
use crate::kit::client::{Client, Endpoint};

/// One watch in so many measures lags: enough for a 99th percentile, and the client stays cheap.
const SAMPLE: usize = 10;
/// Handshakes at a time.
const OPENING: usize = 32;
/// Nothing is delivered for so long: no more will come.
const STANDSTILL: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);
/// Longest lag that is told apart, in microseconds.
const LAG_MAX_US: u64 = 120_000_000;

/// Open watches. Dropping them closes the connections.
pub(crate) struct Watchers {
    tasks: JoinSet<Result<()>>,
    seen: Arc<Seen>,
}

struct Seen {
    events: AtomicU64,
    lag: Mutex<Histogram<u64>>,
    epoch: Instant,
}

impl Watchers {
    /// Opens `count` watches of a namespace from now on; with `lag` a tenth of them measures it.
    pub async fn open(to: &Endpoint, namespace: &str, count: usize, lag: bool, epoch: Instant) -> Result<Self> {
        let lags = Histogram::new_with_max(LAG_MAX_US, 3)?;
        let seen = Arc::new(Seen { events: AtomicU64::new(0), lag: Mutex::new(lags), epoch });
        let from = revision(to, namespace).await?;
        let path: Arc<str> =
            format!("/api/v1/namespaces/{namespace}/configmaps?watch=1&resourceVersion={from}&timeoutSeconds=3600")
                .into();
        let mut opening: JoinSet<Result<(usize, Client, Incoming)>> = JoinSet::new();
        let mut tasks = JoinSet::new();
        for index in 0..count + OPENING {
            if index >= OPENING
                && let Some(opened) = opening.join_next().await
            {
                let (index, client, body) = opened??;
                let lag = lag && index % SAMPLE == 0;
                tasks.spawn(follow(client, body, seen.clone(), lag));
            }
            if index < count {
                let (to, path) = (to.clone(), path.clone());
                opening.spawn(async move {
                    let mut client = to.connect().await.with_context(|| format!("watch {index}"))?;
                    let answer = client.open(Method::GET, &path, "").await?;
                    anyhow::ensure!(answer.status().is_success(), "watch {index}: {}", answer.status());
                    Ok((index, client, answer.into_body()))
                });
            }
        }
        Ok(Self { tasks, seen })
    }

    /// Waits until `expected` events were delivered since the start, or nothing moves; how many were.
    pub async fn delivered(&mut self, expected: u64) -> Result<u64> {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            if let Some(ended) = self.tasks.try_join_next() {
                ended?.context("a watch ended")?;
                anyhow::bail!("a watch ended while events were expected");
            }
            let events = self.seen.events.load(Ordering::Relaxed);
            if events != last {
                (last, since) = (events, Instant::now());
            }
            if events >= expected || since.elapsed() > STANDSTILL {
                return Ok(events);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Quantiles of the lag so far, in microseconds.
    pub fn lag_us(&self, quantiles: [f64; 2]) -> [u64; 2] {
        let lag = self.seen.lag.lock();
        quantiles.map(|quantile| lag.value_at_quantile(quantile))
    }

    /// Closes all connections.
    pub async fn close(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Holds the connection for as long as it reads.
async fn follow(_client: Client, mut body: Incoming, seen: Arc<Seen>, lag: bool) -> Result<()> {
    let mut line: Vec<u8> = Vec::new();
    // No deadline here: an idle watch is silent for as long as nobody writes. Whoever waits for events has one.
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let lines = memchr::memchr_iter(b'\n', &data).count() as u64;
        seen.events.fetch_add(lines, Ordering::Relaxed);
        if lag {
            line.extend_from_slice(&data);
            seen.read(&mut line);
        }
    }
    Ok(())
}

impl Seen {
    /// Takes whole lines out of `pending` and notes how old they are.
    fn read(&self, pending: &mut Vec<u8>) {
        let Some(end) = memchr::memrchr(b'\n', pending) else { return };
        let now_us = u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut lag = self.lag.lock();
        for at in memchr::memmem::find_iter(&pending[..end], MARK) {
            let digits = pending.get(at + MARK.len()..at + MARK.len() + MARK_DIGITS);
            let due_us = digits.and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|text| text.parse().ok());
            if let Some(due_us) = due_us {
                lag.saturating_record(now_us.saturating_sub(due_us));
            }
        }
        pending.drain(..=end);
    }
}

/// The revision of an empty page of the namespace: the present.
async fn revision(to: &Endpoint, namespace: &str) -> Result<u64> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps?limit=1");
    let text = to.connect().await?.call(Method::GET, &path, "").await?;
    let list: serde_json::Value = serde_json::from_slice(&text)?;
    list["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).context("a list without a revision")
}
