//! A queue of alerts, in which alerts wait in order for the task that sends them.
//!
//! This module owns the limits on number and bytes of waiting alerts, the handling of alerts when the queue is full,
//! and the end of the sending task.

use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use service_core::alert::Alert;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::dead::DeadLetters;
use crate::metrics::Metrics;

/// Memory for waiting alerts of all receivers in a process, in bytes: a sixteenth of the shipped limit of 64 MiB,
/// enough for alerts about some thousand Pods.
const ALL_BYTES_MAX: usize = 4 << 20;

#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub places: usize,
    pub bytes: usize,
}

/// The memory of each of `queues` queues, in bytes. Each queue has its own memory, so a receiver that hangs uses no
/// memory of another receiver.
pub fn share_bytes(queues: usize) -> usize {
    ALL_BYTES_MAX / queues.max(1)
}

/// A waiting alert, with the memory that it holds in its queue.
pub struct Waiting {
    pub alert: Arc<Alert>,
    _bytes: OwnedSemaphorePermit,
}

pub struct Queue {
    /// The receiver's name in metrics and dead letters.
    name: String,
    entrance: Mutex<Option<mpsc::Sender<Waiting>>>,
    free: Arc<Semaphore>,
    task: Mutex<Option<JoinHandle<()>>>,
    metrics: Arc<Metrics>,
    dead: Arc<DeadLetters>,
}

impl Queue {
    /// A queue with the limits in `bounds`. The function `run` makes the sending task, which ends when the queue is
    /// closed and empty.
    pub fn begin<F>(
        name: &str,
        bounds: Bounds,
        (metrics, dead): (&Arc<Metrics>, &Arc<DeadLetters>),
        run: impl FnOnce(mpsc::Receiver<Waiting>) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (entrance, waiting) = mpsc::channel(bounds.places);
        let task = Mutex::new(Some(tokio::spawn(run(waiting))));
        let (metrics, dead) = (Arc::clone(metrics), Arc::clone(dead));
        let free = Arc::new(Semaphore::new(bounds.bytes));
        Self { name: name.to_owned(), entrance: Mutex::new(Some(entrance)), free, task, metrics, dead }
    }

    /// Adds an alert to the queue without waiting. If the queue is full, the alert is passed to `bury` in the
    /// background.
    pub fn put<F>(&self, alert: Arc<Alert>, bury: impl FnOnce(Arc<Alert>, &'static str) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let bytes = alert.bytes();
        let room =
            u32::try_from(bytes).ok().and_then(|bytes| Arc::clone(&self.free).try_acquire_many_owned(bytes).ok());
        let is_open = {
            let entrance = self.entrance.lock();
            let waiting = room.map(|room| Waiting { alert: Arc::clone(&alert), _bytes: room });
            if let (Some(entrance), Some(waiting)) = (&*entrance, waiting)
                && entrance.try_send(waiting).is_ok()
            {
                self.metrics.waiting.inc();
                return;
            }
            entrance.is_some()
        };
        self.metrics.count(&self.name, "full");
        let why = if is_open { "its queue is full" } else { "the process ends" };
        self.dead.behind(bytes, || bury(alert, why));
    }

    /// Closes the queue. The sending task may still send the waiting alerts until `deadline`.
    pub async fn stop(&self, deadline: Instant) {
        drop(self.entrance.lock().take());
        let task = self.task.lock().take();
        if let Some(mut task) = task
            && timeout_at(deadline, &mut task).await.is_err()
        {
            task.abort();
            let error = "the process ended before all that waited was sent";
            tracing::warn!(name: crate::events::ALERT_FAILED, receiver = self.name, error, "an alert could not be sent");
        }
    }
}
