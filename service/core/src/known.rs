//! Values that the processes of one service share: the interface between their caches of verdicts and a common store.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// A value in the common store. Another process stored it, or this process before its last start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub value: Vec<u8>,
    /// How long the value remains valid.
    pub life: Duration,
}

/// A store whose values other processes may use.
pub trait Knowledge: Send + Sync + 'static {
    /// The value of `key`, by `deadline`. A failure, or an entry of another program, gives `None`.
    fn known(&self, key: &str, deadline: Instant) -> BoxFuture<'static, Option<Known>>;

    /// Stores a value for the time `life`, if the store works. The caller does not wait.
    fn keep(&self, key: &str, value: Vec<u8>, life: Duration);
}
