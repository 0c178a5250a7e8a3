//! Values that the processes of one service share: the interface between the memory of verdicts and a cache next to the
//! processes.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// A value found by another process, or by this one before its last start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The value as it was stored.
    pub value: Vec<u8>,
    /// Its remaining life.
    pub life: Duration,
}

/// A store of values that other processes may use.
pub trait Knowledge: Send + Sync + 'static {
    /// The value of `key`, by `deadline`. On any failure, and for an entry of somebody else, the value counts as
    /// unknown.
    fn known(&self, key: &str, deadline: Instant) -> BoxFuture<'static, Option<Known>>;

    /// Stores a value for its life, if possible. The caller does not wait for it.
    fn keep(&self, key: &str, value: Vec<u8>, life: Duration);
}
