//! Values that the processes of one service share: the interface between their caches of verdicts and a common store.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// A value in the common store. Another process stored the value, or this process before its last start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub value: Vec<u8>,
    /// How long the value remains valid.
    pub life: Duration,
}

/// A store whose values other processes may use.
pub trait Knowledge: Send + Sync + 'static {
    /// The value of `key` in the common store, by `deadline`. If the store fails or the entry comes from another
    /// program, the result is `None`.
    fn known(&self, key: &str, deadline: Instant) -> BoxFuture<'static, Option<Known>>;

    /// Stores a value for the time `life`, if the store works. The caller does not wait until the value is stored.
    fn keep(&self, key: &str, value: Vec<u8>, life: Duration);
}
