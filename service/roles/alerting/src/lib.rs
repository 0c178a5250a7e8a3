//! Alerts: sends the outcomes of reviews to receivers such as chats.
//!
//! This crate owns receivers: their templates, queues and retries, and dead letters. A slow or absent receiver delays
//! no review, unless its settings say that reviews wait for it. The caller of a [`service_core::alert::AlertSink`]
//! decides which reviews cause alerts: dry runs cause none.

mod collapse;
pub mod config;
mod dead;
pub mod events;
mod markup;
mod metrics;
mod queue;
mod receiver;
mod remote;
mod role;
mod send;
mod template;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use prometheus_client::registry::Registry;
use service_core::alert::{Alert, AlertSink};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

pub use config::Alerting;
use dead::DeadLetters;
use metrics::Metrics;
use receiver::Receiver;
use remote::Remote;
pub use role::AlertingRole;
pub use template::TemplateError;

pub struct Receivers {
    admit: Vec<Arc<Receiver>>,
    reject: Vec<Arc<Receiver>>,
    /// The other process that gets all alerts and sends them to its own receivers.
    remote: Option<Arc<Remote>>,
    waited_for: Arc<Semaphore>,
}

/// Number of bytes for alerts for which reviews wait. Without free bytes, an alert waits for memory until its deadline.
const WAITED_FOR_BYTES_MAX: usize = 2 << 20;
/// Number of copies of an alert in memory while it is sent and a review waits: as received, as JSON values, as text,
/// and as a request body.
const WAITED_FOR_COPIES: usize = 4;

/// Why the receivers of a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {what}")]
pub struct OpenError {
    key: String,
    what: String,
}

impl Receivers {
    /// Reads the files in `settings` and starts the queues. The caller must be inside a tokio runtime.
    pub fn open(settings: &Alerting, registry: &mut Registry) -> Result<Arc<Self>, OpenError> {
        let metrics = Metrics::register(registry);
        let dead = Arc::new(DeadLetters::new(settings.dead_letters.clone(), Arc::clone(&metrics)));
        let queues = settings.admit.len() + settings.reject.len() + usize::from(settings.remote.is_some());
        let (bytes, both) = (queue::share_bytes(queues), (metrics, dead));
        let open = |(stream, receivers): (&'static str, &[config::Receiver])| {
            let each = receivers.iter().enumerate().map(|(at, one)| {
                let made = Receiver::begin(one, &settings.cluster, bytes, both.clone());
                made.map_err(|what| OpenError { key: format!("alerting.{stream}.receivers[{at}]"), what })
            });
            each.collect::<Result<Vec<_>, _>>()
        };
        let remote = settings.remote.as_ref().map(|remote| {
            let made = Remote::begin(remote, bytes, both.clone());
            made.map_err(|what| OpenError { key: "alerting.remote".to_owned(), what })
        });
        let (admit, reject) = (open(("admit", &settings.admit))?, open(("reject", &settings.reject))?);
        let waited_for = Arc::new(Semaphore::new(WAITED_FOR_BYTES_MAX));
        Ok(Arc::new(Self { admit, reject, remote: remote.transpose()?, waited_for }))
    }
}

impl AlertSink for Receivers {
    fn tell(&self, alert: Alert, deadline: Instant) -> BoxFuture<'static, Result<(), String>> {
        let receivers = if alert.admitted { &self.admit } else { &self.reject };
        let alert = Arc::new(alert.cut());
        let mut waited_for = Vec::new();
        for receiver in receivers {
            if receiver.is_blocking() {
                waited_for.push(Arc::clone(receiver));
            } else {
                receiver.enqueue(Arc::clone(&alert));
            }
        }
        let remote = self.remote.clone().filter(|remote| remote.is_blocking());
        if let (None, Some(other)) = (&remote, &self.remote) {
            other.enqueue(Arc::clone(&alert));
        }
        if waited_for.is_empty() && remote.is_none() {
            return std::future::ready(Ok(())).boxed();
        }
        let memory = Arc::clone(&self.waited_for);
        async move {
            let bytes = u32::try_from(alert.bytes() * WAITED_FOR_COPIES * (waited_for.len() + 1)).unwrap_or(u32::MAX);
            let bytes = bytes.min(u32::try_from(WAITED_FOR_BYTES_MAX).unwrap_or(u32::MAX));
            let room = timeout_at(deadline, memory.acquire_many(bytes)).await;
            let _room = room.map_err(|_| "the alert could not be sent: others were being sent until the deadline")?;
            if let Some(remote) = remote {
                remote.tell(&alert, deadline).await?;
            }
            let told = waited_for.iter().map(|receiver| receiver.tell(&alert, deadline));
            join_all(told).await.into_iter().collect::<Result<(), String>>()
        }
        .boxed()
    }

    fn stop(&self, grace: Duration) -> BoxFuture<'_, ()> {
        let deadline = Instant::now() + grace;
        async move {
            let all = self.admit.iter().chain(&self.reject).map(|receiver| receiver.stop(deadline));
            join_all(all).await;
            if let Some(remote) = &self.remote {
                remote.stop(deadline).await;
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
