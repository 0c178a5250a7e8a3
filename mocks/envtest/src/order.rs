//! The protocol between the processes named `kube-apiserver` and `etcd`, on etcd's own port.
//!
//! Owns its messages: an HTTP POST with an [`Order`], answered by one line, [`Answer`]; then the connection stays open.
//! `stop` ends the endpoint gracefully and is answered by `stopped`. If the connection ends without it, the endpoint
//! ends at once.

use serde::{Deserialize, Serialize};

/// The path of an order.
pub(crate) const PATH: &str = "/longhaul/apiserver";
/// The largest order: certificates are a few KiB.
pub(crate) const ORDER_MAX_BYTES: usize = 1024 * 1024;
/// Ends an endpoint gracefully.
pub(crate) const STOP: &str = "stop";
/// The answer to [`STOP`].
pub(crate) const STOPPED: &str = "stopped";

/// A request for an endpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Order {
    /// For example `127.0.0.1:6443`.
    pub address: std::net::SocketAddr,
    /// The server certificate, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: String,
    /// The authorities of client certificates, PEM.
    pub clients_ca: Option<String>,
    /// The issuer of service account tokens. For this and the following fields the first order counts for the whole
    /// life of the state.
    pub issuer: Option<String>,
    /// The signing key of these tokens, PEM.
    pub signing_key: Option<String>,
    /// Whether RBAC decides.
    pub rbac: bool,
    /// The feature gates that are on besides the defaults.
    pub feature_gates: Vec<String>,
}

/// The answer to an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Answer {
    /// The endpoint listens.
    Ready,
    /// The endpoint could not be opened, and why.
    Refused(String),
}
