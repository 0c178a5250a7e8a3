//! An additional endpoint of the same cluster, which can lag.

use std::net::SocketAddr;
use std::sync::Arc;

use mock_faults::View;

use super::cluster::Cluster;
use super::listen::Listening;
use super::users::Users;

/// Another API server in front of the same store, as in a control plane with several API servers. Dropping a `Replica`
/// stops the endpoint at once.
#[derive(Debug)]
pub struct Replica {
    pub(super) cluster: Arc<Cluster>,
    pub(super) users: Arc<Users>,
    pub(super) view: Arc<View>,
    pub(super) listening: Listening,
    pub(super) ca_pem: String,
    pub(super) number: u32,
}

impl Replica {
    /// The URL of the endpoint: `https://127.0.0.1:6444`.
    pub fn url(&self) -> String {
        super::url(self.address())
    }

    /// The number of the endpoint in the cluster, which faults name in `endpoint`; the server itself has 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// A kubeconfig file (YAML) with the URL of this endpoint.
    pub fn kubeconfig(&self, user: &str) -> Option<String> {
        self.users.kubeconfig(user, &self.url(), &self.ca_pem)
    }

    /// From now on, the endpoint shows no newer revisions than the present one. Watches send nothing,
    /// `resourceVersion=0` returns an old state, and newer revisions are refused as too large. Writes and consistent
    /// reads still work.
    pub fn freeze(&self) {
        self.freeze_at(self.cluster.revision());
    }

    /// Shows the state at an older revision until [`Replica::catch_up`].
    pub fn freeze_at(&self, revision: u64) {
        self.view.freeze(revision);
    }

    /// Shows the current state again, and sends the events that were held back.
    pub fn catch_up(&self) {
        self.view.thaw();
        self.cluster.wakers.mark_all();
    }

    /// Stops the endpoint gracefully, like [`super::Server::shutdown`].
    pub async fn shutdown(self) {
        self.listening.shutdown().await;
    }
}
