//! A running process of the service: its roles, their start, and their end.
//!
//! This module starts and ends every task. The module knows roles only through their interface.

mod followed;
mod reload;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::select_all;
use prometheus_client::registry::Registry as MetricsRegistry;
use service_core::alert::AlertSink;
use service_core::config::{Config, Health as HealthSection, Shutdown};
use service_core::edge::{
    Certificates, Drain, Handler, Health, Heartbeat, Listener, Metrics as EdgeMetrics, Phase, Probe, Protocols,
    register_process,
};
use service_core::known::Knowledge;
use service_core::logs::names;
use service_core::role::{Prepared, Reload, Role, Running, Start};
use service_core::share::Share;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::roles::{self, Roles};
use reload::{Metrics as ConfigMetrics, Reloader, Trouble};

/// The value of the features label for a program without additions such as planted bugs.
pub const NO_FEATURES: &str = "none";
/// The value of `--role` for a process with every role.
pub const ALL: &str = "all";
/// Former names of roles, each with the present name.
pub const FORMER_ROLES: [(&str, &str); 2] = [("manager", "admission"), ("watch", "packages")];
/// Maximum number of bytes that open calls at the health listener may hold. The limit is separate, so that webhook
/// clients cannot block kubelet probes.
const HEALTH_ROOM_BYTES: usize = 1 << 20;
/// Time after the drain in which a new connection may still send its call.
const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// Time for answers after `CLOSE_GRACE`; then their connections are cut.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// Time in which queued alerts are still sent when the process ends.
const ALERTS_GRACE: Duration = Duration::from_secs(5);

/// Options that come from the program and its environment instead of the configuration.
#[derive(Clone)]
pub struct Options {
    /// The URL that receives observations of accepted events.
    pub witness_url: Option<String>,
    pub roles: Roles,
    /// The value of the features label in the metrics, for additions such as planted bugs.
    pub features: &'static str,
}

impl Default for Options {
    fn default() -> Self {
        Self { witness_url: None, roles: roles::all(), features: NO_FEATURES }
    }
}

/// The roles that `--role NAME` starts.
pub fn roles(name: &str, list: &Roles, config: &Config) -> anyhow::Result<Vec<Arc<dyn Role>>> {
    if let Some((_, now)) = FORMER_ROLES.iter().find(|(former, _)| *former == name) {
        anyhow::bail!("the role `{name}` is now `{now}`: write `--role {now}`");
    }
    let roles: Vec<_> = match list.iter().find(|role| role.about().name == name) {
        Some(role) => vec![Arc::clone(role)],
        None => list.iter().filter(|role| name == ALL && role.about().belongs(config)).cloned().collect(),
    };
    anyhow::ensure!(!roles.is_empty(), "there is no role {name}");
    match roles.iter().find_map(|role| role.about().lacks(config)) {
        Some(lacks) => anyhow::bail!("the role needs {lacks}"),
        None => Ok(roles),
    }
}

pub struct App {
    drain: Drain,
    drain_max: Duration,
    listeners: JoinSet<()>,
    background: JoinSet<()>,
    /// A channel: if its value changes, all tasks that watch files check their files at once.
    look: channel::Sender<u64>,
    /// The reloader of the configuration file; `None` after its task has started.
    reloader: Option<Reloader>,
    running: Vec<Box<dyn Running>>,
    alerts: Option<Arc<dyn AlertSink>>,
    known: Option<Arc<dyn Knowledge>>,
    addresses: Vec<(&'static str, SocketAddr)>,
    health: Option<SocketAddr>,
}

impl App {
    /// Binds sockets, loads files and starts the roles. Any failure is returned before the process serves a request.
    pub async fn start(role: &str, config: Config, options: Options) -> anyhow::Result<Self> {
        let chosen = roles(role, &options.roles, &config)?;
        let mut metrics = MetricsRegistry::default();
        let mut app = Self {
            drain: Drain::new(),
            drain_max: config.of::<Shutdown>().drain,
            listeners: JoinSet::new(),
            background: JoinSet::new(),
            look: channel::Sender::new(0),
            reloader: None,
            running: Vec::new(),
            alerts: roles::alerts(&config, &mut metrics)?,
            known: roles::known(&config, &mut metrics)?,
            addresses: Vec::new(),
            health: None,
        };
        register_process(&mut metrics, options.features);
        let edge = EdgeMetrics::register(&mut metrics);
        edge.room().resize(Share::found(None).room_bytes());
        let runtime = Arc::new(Heartbeat::new("runtime"));
        app.background.spawn(Arc::clone(&runtime).keep_on());
        // Bound before a watch starts, so that a port in use is found before any request was sent.
        let health = match config.find::<HealthSection>().map(|health| health.listen) {
            Some(address) => {
                let listener = Listener::bind(address, Protocols::Plain, edge.apart("health", HEALTH_ROOM_BYTES)).await;
                let listener = listener.with_context(|| format!("failed to listen on {address} (health.listen)"))?;
                Some(listener.through_the_drain())
            }
            None => None,
        };
        let trouble = Arc::new(Trouble::default());
        let mut probes: Vec<Arc<dyn Probe>> = vec![runtime, Arc::clone(&trouble) as _];
        let certificates = Certificates::register(&mut metrics);
        let reloads =
            app.start_roles(&chosen, (&config, &options), (&edge, &certificates), &mut metrics, &mut probes).await?;
        let metrics_of_config = ConfigMetrics::register(&mut metrics);
        app.reloader =
            Some(Reloader { path: PathBuf::new(), running: config, reloads, metrics: metrics_of_config, trouble });
        if let Some(listener) = health {
            app.serve_health(listener, probes, metrics)?;
        }
        Ok(app)
    }

