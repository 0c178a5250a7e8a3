//! The protocol between the processes named `kube-apiserver` and `etcd`, on etcd's own port.
//!
//! `kube-apiserver` sends an HTTP POST with an [`Order`] and gets one line with an [`Answer`]; then the connection
//! stays open. The line `stop` ends the endpoint gracefully and is answered by `stopped`. If the connection ends
//! without `stop`, the endpoint ends at once.

use serde::{Deserialize, Serialize};

pub(crate) const PATH: &str = "/longhaul/apiserver";
/// Maximum size of a request for an endpoint in bytes; the certificates in it are a few KiB.
pub(crate) const ORDER_MAX_BYTES: usize = 1024 * 1024;
/// The line that ends an endpoint gracefully.
pub(crate) const STOP: &str = "stop";
pub(crate) const STOPPED: &str = "stopped";

/// A request of `kube-apiserver` for an HTTPS endpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Order {
    /// The address to listen at: `127.0.0.1:6443`.
    pub address: std::net::SocketAddr,
    /// The server certificate, PEM.
    pub certificate: String,
    /// The key of the server certificate, PEM.
    pub key: String,
    /// The certificate authorities of clients, PEM.
    pub clients_ca: Option<String>,
    /// The issuer of service account tokens. The first request sets this field and all fields below for the lifetime of
    /// the process `etcd`.
    pub issuer: Option<String>,
    /// The key that signs service account tokens, PEM.
    pub signing_key: Option<String>,
    pub rbac: bool,
    /// Feature gates that are on in addition to the defaults.
    pub feature_gates: Vec<String>,
}

/// The answer of `etcd` to a request for an endpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Answer {
    /// The endpoint listens.
    Ready,
    /// The endpoint could not be opened, for this reason.
    Refused(String),
}
