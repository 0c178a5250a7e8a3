//! The replicas role: starts and ends its watch and its listener.
//!
//! This module owns the tasks of the role; the module `api` handles calls.

use std::sync::Arc;

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use service_core::config::{Config, Kubernetes, kind};
use service_core::edge::{Files, Handler, Labels, Limits, Listener, Probe, Protocols, Rules, ServerTls, serve};
use service_core::kube::{Client, Cluster};
use service_core::role::{About, Prepared, Reload, Role, Running, Start, Started};
use service_watch::config::Watch;
use service_watch::{self as watch, Informer};
use tokio::task::JoinSet;

use crate::api::{Api, Parts};
use crate::config;
use crate::deployment::Deployment;
use crate::metrics::Metrics;

const ABOUT: About = About {
    name: "replicas",
    help: "Only the API that scales Deployments",
    sections: &[kind::<Kubernetes>(), kind::<Watch>(), kind::<config::Replicas>()],
    needs: &[Config::has::<config::Replicas>],
    lacks: "the section `replicas` in the configuration (listen, certificate, key, clientCA): \
            `longhaul-service certs dev DIR` makes certificates to begin with",
    always: false,
};

/// The role that serves the API that scales Deployments.
#[derive(Debug)]
pub struct ReplicasRole;

impl Role for ReplicasRole {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn borrows(&self, config: &Config) -> bool {
        config.find::<config::Replicas>().is_some_and(|settings| settings.images)
    }

    fn prepare(&self, _: &mut Start<'_>) -> anyhow::Result<Prepared> {
        Ok(Prepared::of(|start| begin(start).boxed()))
    }
}

/// Loads files, binds the listener, and starts the watch.
async fn begin(start: &mut Start<'_>) -> anyhow::Result<Started> {
    let config = start.config;
    let settings = config.find::<config::Replicas>().context("the section `replicas` is missing")?;
    let labels = Labels {
        check: "replicas-certificate",
        server: "replicas",
        client_ca: "replicas-client-ca",
        revoked: "replicas-revoked",
    };
    let tls = ServerTls::load(files(settings), labels, start.certificates.clone());
    let tls = tls.context("failed to load replicas.certificate, key, clientCA and crl")?;
    let edge = start.edge.of("replicas");
    let listener = Listener::bind(settings.listen, Protocols::Tls(Arc::clone(&tls)), edge.clone()).await;
    let listener = listener.with_context(|| format!("failed to listen on {} (replicas.listen)", settings.listen))?;
    let listener = listener.checked_as("replicas-listener").with_limits(Limits {
        connections: settings.max_connections,
        connections_per_peer: settings.max_connections,
        handshakes_per_peer: settings.max_connections.div_ceil(4),
    });
    let address = listener.address().context("failed to read the address of the API over deployments")?;
    let cluster = Cluster::find(config.of::<Kubernetes>().kubeconfig.as_deref());
    let client = Client::new(cluster.context("failed to find the API server")?, config.of::<Watch>().transport);
    let client = Arc::new(client);
    let mut follower = JoinSet::new();
    follower.spawn(Arc::clone(&client).follow_files());
    let informer: Informer<Deployment> = Informer::start(watch::Start {
        source: Deployment::SOURCE,
        settings: config.of::<Watch>(),
        client: Arc::clone(&client),
        metrics: &start.watches(),
        witness_url: start.witness_url.take(),
        sink: Box::new(|_| None),
    })?;
    let parts = Parts {
        view: informer.view().clone(),
        client,
        admit: start.review.clone().filter(|_| settings.images),
        metrics: Metrics::register(start.metrics),
        edge,
    };
    let api = Arc::new(Api::new(settings, parts));
    let probes = vec![informer.probe(), Arc::clone(&tls) as Arc<dyn Probe>, Arc::clone(listener.heartbeat()) as _];
    start.background.spawn(tls.follow_files(start.look.subscribe()));
    let reload = reload(settings.clone(), Arc::clone(&api));
    let handler: Handler = Arc::new(move |request, peer| serve(Arc::clone(&api), request, peer).boxed());
    tracing::info!(name: service_core::logs::names::SERVED, listener = "replicas", %address, "deployments are served");
    let running = Box::new(Stage { informer, follower });
    Ok(Started { served: Some((listener, handler)), probes, reload: Some(reload), running })
}

fn reload(mut running: config::Replicas, api: Arc<Api>) -> Reload {
    Box::new(move |fresh| {
        let Some(fresh) = fresh.find::<config::Replicas>() else { return Ok(Vec::new()) };
        if (&running.allow, running.rate) != (&fresh.allow, fresh.rate) {
            api.replace(&fresh.allow, fresh.rate);
            (running.allow, running.rate) = (fresh.allow.clone(), fresh.rate);
        }
        Ok(Vec::new())
    })
}

struct Stage {
    informer: Informer<Deployment>,
    follower: JoinSet<()>,
}

impl Running for Stage {
    fn broken(&mut self) -> BoxFuture<'_, String> {
        async move {
            let why = tokio::select! {
                why = self.informer.broken() => why,
                Some(_) = self.follower.join_next() => "the reader of the connection's files ended".into(),
            };
            format!("the watch of deployments broke: {why}")
        }
        .boxed()
    }

    /// Ends no task, because calls are still answered and need the watch.
    fn leave(&mut self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }

    /// Stops the watch and delivers the last observations.
    fn stop(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        async move {
            self.informer.stop().await;
            self.informer.delivered().await;
        }
        .boxed()
    }
}

fn files(settings: &config::Replicas) -> Files {
    Files {
        certificate: settings.certificate.clone(),
        key: settings.key.clone(),
        handed: None,
        client_cas: settings.client_ca.clone(),
        // Rights are checked by verb, for a proven identity.
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
