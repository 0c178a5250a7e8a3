//! Alerts that wait, in their order, for the task that tells them.
//!
//! Owns what becomes of those that find no place, and the end of the task.

use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use service_core::alert::Alert;
use service_core::logs::names;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::dead::DeadLetters;
use crate::metrics::Metrics;

/// A queue and its task.
pub struct Queue {
    /// Whose it is, in numbers and letters.
    name: String,
    entrance: Mutex<Option<mpsc::Sender<Arc<Alert>>>>,
    task: Mutex<Option<JoinHandle<()>>>,
    metrics: Arc<Metrics>,
    dead: Arc<DeadLetters>,
}

impl Queue {
    /// For so many alerts; `run` is the task, which ends when nothing waits any more and nothing can come.
    pub fn begin<F>(
        name: &str,
        places: usize,
        (metrics, dead): (&Arc<Metrics>, &Arc<DeadLetters>),
        run: impl FnOnce(mpsc::Receiver<Arc<Alert>>) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (entrance, waiting) = mpsc::channel(places);
        let task = Mutex::new(Some(tokio::spawn(run(waiting))));
        let (metrics, dead) = (Arc::clone(metrics), Arc::clone(dead));
        Self { name: name.to_owned(), entrance: Mutex::new(Some(entrance)), task, metrics, dead }
    }

    /// Lets an alert wait for its turn; nobody waits with it. One that finds no place is handed to `bury`, behind everybody's back.
    pub fn put<F>(&self, alert: Arc<Alert>, bury: impl FnOnce(Arc<Alert>, &'static str) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let sent = self.entrance.lock().as_ref().map(|entrance| entrance.try_send(Arc::clone(&alert)));
        if let Some(Ok(())) = sent {
            self.metrics.waiting.inc();
            return;
        }
        self.metrics.count(&self.name, "full");
        let why = if sent.is_some() { "its queue is full" } else { "the process ends" };
        self.dead.behind(|| bury(alert, why));
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
