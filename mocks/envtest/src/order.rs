//! What the process called `kube-apiserver` asks of the one called `etcd`, on etcd's own port.
//!
//! Owns the words between the two: an HTTP POST with an [`Order`], answered by one line, [`Answer`]; then the connection stays open. `stop`
//! ends the endpoint politely and is answered by `stopped`; a connection that ends without it ends the endpoint at once.

use serde::{Deserialize, Serialize};

/// Where an order is posted.
pub(crate) const PATH: &str = "/longhaul/apiserver";
/// The largest order: certificates are a few KiB.
pub(crate) const ORDER_MAX_BYTES: usize = 1024 * 1024;
/// Ends an endpoint politely.
pub(crate) const STOP: &str = "stop";
/// The answer to [`STOP`].
pub(crate) const STOPPED: &str = "stopped";

/// An endpoint that is wanted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Order {
    /// `127.0.0.1:6443`.
    pub address: std::net::SocketAddr,
    /// The certificate that is shown, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: String,
    /// The authorities of client certificates, PEM.
    pub clients_ca: Option<String>,
    /// Who issues the tokens of service accounts. Of this and what follows the first order decides for the whole life of the state.
    pub issuer: Option<String>,
    /// What they are signed with, PEM.
    pub signing_key: Option<String>,
    /// Whether roles decide.
    pub rbac: bool,
}

/// What became of an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Answer {
    /// It listens.
    Ready,
    /// It does not, and why.
    Refused(String),
}
