//! Dead letters: alerts that could not be delivered, as JSON lines in a file of limited size.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::metrics::Metrics;

/// Largest file of dead letters, in bytes: some thousand alerts, which a person can read or send again.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of bytes of alerts from full queues that are written in the background at one time; further alerts
/// are only counted. Each alert is in memory four times while it is written: as received, as a body, as JSON values,
/// and as text.
const BURIALS_BYTES_MAX: usize = 512 << 10;

#[derive(Debug)]
pub struct DeadLetters {
    path: Option<PathBuf>,
    metrics: Arc<Metrics>,
    line: Mutex<()>,
    burials: Arc<Semaphore>,
}

impl DeadLetters {
    /// Writes dead letters to the file at `path`, which is created for the first dead letter.
    pub fn new(path: Option<PathBuf>, metrics: Arc<Metrics>) -> Self {
        Self { path, metrics, line: Mutex::new(()), burials: Arc::new(Semaphore::new(BURIALS_BYTES_MAX)) }
    }

    /// Runs `bury` in the background for an alert of `bytes` from a full queue. If too many such alerts are being
    /// written, the alert is counted as lost, because a slow disk must not cause many tasks. The caller must be inside
    /// a tokio runtime.
    pub fn behind<F: Future<Output = ()> + Send + 'static>(&self, bytes: usize, bury: impl FnOnce() -> F) {
        let place = u32::try_from(bytes).ok();
        let place = place.and_then(|bytes| Arc::clone(&self.burials).try_acquire_many_owned(bytes).ok());
        let (Some(place), Some(_)) = (place, &self.path) else {
            self.metrics.lost.inc();
            return;
        };
        let bury = bury();
        drop(tokio::spawn(async move {
            bury.await;
            drop(place);
        }));
    }

    /// Writes an alert that `receiver` did not get, with the reason.
    pub async fn keep(self: &Arc<Self>, receiver: &str, why: &str, body: &str) {
        let Some(path) = self.path.clone() else {
            self.metrics.lost.inc();
            return;
        };
        let body: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|_| body.into());
        let time = jiff::Timestamp::now().to_string();
        let line = format!("{}\n", json!({"time": time, "receiver": receiver, "error": why, "body": body}));
        let this = Arc::clone(self);
        let write = move || {
            let _line = this.line.lock();
            let mut file = open(&path)?;
            if file.metadata()?.len() + line.len() as u64 > FILE_BYTES_MAX {
                return Err(std::io::Error::other(format!("the file has {FILE_BYTES_MAX} bytes: move it away")));
            }
            file.write_all(line.as_bytes())
        };
        // A disk that hangs must not block a thread that answers reviews.
        if let Err(error) = tokio::task::spawn_blocking(write).await.unwrap_or(Ok(())) {
            self.metrics.lost.inc();
            tracing::warn!(name: crate::events::LETTER_LOST, receiver, error = %error, "a dead letter was lost");
        }
    }
}

/// Opens the file of dead letters at `path`. A new file can be read only by its owner, because messages contain values
/// of headers and payloads, and names from all namespaces.
fn open(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