    /// Prepares the objects that roles share, then starts the chosen roles in the order of `list`.
    async fn start_roles(
        &mut self,
        chosen: &[Arc<dyn Role>],
        (config, options): (&Config, &Options),
        (edge, certificates): (&EdgeMetrics, &Certificates),
        metrics: &mut MetricsRegistry,
        probes: &mut Vec<Arc<dyn Probe>>,
    ) -> anyhow::Result<Vec<Reload>> {
        let (calls, mut watches) = (Share::of_calls(), None);
        let mut start = Start {
            config,
            witness_url: options.witness_url.as_deref(),
            metrics,
            edge,
            certificates,
            look: &self.look,
            background: &mut self.background,
            review: None,
            judge: None,
            alerts: self.alerts.clone(),
            known: self.known.clone(),
            calls: &calls,
            watches: &mut watches,
        };
        let is_chosen = |role: &dyn Role| chosen.iter().any(|one| one.about().name == role.about().name);
        let borrowed = chosen.iter().any(|role| role.borrows(config));
        let mut reloads = Vec::new();
        for role in options.roles.iter() {
            let is_chosen = is_chosen(&**role);
            if !is_chosen && !borrowed {
                continue;
            }
            let Prepared { reload, begin } = role.prepare(&mut start)?;
            reloads.extend(reload);
            if !is_chosen {
                continue;
            }
            let started = begin(&mut start).await?;
            probes.extend(started.probes);
            reloads.extend(started.reload);
            self.running.push(started.running);
            if let Some((listener, handler)) = started.served {
                let address = listener.address().context("failed to read the address of a listener")?;
                self.addresses.push((role.about().name, address));
                self.listeners.spawn(listener.serve(handler, self.drain.clone()));
            }
        }
        Ok(reloads)
    }

    fn serve_health(
        &mut self,
        listener: Listener,
        probes: Vec<Arc<dyn Probe>>,
        metrics: MetricsRegistry,
    ) -> anyhow::Result<()> {
        let address = listener.address().context("failed to read the health address")?;
        let health = Arc::new(Health::new(probes, metrics, self.drain.clone()));
        let handler: Handler = Arc::new(move |request, _| std::future::ready(health.serve(&request)).boxed());
        self.background.spawn(listener.serve(handler, self.drain.clone()));
        self.health = Some(address);
        tracing::info!(name: names::SERVED, listener = "health", %address, "health is served");
        Ok(())
    }

    /// From now on, reloads the configuration file at `path` after each change.
    pub fn follow_config(&mut self, path: PathBuf) {
        if let Some(reloader) = self.reloader.take() {
            self.background.spawn(Reloader { path, ..reloader }.follow(self.look.subscribe()));
        }
    }

    /// Makes all tasks check their files now instead of at the next interval.
    pub fn look_at_files(&self) {
        self.look.send_modify(|looks| *looks += 1);
    }

    pub fn address(&self, role: &str) -> Option<SocketAddr> {
        self.addresses.iter().find(|(name, _)| *name == role).map(|(_, address)| *address)
    }

    pub fn health(&self) -> Option<SocketAddr> {
        self.health
    }

    pub async fn broken(&mut self) -> anyhow::Result<()> {
        let roles = self.running.iter_mut().map(|role| role.broken());
        tokio::select! {
            Some(ended) = self.listeners.join_next() => ended.context("a listener broke")?,
            Some(ended) = self.background.join_next() => ended.context("a background task broke")?,
            (text, ..) = select_all(roles) => anyhow::bail!("{text}"),
        }
        anyhow::bail!("a part of the process ended by itself")
    }

    /// Drains and stops the process: readiness ends, every call is answered, and each connection closes after its
    /// answer. The drain time limits the whole duration of the stop.
    pub async fn stop(mut self) {
        self.drain.enter(Phase::Draining);
        for role in &mut self.running {
            role.leave().await;
        }
        // Each step is taken only if connections remain after the one before.
        for (max, next) in [(self.drain_max, Phase::Closing), (CLOSE_GRACE, Phase::Stopping)] {
            if self.listeners_end_within(max).await {
                break;
            }
            self.drain.enter(next);
        }
        for role in std::mem::take(&mut self.running) {
            role.stop().await;
        }
        if let Some(alerts) = self.alerts.take() {
            alerts.stop(ALERTS_GRACE).await;
        }
        if !self.listeners_end_within(STOP_GRACE).await {
            tracing::warn!(name: crate::events::CUT, "connections were cut after the drain time");
        }
        self.background.shutdown().await;
    }

    async fn listeners_end_within(&mut self, max: Duration) -> bool {
        timeout(max, async { while self.listeners.join_next().await.is_some() {} }).await.is_ok()
    }
}
