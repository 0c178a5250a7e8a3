//! The webhook's background tasks at the API server: making its own certificates, and checking its registration.
//!
//! This module owns the two tasks and their shared API server client. A process that needs neither task has no API
//! server client.

use std::sync::Arc;

use anyhow::Context as _;
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio::task::JoinSet;

use crate::config::{self, Config, Transport};
use crate::registration::{self, Calls};
use service_core::edge::{Handed, Probe, ServerTls};
use service_core::kube::{Client, Cluster};
#[cfg(feature = "own-certificates")]
use service_own_certificates::Rotation;

/// The webhook's tasks at the API server, and their shared client.
pub(super) struct Upkeep {
    client: Arc<Client>,
    namespace: Option<String>,
    handed: Option<Arc<Handed>>,
    #[cfg(feature = "own-certificates")]
    certificates: Option<Rotation>,
    registration: Option<registration::Monitor>,
    calls: Arc<Calls>,
    tasks: JoinSet<()>,
}

impl Upkeep {
    /// Finds the API server if a task needs it, but starts no task.
    pub(super) fn open(config: &Config, settings: &config::Admission) -> anyhow::Result<Option<Self>> {
        let own = settings.own.as_ref();
        let wanted_by = match (own, &settings.registration) {
            (Some(_), _) => "admission.ownCertificates",
            (None, Some(_)) => "admission.registration",
            (None, None) => return Ok(None),
        };
        let cluster = Cluster::find(config.kubeconfig.as_deref());
        let cluster = cluster.with_context(|| format!("{wanted_by} needs the API server"))?;
        let named = own.and_then(|own| own.namespace.clone());
        let named = named.or_else(|| settings.registration.as_ref().and_then(|one| one.namespace.clone()));
        let namespace = named.or_else(|| cluster.namespace.clone());
        if own.is_some() {
            let namespace = namespace.as_deref();
            namespace.context("admission.ownCertificates.namespace is needed outside of a pod")?;
        }
        let handed = own.map(|own| {
            let namespace = namespace.as_deref().unwrap_or_default();
            Arc::new(Handed::new(format!("secrets/{} in {namespace}", own.secret)))
        });
        let client = Arc::new(Client::new(cluster, Transport::Http1));
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&client).follow_files());
        Ok(Some(Self {
            client,
            namespace,
            handed,
            #[cfg(feature = "own-certificates")]
            certificates: None,
            registration: None,
            calls: Arc::default(),
            tasks,
        }))
    }

    /// The holder of the certificate; `None` if the certificate is read from files.
    pub(super) fn handed(&self) -> Option<Arc<Handed>> {
        self.handed.clone()
    }

    pub(super) fn calls(&self) -> Arc<Calls> {
        Arc::clone(&self.calls)
    }

    pub(super) fn start(&mut self, settings: &config::Admission, tls: &Arc<ServerTls>, metrics: &mut MetricsRegistry) {
        if let Some(settings) = &settings.registration {
            let parts = registration::Parts {
                settings,
                namespace: self.namespace.clone(),
                client: Arc::clone(&self.client),
                tls: Arc::clone(tls),
                calls: self.calls(),
            };
            self.registration = Some(registration::Monitor::start(parts, metrics));
        }
        #[cfg(feature = "own-certificates")]
        if let (Some(own), Some(handed), Some(namespace)) = (&settings.own, &self.handed, &self.namespace) {
            let rotation = Rotation::start(own, namespace.clone(), &self.client, handed, metrics);
            self.certificates = Some(rotation);
        }
    }

    pub(super) fn probes(&self) -> Vec<Arc<dyn Probe>> {
        let mut probes: Vec<Arc<dyn Probe>> = Vec::new();
        probes.extend(self.registration.as_ref().map(registration::Monitor::probe));
        #[cfg(feature = "own-certificates")]
        probes.extend(self.certificates.as_ref().map(Rotation::probe));
        probes
    }

    pub(super) async fn broken(&mut self) -> String {
        #[cfg(feature = "own-certificates")]
        let certificates = async {
            match &mut self.certificates {
                Some(running) => running.broken().await,
                None => std::future::pending().await,
            }
        };
        #[cfg(not(feature = "own-certificates"))]
        let certificates = std::future::pending::<String>();
        let registration = async {
            match &mut self.registration {
                Some(running) => running.broken().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            why = registration => why,
            why = certificates => why,
            Some(_) = self.tasks.join_next() => "a task ended by itself".into(),
        }
    }

    /// Ends the making of certificates, so that another replica takes over.
    #[cfg_attr(
        not(feature = "own-certificates"),
        expect(clippy::unused_self, reason = "a build that makes no certificates has nothing to give back")
    )]
    pub(super) fn resign(&self) {
        #[cfg(feature = "own-certificates")]
        if let Some(running) = &self.certificates {
            running.resign();
        }
    }

    pub(super) async fn stop(mut self) {
        #[cfg(feature = "own-certificates")]
        if let Some(running) = self.certificates.take() {
            running.stop().await;
        }
        self.tasks.shutdown().await;
    }
}
