//! The webhook's own certificates: authority and certificate in a Secret, the authority in `caBundle` of the webhook
//! configurations, and their rotation without a failed call.
//!
//! This module owns the Secret with the certificates and the `caBundle`s. The module `keeper` writes certificates; it
//! runs in the replica that holds the Lease. Every replica reads the certificate from the Secret through the API
//! (`reader`), because the files of a mounted Secret are updated more than a minute late. The module `step` chooses the
//! next step, without I/O. A rotation has these steps:
//!
//! 1. When a third of a certificate's lifetime is left, a certificate of the same authority replaces it.
//! 2. When a third of the authority's lifetime is left, the next authority is made. The next authority is trusted too,
//!    but signs nothing yet.
//! 3. After every configuration trusts the next authority and `settle` has passed, it signs the certificate, and the
//!    key of the old authority is deleted.
//! 4. The old authority stays trusted until the last certificate that it signed has expired, because a replica that has
//!    not read the Secret may still use that certificate.

mod bundle;
mod keeper;
mod make;
mod metrics;
mod reader;
mod state;
mod step;
mod stored;

use std::sync::Arc;

use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::OwnCertificates;
use keeper::Keeper;
use metrics::Metrics;
use reader::Reader;
use service_core::edge::{Handed, Probe};
use service_core::kube::Client;
use state::State;

/// The names of the rotation's Kubernetes objects, and its settings.
#[derive(Debug, Clone)]
pub struct Installation {
    settings: OwnCertificates,
    namespace: String,
}

pub struct Rotation {
    state: Arc<State>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Rotation {
    /// Starts a task that reads the certificate into `handed`. While this replica holds the Lease, another task makes
    /// the certificate. The Service, Secret and Lease are in `namespace`.
    pub fn start(
        settings: &OwnCertificates,
        namespace: String,
        client: &Arc<Client>,
        handed: &Arc<Handed>,
        registry: &mut Registry,
    ) -> Self {
        let place = Installation { settings: settings.clone(), namespace };
        let state = Arc::new(State::default());
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(Reader::new(place.clone(), Arc::clone(client), Arc::clone(handed)).follow());
        let keeper = Keeper::new(place, Arc::clone(client), Arc::clone(&state), Metrics::register(registry));
        tasks.spawn(keeper.run(stop.clone()));
        Self { state, tasks, stop }
    }

    pub fn probe(&self) -> Arc<dyn Probe> {
        Arc::clone(&self.state) as _
    }

    pub async fn broken(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Err(error)) => error.to_string(),
            _ => "a task of the certificates ended by itself".into(),
        }
    }

    /// Releases the Lease, so that another replica takes over at once. The former holder of the Lease still reads the
    /// certificate.
    pub fn resign(&self) {
        self.stop.cancel();
    }

    pub async fn stop(mut self) {
        self.stop.cancel();
        self.tasks.shutdown().await;
    }
}

impl Installation {
    fn secret_path(&self) -> String {
        format!("{}/{}", self.secrets_path(), self.settings.secret)
    }

    fn secrets_path(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    /// The DNS names in the certificate; the API server uses the last name.
    fn names(&self) -> [String; 3] {
        let (service, namespace) = (&self.settings.service, &self.namespace);
        [service.clone(), format!("{service}.{namespace}"), format!("{service}.{namespace}.svc")]
    }

    fn called_as(&self) -> String {
        format!("{}.{}.svc", self.settings.service, self.namespace)
    }
}
