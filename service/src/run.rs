//! A running process: which rooms a role has, how they start, and how they end.
//!
//! Owns every task. Rooms are wired together here and nowhere else.

mod api;
mod desk;
mod followed;
mod owners;
mod reload;
mod verify;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::admission::Endpoint;
use crate::cli::Role;
use crate::config::Config;
use crate::edge::{
    Certificates, Drain, Files, Health, Labels, Limits, Listener, Metrics as EdgeMetrics, Phase, Probe, Protocols,
    Pulse, ServerTls, heartbeat, register_process,
};
use crate::{validator, watch};
use api::Replicas;
use desk::Desk;
use reload::{Admission, Metrics as ConfigMetrics, Reloader, Trouble};
pub use verify::{Report, verify, verify_among, with_key};

/// After the drain, connections that were just made get so long to bring their call.
const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// After that, answers under way get so long before their connections are cut.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// What the environment, not the configuration, decides.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where accepted events are posted.
    pub witness_url: Option<String>,
    #[cfg(feature = "planted-bugs")]
    planted: Option<crate::planted::Bug>,
}

impl Options {
    /// Options that post accepted events to `witness_url`, if there is one.
    pub fn witnessed_at(witness_url: Option<String>) -> Self {
        Self {
            witness_url,
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }

    /// Switches the planted bug of that name on.
    #[cfg(feature = "planted-bugs")]
    pub fn plant(&mut self, name: &str) -> anyhow::Result<()> {
        let known = crate::planted::Bug::names();
        self.planted =
            Some(crate::planted::Bug::parse(name).with_context(|| format!("no such bug: use one of {known}"))?);
        Ok(())
    }

    /// Refuses: the bugs are not in this build.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn plant(&mut self, _name: &str) -> anyhow::Result<()> {
        anyhow::bail!("this binary was built without the feature planted-bugs")
    }
}

/// What all listeners share.
struct Shared<'a> {
    edge: &'a EdgeMetrics,
    certificates: &'a Certificates,
}

/// A running process.
pub struct App {
    drain: Drain,
    drain_max: Duration,
    listeners: JoinSet<()>,
    background: JoinSet<()>,
    /// Changed to make whatever follows files look at them now.
    look: channel::Sender<u64>,
    probes: Vec<Arc<dyn Probe>>,
    /// What follows the configuration file, until it is told which one that is.
    reloader: Option<Reloader>,
    watch: Option<watch::Room>,
    replicas: Option<Replicas>,
    /// What the webhook asks the API server about itself.
    desk: Option<Desk>,
    admission: Option<SocketAddr>,
    health: Option<SocketAddr>,
}

