//! Alerts that wait, in their order, for the task that tells them.
//!
//! Owns how many there may be and how much they may hold, what becomes of those that find no place, and the end of the task.

use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use service_core::alert::Alert;
use service_core::logs::names;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::dead::DeadLetters;
use crate::metrics::Metrics;

/// Memory of what waits for all receivers of a process: a sixteenth of the shipped limit of 64 MiB, and the alerts of some thousand Pods.
const ALL_BYTES_MAX: usize = 4 << 20;

/// How much may wait.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Alerts.
    pub places: usize,
    pub bytes: usize,
}

/// The memory of each of so many queues. They share nothing: a receiver that hangs takes no place of another.
pub fn share_bytes(queues: usize) -> usize {
    ALL_BYTES_MAX / queues.max(1)
}

/// An alert that waits, with its part of the queue's memory.
pub struct Waiting {
    pub alert: Arc<Alert>,
    _bytes: OwnedSemaphorePermit,
}

/// A queue and its task.
pub struct Queue {
    /// Whose it is, in numbers and letters.
    name: String,
    entrance: Mutex<Option<mpsc::Sender<Waiting>>>,
    free: Arc<Semaphore>,
    task: Mutex<Option<JoinHandle<()>>>,
    metrics: Arc<Metrics>,
    dead: Arc<DeadLetters>,
}

impl Queue {
    /// For as much as `bounds` says; `run` is the task, which ends when nothing waits any more and nothing can come.
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

    /// Lets an alert wait for its turn; nobody waits with it. One that finds no place is handed to `bury`, behind everybody's back.
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

    /// Lets nothing in any more, and gives the task until `deadline` for what waits.
    pub async fn stop(&self, deadline: Instant) {
        drop(self.entrance.lock().take());
        let task = self.task.lock().take();
        if let Some(mut task) = task
            && timeout_at(deadline, &mut task).await.is_err()
        {
            task.abort();
            let error = "the process ended before all that waited was sent";
            tracing::warn!(name: names::ALERT_FAILED, receiver = self.name, error, "an alert could not be sent");
        }
    }
}
