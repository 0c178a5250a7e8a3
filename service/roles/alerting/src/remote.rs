//! Passes alerts to another process, which sends them to its own receivers. One call passes several alerts, in order.
//!
//! This module owns the queue of alerts for the other process. If the other process is unreachable, reviews are not
//! delayed unless they must wait; undelivered alerts become dead letters in this process.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, header};
use rand::RngExt as _;
use service_contract::alerts::{ALERTS_MAX, Bringing, Taken};
use service_contract::answer::{Breach, read, success};
use service_contract::pool::{Metrics as PoolMetrics, Pool, Settings, Unanswered};
use service_contract::{ALERTS, path};
use service_core::alert::Alert;
use service_core::judge::CONTRACT;
use service_core::wire::Protocol;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::config;
use crate::dead::DeadLetters;
use crate::metrics::Metrics;
use crate::queue::{Bounds, Queue, Waiting};

/// The name of the other process in metrics and dead letters.
const NAME: &str = "alerting";
/// Maximum number of attempts to send one call to the other process.
const ATTEMPTS: u32 = 3;
/// Mean delay between the first and the second attempt. The mean doubles with each attempt, and the actual delay is
/// random around the mean.
const RETRY_BASE: Duration = Duration::from_millis(200);
/// Maximum number of open calls to the other process: each open call is for a review that waits for its alert.
const OPEN_MAX: usize = 64;
/// Maximum number of bytes of alerts in one call. The JSON text of a call needs as much memory again. If the other
/// process refuses a large call, it may still accept a small call.
const CALL_BYTES_MAX: usize = 256 << 10;
const ANSWER_BYTES_MAX: usize = 4 << 10;

pub struct Remote {
    work: Arc<Work>,
    queue: Queue,
}

struct Work {
    settings: config::Remote,
    pool: Arc<Pool>,
    metrics: Arc<Metrics>,
    dead: Arc<DeadLetters>,
}

impl Remote {
    /// Reads the files in the settings and starts the queue. Alerts in the queue use at most `bytes`.
    pub fn begin(
        settings: &config::Remote,
        bytes: usize,
        (metrics, dead): (Arc<Metrics>, Arc<DeadLetters>),
    ) -> Result<Arc<Self>, String> {
        let pool = Settings {
            name: NAME.to_owned(),
            instances: vec![(settings.url.clone(), 1)],
            files: settings.files.clone(),
            protocol: Protocol::Http2,
            open_max: OPEN_MAX,
            queue_max: settings.queue,
            timeout: settings.timeout,
            describes_itself: false,
        };
        let pool = Pool::open(pool, PoolMetrics::default()).map_err(|error| error.to_string())?;
        let work = Arc::new(Work { settings: settings.clone(), pool, metrics, dead });
        let both = (&work.metrics, &work.dead);
        let bounds = Bounds { places: settings.queue, bytes };
        let queue = Queue::begin(NAME, bounds, both, |waiting| Arc::clone(&work).bring_all(waiting));
        Ok(Arc::new(Self { work, queue }))
    }

    pub fn is_blocking(&self) -> bool {
        self.work.settings.blocking
    }

    pub fn enqueue(&self, alert: Arc<Alert>) {
        let work = Arc::clone(&self.work);
        self.queue.put(alert, |alert, why| async move { work.bury(&alert, why).await });
    }

    pub async fn tell(&self, alert: &Arc<Alert>, deadline: Instant) -> Result<(), String> {
        let brought = self.work.bring(&[&**alert], deadline).await;
        self.work.metrics.count(NAME, if brought.is_ok() { "sent" } else { "failed" });
        brought.map_err(|why| match why {
            Unanswered::Refused(why) => why,
            Unanswered::Unavailable(why) | Unanswered::Busy(why) => {
                format!("the alert could not be brought to {}: {why}", self.work.settings.url)
            }
        })
    }

    pub async fn stop(&self, deadline: Instant) {
        self.queue.stop(deadline).await;
    }
}

impl Work {
    async fn bring_all(self: Arc<Self>, mut waiting: mpsc::Receiver<Waiting>) {
        while let Some(first) = waiting.recv().await {
            let mut bytes = first.alert.bytes();
            let mut taken = vec![first];
            while taken.len() < ALERTS_MAX && bytes < CALL_BYTES_MAX {
                let Ok(next) = waiting.try_recv() else { break };
                bytes += next.alert.bytes();
                taken.push(next);
            }
            self.metrics.waiting.dec_by(i64::try_from(taken.len()).unwrap_or(i64::MAX));
            let alerts: Vec<&Alert> = taken.iter().map(|waiting| &*waiting.alert).collect();
            if let Err(why) = self.bring_again(&alerts).await {
                tracing::warn!(name: crate::events::ALERT_FAILED, receiver = NAME, error = %why, "an alert could not be sent");
                for alert in alerts {
                    self.bury(alert, &why).await;
                }
            }
        }
    }

    async fn bury(&self, alert: &Alert, why: &str) {
        let body = serde_json::to_string(alert).unwrap_or_default();
        self.dead.keep(NAME, why, &body).await;
    }

    async fn bring_again(&self, alerts: &[&Alert]) -> Result<(), String> {
        let mut failed = String::new();
        for attempt in 0..ATTEMPTS {
            let brought = self.bring(alerts, Instant::now() + self.settings.timeout).await;
            let outcome = if brought.is_ok() { "sent" } else { "failed" };
            for _ in alerts {
                self.metrics.count(NAME, outcome);
            }
            match brought {
                Ok(()) => return Ok(()),
                Err(Unanswered::Refused(why)) => return Err(why),
                Err(Unanswered::Unavailable(why) | Unanswered::Busy(why)) => failed = why,
            }
            if attempt + 1 < ATTEMPTS {
                let wait = (RETRY_BASE * (1 << attempt)).mul_f64(rand::rng().random_range(0.5..1.5));
                sleep(wait).await;
            }
        }
        Err(failed)
    }

    async fn bring(&self, alerts: &[&Alert], deadline: Instant) -> Result<(), Unanswered> {
        let body = serde_json::to_vec(&Bringing { contract: CONTRACT, alerts }).map(Bytes::from);
        let body = body.map_err(|error| Unanswered::Refused(format!("the alert cannot be written: {error}")))?;
        let request = |base: &str, left| {
            let request = Request::post(path(base, ALERTS, left)).header(header::CONTENT_TYPE, "application/json");
            request.body(body.clone()).unwrap_or_default()
        };
        let count = alerts.len();
        let taken = |answer: &Response<Bytes>| {
            success(answer.status(), answer.body())?;
            let Taken { taken, .. } = read(answer.body())?;
            let others = || Breach::Other(format!("it took {taken} alerts of {count}"));
            if taken == count { Ok(((), None)) } else { Err(others()) }
        };
        self.pool.ask(&request, &taken, ANSWER_BYTES_MAX, deadline).await
    }
}