impl App {
    /// Binds, loads and starts everything that `role` needs; fails before anything is served.
    pub async fn start(role: Role, config: Config, options: Options) -> anyhow::Result<Self> {
        let mut metrics = MetricsRegistry::default();
        let mut app = Self {
            drain: Drain::new(),
            drain_max: config.drain,
            listeners: JoinSet::new(),
            background: JoinSet::new(),
            look: channel::Sender::new(0),
            probes: Vec::new(),
            reloader: None,
            watch: None,
            replicas: None,
            desk: None,
            admission: None,
            health: None,
        };
        register_process(&mut metrics);
        let edge = EdgeMetrics::register(&mut metrics);
        let runtime = Arc::new(Pulse::new("runtime"));
        app.background.spawn(heartbeat(Arc::clone(&runtime)));
        app.probes.push(runtime);
        // Bound before the watch starts, so that a port in use is found before any request was sent.
        let health = match config.health {
            Some(address) => {
                let listener = Listener::bind(address, Protocols::Plain, edge.of("health")).await;
                Some(
                    listener
                        .with_context(|| format!("failed to listen on {address} (health.listen)"))?
                        .through_the_drain(),
                )
            }
            None => None,
        };
        let trouble = Arc::new(Trouble::default());
        app.probes.push(Arc::clone(&trouble) as Arc<dyn Probe>);
        let certificates = Certificates::register(&mut metrics);
        let mut admission = None;
        let images = config.replicas.as_ref().is_some_and(|settings| settings.images);
        if role.admits() || (role == Role::Replicas && images) {
            admission = Some(Admission::new(&config, &options, &mut metrics)?);
        }
        if let Some(admission) = admission.as_ref().filter(|_| role.admits()) {
            let shared = Shared { edge: &edge, certificates: &certificates };
            app.start_webhook(&config, admission, shared, &mut metrics).await?;
        }
        let watch_metrics = (role != Role::Manager).then(|| watch::Metrics::register(&mut metrics));
        if let Some(watch_metrics) = watch_metrics.as_ref().filter(|_| role.reconciles()) {
            let watch_options = watch::Options {
                witness_url: options.witness_url.clone(),
                #[cfg(feature = "planted-bugs")]
                planted: options.planted,
            };
            let room =
                watch::Room::start(&config, &watch_options, watch_metrics).context("failed to start the watch")?;
            app.probes.extend(room.probes());
            app.watch = Some(room);
        }
        if let (Some(watch_metrics), Some(settings)) = (&watch_metrics, &config.replicas) {
            let parts = api::Parts {
                settings,
                config: &config,
                // In a process with more to watch, who asks for a witness judges that.
                witness_url: options.witness_url.as_deref().filter(|_| role == Role::Replicas),
                admission: admission.as_ref(),
                watch_metrics,
                edge: edge.of("replicas"),
                certificates: &certificates,
                #[cfg(feature = "planted-bugs")]
                planted: options.planted,
            };
            let replicas = Replicas::bind(parts, &mut metrics).await?;
            app.probes.extend(replicas.probes());
            app.background.spawn(Arc::clone(replicas.tls()).follow_files(app.look.subscribe()));
            app.replicas = Some(replicas);
        }
        let served = app.replicas.as_mut().and_then(Replicas::serve);
        if let Some((listener, api)) = served {
            let handler = move |request, peer| Arc::clone(&api).serve(request, peer);
            app.listeners.spawn(listener.serve(handler, app.drain.clone()));
        }
        let config_metrics = ConfigMetrics::register(&mut metrics);
        let trust = validator::trust(&config);
        let api = app.replicas.as_ref().map(|replicas| Arc::clone(replicas.api()));
        app.reloader = Some(Reloader {
            path: PathBuf::new(),
            running: config,
            trust,
            admission,
            replicas: api,
            metrics: config_metrics,
            trouble,
        });
        if let Some(listener) = health {
            app.serve_health(listener, metrics)?;
        }
        Ok(app)
    }

    fn serve_health(&mut self, listener: Listener, metrics: MetricsRegistry) -> anyhow::Result<()> {
        let address = listener.address().context("failed to read the health address")?;
        let health = Arc::new(Health::new(std::mem::take(&mut self.probes), metrics, self.drain.clone()));
        let handler = move |request, _| {
            let health = Arc::clone(&health);
            async move { health.serve(&request) }
        };
        self.background.spawn(listener.serve(handler, self.drain.clone()));
        self.health = Some(address);
        tracing::info!(name: crate::logs::names::SERVED, listener = "health", %address, "health is served");
        Ok(())
    }

    /// Follows the configuration file at `path` from now on.
    pub fn follow_config(&mut self, path: PathBuf) {
        if let Some(reloader) = self.reloader.take() {
            self.background.spawn(Reloader { path, ..reloader }.follow(self.look.subscribe()));
        }
    }

