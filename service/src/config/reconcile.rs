//! The section `reconcile`: the queue of the reconciler and its attempts.

use std::time::Duration;

use serde::Deserialize;

use super::quantity::Span;
use super::{Checker, Error};

/// Enough to hide the latency of an API server, few enough to be a polite client.
const WORKERS: usize = 8;
/// The waits of the UDS operator between its five attempts: powers of three.
const RETRIES: [Duration; 4] =
    [Duration::from_secs(3), Duration::from_secs(9), Duration::from_secs(27), Duration::from_secs(81)];

/// The reconciler.
#[derive(Debug, Clone)]
pub struct Reconcile {
    /// What is kept in order.
    pub queue: QueueKey,
    /// Objects worked on at one time.
    pub workers: usize,
    /// Wait before each further attempt.
    pub retries: Vec<Duration>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawReconcile {
    pub queue: QueueKey,
    pub workers: Option<usize>,
    pub retries: Option<Vec<Span>>,
}

/// What is kept in order by the reconcile queue: two objects with the same key are never worked on at once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QueueKey {
    /// One object.
    #[default]
    KindNsName,
    /// All objects of a namespace.
    KindNs,
    /// All objects of the kind.
    Kind,
    /// Everything.
    Global,
}

impl Checker<'_> {
    pub(super) fn reconcile(&self, raw: RawReconcile) -> Result<Reconcile, Error> {
        let workers = raw.workers.unwrap_or(WORKERS);
        self.within("reconcile.workers", workers as u64, 1, 256)?;
        let retries = match raw.retries {
            Some(retries) => retries.into_iter().map(|span| span.0).collect(),
            None => RETRIES.to_vec(),
        };
        self.within("reconcile.retries", retries.len() as u64, 0, 100)?;
        Ok(Reconcile { queue: raw.queue, workers, retries })
    }
}
