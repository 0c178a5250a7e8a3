//! A cache of verdicts in Redis, which several processes share.
//!
//! This crate owns the connection to Redis and the format of stored values. Redis is not trusted: every value has an
//! authentication code over its name and expiry, which only a holder of the key can make. If Redis is slow, full,
//! unreachable or returns wrong values, the service computes verdicts again. No caller waits for a connection to Redis,
//! or longer than the time limit for an answer.

pub mod config;
mod connection;
pub mod events;
mod exchange;
mod metrics;
mod resp;
mod seal;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use prometheus_client::registry::Registry;
use service_core::known::{Knowledge, Known};
use tokio::sync::mpsc;
use tokio::time::Instant;

pub use config::SharedCache;
use connection::{Connection, Lookup};
use metrics::Metrics;
pub use seal::{HEAD_BYTES, Hmac, Opened, Seal};

/// Maximum number of values that wait to be stored; further values are not stored.
const WAITING_MAX: usize = 256;
/// Largest sealed value, in bytes; a verdict with eight signers has some kilobytes.
pub const VALUE_BYTES_MAX: usize = 16 << 10;

pub struct Cache {
    connection: Arc<Connection>,
    seal: Arc<dyn Seal>,
    kept: mpsc::Sender<Kept>,
    metrics: Arc<Metrics>,
}

/// A value that waits to be stored in Redis.
struct Kept {
    name: String,
    sealed: Vec<u8>,
    life: Duration,
}

/// Why the cache of a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("sharedCache.{key}: {what}")]
pub struct OpenError {
    key: &'static str,
    what: String,
}

impl Cache {
    /// Reads the files in `settings` and starts to connect, without waiting for the connection. The caller must be
    /// inside a tokio runtime.
    pub fn open(settings: &SharedCache, registry: &mut Registry) -> Result<Arc<Self>, OpenError> {
        let seal = Hmac::read(&settings.key_file).map_err(|what| OpenError { key: "keyFile", what })?;
        Self::sealed_by(settings, Arc::new(seal), registry)
    }

    /// Like [`Self::open`], with `seal` as the seal of values.
    pub fn sealed_by(
        settings: &SharedCache,
        seal: Arc<dyn Seal>,
        registry: &mut Registry,
    ) -> Result<Arc<Self>, OpenError> {
        let metrics = Metrics::register(registry);
        let connection = Connection::begin(settings, Arc::clone(&metrics))?;
        let (kept, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(keep(Arc::downgrade(&connection), waiting, Arc::clone(&metrics)));
        Ok(Arc::new(Self { connection, seal, kept, metrics }))
    }
}

impl Knowledge for Cache {
    fn known(&self, key: &str, deadline: Instant) -> BoxFuture<'static, Option<Known>> {
        let (connection, seal) = (Arc::clone(&self.connection), Arc::clone(&self.seal));
        let (metrics, key) = (Arc::clone(&self.metrics), key.to_owned());
        async move {
            let asked = connection.value(&seal.name(&key), deadline).await;
            let (outcome, known) = match asked {
                Lookup::Away => ("away", None),
                Lookup::Failed => ("failed", None),
                Lookup::Absent => ("miss", None),
                Lookup::Found(sealed) => match seal.open(&key, &sealed, SystemTime::now()) {
                    Opened::Good(known) => ("hit", Some(known)),
                    // Redis checks ends by its own clock.
                    Opened::Over => ("miss", None),
                    Opened::Foreign => ("refused", None),
                },
            };
            metrics.count(outcome);
            known
        }
        .boxed()
    }

    fn keep(&self, key: &str, value: Vec<u8>, life: Duration) {
        let sealed = self.seal.close(key, &value, life, SystemTime::now());
        if sealed.len() > VALUE_BYTES_MAX || life.is_zero() {
            self.metrics.kept("too-large");
        } else if self.kept.try_send(Kept { name: self.seal.name(key), sealed, life }).is_err() {
            self.metrics.kept("full");
        }
    }
}

/// Stores waiting values one after the other, until the cache is dropped.
async fn keep(connection: std::sync::Weak<Connection>, mut waiting: mpsc::Receiver<Kept>, metrics: Arc<Metrics>) {
    while let Some(Kept { name, sealed, life }) = waiting.recv().await {
        let Some(connection) = connection.upgrade() else { return };
        metrics.kept(connection.keep(&name, &sealed, life).await);
    }
}
