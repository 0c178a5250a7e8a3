//! The API over Deployments put together: its watch, its listener, and their end.
//!
//! Owns the tasks of this role. What a call means is in `replicas`.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::reload::Admission;
use crate::admission::{Current, Hook};
use crate::config::{self, Config};
use crate::edge::{Certificates, Files, Labels, Limits, Listener, ListenerMetrics, Probe, Protocols, Rules, ServerTls};
use crate::kube::{Client, Cluster};
use crate::replicas::{Admit, Api, Deployment, Metrics, Parts as ApiParts};
use crate::watch::{self, Informer};

/// What the role needs.
pub(super) struct Parts<'a> {
    pub settings: &'a config::Replicas,
    pub config: &'a Config,
    pub witness_url: Option<&'a str>,
    pub admission: Option<&'a Admission>,
    pub watch_metrics: &'a watch::Metrics,
    pub edge: ListenerMetrics,
    pub certificates: &'a Certificates,
    #[cfg(feature = "planted-bugs")]
    pub planted: Option<crate::planted::Bug>,
}

/// The running role.
pub(super) struct Replicas {
    informer: Informer<Deployment>,
    api: Arc<Api>,
    tls: Arc<ServerTls>,
    address: SocketAddr,
    /// Until it is served.
    listener: Option<Listener>,
    pulse: Arc<dyn Probe>,
    follower: JoinSet<()>,
}

/// Admission of this process.
struct Here(Arc<Current>);

impl Admit for Here {
    fn review(&self, review: Bytes, deadline: Instant) -> BoxFuture<'static, Result<Bytes, String>> {
        let current = Arc::clone(&self.0);
        async move {
            let answer = current.review(Hook::Mutating, &review, deadline).await;
            answer.map(Bytes::from).map_err(|error| error.to_string())
        }
        .boxed()
    }
}

impl Replicas {
    /// Loads, binds, and begins to watch; serves nothing yet.
    pub(super) async fn bind(parts: Parts<'_>, metrics: &mut MetricsRegistry) -> anyhow::Result<Self> {
        let settings = parts.settings;
        let labels = Labels {
            check: "replicas-certificate",
            server: "replicas",
            client_ca: "replicas-client-ca",
            revoked: "replicas-revoked",
        };
        let files = files(settings);
        #[cfg(feature = "planted-bugs")]
        let files = match parts.planted {
            Some(crate::planted::Bug::AcceptsRevoked) => Files { revoked: Vec::new(), ..files },
            _ => files,
        };
        let tls = ServerTls::load(files, labels, parts.certificates.clone());
        let tls = tls.context("failed to load replicas.certificate, key, clientCA and crl")?;
        let listener = Listener::bind(settings.listen, Protocols::Tls(Arc::clone(&tls)), parts.edge.clone()).await;
        let listener =
            listener.with_context(|| format!("failed to listen on {} (replicas.listen)", settings.listen))?;
        let listener = listener.checked_as("replicas-listener").with_limits(Limits {
            connections: settings.max_connections,
            connections_per_peer: settings.max_connections,
            handshakes_per_peer: settings.max_connections.div_ceil(4),
        });
        let address = listener.address().context("failed to read the address of the API over deployments")?;
        let cluster = Cluster::find(parts.config.kubeconfig.as_deref()).context("failed to find the API server")?;
        let client = Arc::new(Client::new(cluster, parts.config.watch.transport));
        let mut follower = JoinSet::new();
        follower.spawn(Arc::clone(&client).follow_files());
        let informer = Informer::start(watch::Start {
            settings: &parts.config.watch,
            client: Arc::clone(&client),
            metrics: parts.watch_metrics,
            witness_url: parts.witness_url,
            sink: Box::new(|_| {}),
            #[cfg(feature = "planted-bugs")]
            planted: parts.planted,
        })?;
        let admit = parts.admission.filter(|_| settings.images);
        let admit = admit.map(|admission| Arc::new(Here(Arc::clone(admission.current()))) as Arc<dyn Admit>);
        let view = informer.view().clone();
        let api = ApiParts {
            view,
            client,
            admit,
            metrics: Metrics::register(metrics),
            edge: parts.edge,
            #[cfg(feature = "planted-bugs")]
            planted: parts.planted,
        };
        let api = Arc::new(Api::new(settings, api));
        let pulse = Arc::clone(listener.pulse()) as Arc<dyn Probe>;
        Ok(Self { informer, api, tls, address, listener: Some(listener), pulse, follower })
    }

    /// The listener and what answers on it; once.
    pub(super) fn serve(&mut self) -> Option<(Listener, Arc<Api>)> {
        let listener = self.listener.take()?;
        tracing::info!(
            name: crate::logs::names::SERVED, listener = "replicas", address = %self.address, "deployments are served"
        );
        Some((listener, Arc::clone(&self.api)))
    }

    pub(super) fn probes(&self) -> [Arc<dyn Probe>; 3] {
        [self.informer.probe(), Arc::clone(&self.tls) as _, Arc::clone(&self.pulse)]
    }

    pub(super) fn api(&self) -> &Arc<Api> {
        &self.api
    }

    pub(super) fn tls(&self) -> &Arc<ServerTls> {
        &self.tls
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until a task ends that never should; answers why.
    pub(super) async fn broken(&mut self) -> String {
        tokio::select! {
            why = self.informer.broken() => why,
            Some(_) = self.follower.join_next() => "the reader of the connection's files ended".into(),
        }
    }

    /// Stops watching, and delivers the last observations.
    pub(super) async fn stop(mut self) {
        self.informer.stop().await;
        self.informer.delivered().await;
    }
}

fn files(settings: &config::Replicas) -> Files {
    Files {
        certificate: settings.certificate.clone(),
        key: settings.key.clone(),
        handed: None,
        client_cas: settings.client_ca.clone(),
        // Who may do what is said by verb, to whom has proved who it is.
        client_names: Vec::new(),
        revoked: settings.crl.clone(),
        rules: Rules {
            tls13_only: true,
            suites: settings.cipher_suites.clone(),
            private_key: true,
            revocation_required: settings.crl_required,
            purpose_required: true,
            lifetime_max: settings.max_certificate_lifetime,
        },
    }
}
