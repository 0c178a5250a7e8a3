//! The Kubernetes API as this service uses it: its address, our credentials, and a few requests.
//!
//! This module owns paths, headers and credentials. Callers interpret the answers, with one exception: after a 401 the
//! next request reads the token again.

mod client;
mod kubeconfig;
mod status;
mod webhooks;

pub use client::{Client, Error, LIST_PAGE, Write};
pub use kubeconfig::{Cluster, KubeconfigError};
pub use status::Status;
pub use webhooks::{Webhook, Webhooks};

use serde::Deserialize;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// One HTTP/1.1 connection for each watch.
    #[default]
    Http1,
    /// Streams of one HTTP/2 connection.
    Http2,
}
