//! A cache of verdicts that processes share, in Redis.
//!
//! Owns the connection and what is written there. Redis is believed nothing: every value carries a code that only who has the key can make,
//! over the name that it is kept under and the moment until which it is good. A Redis that is slow, full, gone or lying costs a verdict
//! that has to be found anew, and nothing else: nobody waits for a connection to be made, and no answer longer than the timeout.

pub mod config;
mod connection;
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
use connection::{Asked, Connection};
use metrics::Metrics;
pub use seal::{HEAD_BYTES, Hmac, Opened, Seal};

/// Values that wait to be kept; those beyond are found anew by others.
const WAITING_MAX: usize = 256;
/// Largest value, sealed: a verdict with eight signers has some kilobytes.
pub const VALUE_BYTES_MAX: usize = 16 << 10;

/// The cache of a process.
pub struct Cache {
    connection: Arc<Connection>,
    seal: Arc<dyn Seal>,
    kept: mpsc::Sender<Kept>,
    metrics: Arc<Metrics>,
}

/// A value on its way.
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
    /// Reads what the files of `settings` say and begins to connect; waits for nothing. Must be called inside of a runtime.
    pub fn open(settings: &SharedCache, registry: &mut Registry) -> Result<Arc<Self>, OpenError> {
        let seal = Hmac::read(&settings.key_file).map_err(|what| OpenError { key: "keyFile", what })?;
        Self::sealed_by(settings, Arc::new(seal), registry)
    }

    /// The same with a seal of one's own.
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
                Asked::Away => ("away", None),
                Asked::Failed => ("failed", None),
                Asked::Absent => ("miss", None),
                Asked::Found(sealed) => match seal.open(&key, &sealed, SystemTime::now()) {
                    Opened::Good(known) => ("hit", Some(known)),
                    // Redis looks at ends by a clock of its own.
                    Opened::Over => ("miss", None),
                    Opened::Foreign => ("refused", None),
                },
            };
            metrics.asked(outcome);
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

/// Keeps what is to be kept, one after the other, as long as somebody uses the cache.
async fn keep(connection: std::sync::Weak<Connection>, mut waiting: mpsc::Receiver<Kept>, metrics: Arc<Metrics>) {
    while let Some(Kept { name, sealed, life }) = waiting.recv().await {
        let Some(connection) = connection.upgrade() else { return };
        metrics.kept(connection.keep(&name, &sealed, life).await);
    }
}