    async fn start_webhook(
        &mut self,
        config: &Config,
        admission: &Admission,
        shared: Shared<'_>,
        metrics: &mut MetricsRegistry,
    ) -> anyhow::Result<()> {
        let Shared { edge, certificates } = shared;
        let settings = config.admission.as_ref().context("the section `admission` is missing")?;
        let desk = Desk::open(config, settings)?;
        let files = Files {
            certificate: settings.certificate.clone(),
            key: settings.key.clone(),
            handed: desk.as_ref().and_then(Desk::handed),
            client_cas: settings.client_ca.iter().cloned().collect(),
            client_names: settings.client_names.clone(),
            ..Files::default()
        };
        let labels = Labels { check: "certificate", server: "server", client_ca: "client-ca", revoked: "revoked" };
        let tls = ServerTls::load(files, labels, certificates.clone());
        let tls = tls.context("failed to load admission.certificate, admission.key and admission.clientCA")?;
        let listener = Listener::bind(settings.listen, Protocols::Tls(Arc::clone(&tls)), edge.of("admission")).await;
        let listener =
            listener.with_context(|| format!("failed to listen on {} (admission.listen)", settings.listen))?;
        let listener = listener.with_limits(Limits {
            connections: settings.max_connections,
            connections_per_peer: settings.max_connections_per_peer,
            // A kube-apiserver that stood still dials for hundreds of calls at once: it is not to be refused.
            handshakes_per_peer: settings.max_connections_per_peer.div_ceil(4) * 3,
        });
        let address = listener.address().context("failed to read the admission address")?;
        self.probes.extend([Arc::clone(&tls) as Arc<dyn Probe>, Arc::clone(listener.pulse()) as _]);
        let endpoint =
            Arc::new(Endpoint::new(settings, Arc::clone(admission.current()), Arc::clone(admission.share().room())));
        self.probes.push(Arc::clone(endpoint.load()) as Arc<dyn Probe>);
        let calls = desk.as_ref().map(Desk::calls);
        let handler = move |request, peer| {
            if let Some(calls) = &calls {
                calls.note();
            }
            Arc::clone(&endpoint).serve(request, peer)
        };
        self.listeners.spawn(listener.serve(handler, self.drain.clone()));
        if let Some(mut desk) = desk {
            desk.start(settings, &tls, metrics);
            self.probes.extend(desk.probes());
            self.desk = Some(desk);
        }
        self.background.spawn(tls.follow_files(self.look.subscribe()));
        self.admission = Some(address);
        tracing::info!(name: crate::logs::names::SERVED, listener = "admission", %address, "the webhook is served");
        Ok(())
    }

    /// Looks at every file that is followed now, not at its next turn.
    pub fn look_at_files(&self) {
        self.look.send_modify(|looks| *looks += 1);
    }

    /// Where the webhook listens.
    pub fn admission(&self) -> Option<SocketAddr> {
        self.admission
    }

    /// Where the API over Deployments listens.
    pub fn replicas(&self) -> Option<SocketAddr> {
        self.replicas.as_ref().map(Replicas::address)
    }

    /// Where health is served.
    pub fn health(&self) -> Option<SocketAddr> {
        self.health
    }

    /// Waits until a part ends that never should; answers why.
    pub async fn broken(&mut self) -> anyhow::Result<()> {
        let watch = async {
            match &mut self.watch {
                Some(watch) => watch.broken().await,
                None => std::future::pending().await,
            }
        };
        let replicas = async {
            match &mut self.replicas {
                Some(replicas) => replicas.broken().await,
                None => std::future::pending().await,
            }
        };
        let desk = async {
            match &mut self.desk {
                Some(desk) => desk.broken().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(ended) = self.listeners.join_next() => ended.context("a listener broke")?,
            Some(ended) = self.background.join_next() => ended.context("a background task broke")?,
            text = watch => anyhow::bail!("the watch broke: {text}"),
            text = desk => anyhow::bail!("what the webhook asks the API server about itself broke: {text}"),
            text = replicas => anyhow::bail!("the watch of deployments broke: {text}"),
            else => std::future::pending().await,
        }
        anyhow::bail!("a part of the process ended by itself")
    }

    /// Drains and stops: readiness off, every call answered, connections closed by their answers, at most the drain time.
    pub async fn stop(mut self) {
        self.drain.enter(Phase::Draining);
        // Another replica makes certificates from now on; this one still reads them, while it answers.
        if let Some(desk) = &self.desk {
            desk.resign();
        }
        // Writes under way end first; nobody waits for the watch.
        if let Some(watch) = self.watch.take() {
            watch.stop().await;
        }
        // Each step is only taken when the one before did not empty the connections.
        for (max, next) in [(self.drain_max, Phase::Closing), (CLOSE_GRACE, Phase::Stopping)] {
            if self.listeners_end_within(max).await {
                break;
            }
            self.drain.enter(next);
        }
        // Its callers are answered until here: from a view that goes on.
        if let Some(replicas) = self.replicas.take() {
            replicas.stop().await;
        }
        if !self.listeners_end_within(STOP_GRACE).await {
            tracing::warn!(name: crate::logs::names::CUT, "connections were cut after the drain time");
        }
        if let Some(desk) = self.desk.take() {
            desk.stop().await;
        }
        self.background.shutdown().await;
    }

    async fn listeners_end_within(&mut self, max: Duration) -> bool {
        timeout(max, async { while self.listeners.join_next().await.is_some() {} }).await.is_ok()
    }
}
