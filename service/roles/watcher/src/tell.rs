//! Sends events to a receiver as JSON lines in the order of the events, until they are accepted.
//!
//! This module owns the queue of a receiver. The queue is limited, and no line in it is dropped: while the queue is
//! full, the watch waits, and the API server keeps later events. All actions with the same receiver share a queue, so
//! that the events of each object stay in order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use rand::RngExt as _;
use serde::Serialize;
use service_watch::{Backoff, Backpressure, Change, Event};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep, timeout_at};

use crate::hook::{Failure, Hook};
use crate::meta::Meta;
use crate::metrics::Metrics;
use crate::problems::Problems;

/// Maximum number of lines (events) that wait in the queue: enough for a relist of some thousand objects. `QUEUE_BYTES`
/// limits the bytes of these lines, because names may be long.
const QUEUE_LINES: usize = 4096;
const QUEUE_BYTES: usize = 1 << 20;
/// Number of bytes of memory for a line, without its text.
const LINE_BYTES: usize = 64;
const BATCH_LINES: usize = 500;
/// Time for which a line waits for further lines in its call.
const BATCH_DELAY: Duration = Duration::from_millis(20);
/// Upper limit of the delay before the second attempt. The limit doubles with each attempt up to [`RETRY_MAX`], and the
/// delay is random between zero and the limit.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Time for sending the remaining lines when the process ends.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// One event as it is sent to the receiver. The test harness reads such a line as an observation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    action: &'a str,
    resource: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    resource_version: &'a str,
    change: &'static str,
}

/// A waiting line, its action, and the queue's memory that the line holds.
struct Queued {
    action: Arc<str>,
    line: String,
    _bytes: OwnedSemaphorePermit,
}

/// The sender that adds lines to a receiver's queue.
#[derive(Clone)]
pub struct Entrance {
    queue: mpsc::Sender<Queued>,
    free: Arc<Semaphore>,
}

/// The task that sends the lines in the queue; the caller must run it.
pub struct Delivery {
    /// The first action that uses this receiver. Metrics and logs use the first action's name for all actions with this
    /// receiver.
    action: Arc<str>,
    hook: Hook,
    queue: mpsc::Receiver<Queued>,
    board: Arc<Problems>,
    metrics: Metrics,
}

/// The name of a kind of change in the lines that are sent.
pub fn name(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Modified => "modified",
        Change::Deleted => "deleted",
    }
}

pub fn log(action: &str, resource: &str, event: &Event<Meta>) {
    let (object, change) = (&event.object, name(event.change));
    tracing::info!(
        name: crate::events::WATCHER_EVENT, action, resource, change, object = %object.key, uid = &*object.uid, revision = &*object.version,
        "an event is due"
    );
}

/// A queue for `hook`, named after the first action that uses it.
pub fn queue(action: &str, hook: Hook, board: Arc<Problems>, metrics: Metrics) -> (Entrance, Delivery) {
    let (entrance, queue) = mpsc::channel(QUEUE_LINES);
    let entrance = Entrance { queue: entrance, free: Arc::new(Semaphore::new(QUEUE_BYTES)) };
    (entrance, Delivery { action: action.into(), hook, queue, board, metrics })
}

impl Entrance {
    /// Adds an event to the receiver's queue. If the queue is full, the result is a future that is ready when the queue
    /// has memory for the event.
    pub fn tell(&self, action: &Arc<str>, resource: &str, event: &Event<Meta>) -> Backpressure {
        let object = &event.object;
        let line = Line {
            action,
            resource,
            namespace: &object.key.namespace,
            name: &object.key.name,
            uid: &object.uid,
            resource_version: &object.version,
            change: name(event.change),
        };
        let line = serde_json::to_string(&line).unwrap_or_default();
        // A line larger than the queue waits until it is empty.
        let bytes = u32::try_from((line.len() + LINE_BYTES).min(QUEUE_BYTES)).unwrap_or(u32::MAX);
        let (action, entrance) = (Arc::clone(action), self.clone());
        let Ok(room) = Arc::clone(&self.free).try_acquire_many_owned(bytes) else {
            let room = async move {
                // The semaphore is never closed.
                let Ok(room) = Arc::clone(&entrance.free).acquire_many_owned(bytes).await else { return };
                drop(entrance.queue.send(Queued { action, line, _bytes: room }).await);
            };
            return Some(room.boxed());
        };
        match self.queue.try_send(Queued { action, line, _bytes: room }) {
            // The receiving end ends only with the process.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => None,
            Err(mpsc::error::TrySendError::Full(told)) => {
                Some(async move { drop(entrance.queue.send(told).await) }.boxed())
            }
        }
    }
}

impl Delivery {
    /// Sends lines until every sender is dropped and the queue is empty. After the drop, failed lines are sent again
    /// for at most `FLUSH_MAX`.
    pub async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH_LINES);
        let mut flush = None;
        let waiting = self.metrics.waiting(&self.action);
        while let Some(first) = self.queue.recv().await {
            batch.push(first);
            let full_at = Instant::now() + BATCH_DELAY;
            while batch.len() < BATCH_LINES {
                match timeout_at(full_at, self.queue.recv()).await {
                    Ok(Some(told)) => batch.push(told),
                    Ok(None) | Err(_) => break,
                }
            }
            waiting.set(i64::try_from(self.queue.len() + batch.len()).unwrap_or(i64::MAX));
            if !self.deliver(&batch, &mut flush).await {
                return;
            }
            batch.clear();
            waiting.set(i64::try_from(self.queue.len()).unwrap_or(i64::MAX));
        }
    }

    fn count(&self, batch: &[Queued], outcome: &'static str) {
        for told in batch {
            self.metrics.call(&told.action, outcome);
        }
    }

    /// Sends a batch until the receiver accepts it; returns whether to continue.
    async fn deliver(&self, batch: &[Queued], flush: &mut Option<Instant>) -> bool {
        let body: String = batch.iter().flat_map(|told| [&*told.line, "\n"]).collect();
        let body = Bytes::from(body);
        let action = &self.action;
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
        loop {
            match self.hook.post("application/x-ndjson", body.clone()).await {
                Ok(()) => {
                    self.count(batch, "taken");
                    self.board.taken(action);
                    return true;
                }
                // One of the lines may be the reason, or their number.
                Err(Failure::Never(_)) if batch.len() > 1 => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    return Box::pin(self.deliver(first, flush)).await && Box::pin(self.deliver(second, flush)).await;
                }
                Err(Failure::Never(why)) => {
                    self.count(batch, "refused");
                    let lines = batch.len();
                    self.board.failed(action, why.clone());
                    tracing::error!(name: crate::events::WATCHER_REFUSED, action = &**action, lines, why, "a receiver refuses events for good");
                    return true;
                }
                Err(Failure::Later(why, asked)) => {
                    self.metrics.call(action, "failed");
                    // Logged once for each outage.
                    if self.board.failed(action, why.clone()) {
                        tracing::warn!(name: crate::events::WATCHER_AWAY, action = &**action, why, "a receiver does not take events; the watch waits for it");
                    }
                    let ended = self.queue.is_closed();
                    if ended && *flush.get_or_insert_with(|| Instant::now() + FLUSH_MAX) < Instant::now() {
                        let lines = self.queue.len() + batch.len();
                        tracing::warn!(name: crate::events::WATCHER_LEFT, action = &**action, lines, "a receiver did not take the last events");
                        return false;
                    }
                    let pause = backoff.next(rand::rng().random(), asked);
                    sleep(if ended { pause.min(RETRY_FIRST) } else { pause }).await;
                }
            }
        }
    }
}
