//! What the processes of one service know together: the seam between whoever has verdicts and a cache beside them.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// A value that another process has found, or this one before it was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// As it was kept.
    pub value: Vec<u8>,
    /// For how much longer it is good.
    pub life: Duration,
}

/// Where values are kept that others may use.
pub trait Knowledge: Send + Sync + 'static {
    /// The value of `key`, at the latest at `deadline`. Whatever goes wrong, and whatever somebody else has put there, is not known.
    fn known(&self, key: &str, deadline: Instant) -> BoxFuture<'static, Option<Known>>;

    /// Keeps a value for so long, when that is possible. Nobody waits for it.
    fn keep(&self, key: &str, value: Vec<u8>, life: Duration);
}
