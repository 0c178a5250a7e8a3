//! The connection to the Kubernetes API: the server's address, the credentials of this service, and a few kinds of
//! requests.
//!
//! This module owns paths, headers and credentials of requests. Callers interpret the answers of the API server, but
//! after status 401 this module reads the token again for the next request.

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
    /// HTTP/1.1: each watch has its own connection.
    #[default]
    Http1,
    /// HTTP/2: all requests are streams of one connection.
    Http2,
}
