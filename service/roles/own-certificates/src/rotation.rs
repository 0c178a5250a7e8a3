//! The webhook's own certificates: authority and certificate in a Secret, the authority in the `caBundle` of the
//! webhook configurations, and their rotation without a failed call.
//!
//! This module owns Secret and bundles. The holder of a Lease writes (`keeper`); every replica reads the certificate
//! from the Secret through the API (`reader`), because a mounted Secret is more than a minute late. `step` chooses the
//! next step, without I/O. A rotation has these steps:
//!
//! 1. A certificate of the same authority is replaced when a third of its life is left.
//! 2. When a third of the authority's life is left, the next authority is made and trusted as well; it signs nothing yet.
//! 3. Once every configuration trusts it and `settle` has passed, it signs the certificate; the key of the old one is forgotten.
//! 4. The old authority is trusted until the last certificate that it signed has ended: a replica that could not read the Secret is
//!    still trusted.

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

/// The objects of the rotation, and their settings.
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
    /// Begins to read the certificate into `handed`, and to make it while this replica holds the Lease. `namespace` is
    /// that of Service, Secret and Lease.
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

    /// The health check of the rotation.
    pub fn probe(&self) -> Arc<dyn Probe> {
        Arc::clone(&self.state) as _
    }

    /// Waits until a task ends that should never end; returns the reason.
    pub async fn broken(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Err(error)) => error.to_string(),
            _ => "a task of the certificates ended by itself".into(),
        }
    }

    /// Gives the Lease back, so that another replica takes over at once. The certificate is still read.
    pub fn resign(&self) {
        self.stop.cancel();
    }

    /// Ends the remaining tasks.
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

    /// The names in the certificate; the API server requests the last one.
    fn names(&self) -> [String; 3] {
        let (service, namespace) = (&self.settings.service, &self.namespace);
        [service.clone(), format!("{service}.{namespace}"), format!("{service}.{namespace}.svc")]
    }

    fn called_as(&self) -> String {
        format!("{}.{}.svc", self.settings.service, self.namespace)
    }
}
