//! The outcome of a review as an alert: the seam between admission and receivers.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Something that somebody wants to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Alert {
    /// Whether the object was let in.
    pub admitted: bool,
    /// Why not, or a sentence that it was.
    pub message: String,
    /// The kind of the object.
    pub kind: String,
    /// Its namespace; empty outside of any.
    pub namespace: String,
    /// Its name, or what the API server makes it of.
    pub name: String,
    /// The review's uid.
    pub request_id: String,
    /// Every image of the object as it is written.
    pub images: Vec<String>,
}

/// Whoever is told.
pub trait AlertSink: Send + Sync + 'static {
    /// Tells an alert. An error means that a receiver without which nothing is admitted could not be told by `deadline`.
    fn tell(&self, alert: Alert, deadline: Instant) -> BoxFuture<'static, Result<(), String>>;

    /// Tells what waits still, for at most `grace`.
    fn stop(&self, grace: Duration) -> BoxFuture<'_, ()>;
}
