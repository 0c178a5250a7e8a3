//! The Kubernetes API as this service uses it: where it is, who we are, and a few requests.
//!
//! Owns paths, headers and credentials. What an answer means is the caller's business, except that 401 makes the next
//! request read the token again.

mod client;
mod kubeconfig;
mod status;
mod webhooks;

pub use client::{Client, Error, LIST_PAGE, Write};
pub use kubeconfig::{Cluster, KubeconfigError};
pub use status::Status;
pub use webhooks::{Webhook, Webhooks};

use serde::Deserialize;

/// How the watch talks to the API server.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// One HTTP/1.1 connection for each watch.
    #[default]
    Http1,
    /// Streams of one HTTP/2 connection.
    Http2,
}
