//! The configuration while the process runs: looked at again, and the parts of it that may change are swapped as a whole.
//!
//! `policy` and `resolve` take effect at once: a review goes through the generation that it began with, to its end. What else
//! changed is named and waits for a restart. A file that cannot be used changes nothing and is named once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;

use super::Options;
use crate::admission::{Endpoint, Metrics as AdmissionMetrics, Pipeline, Policy, Resolver};
use crate::config::{Config, Transport};
use crate::edge::Probe;
use crate::kube::{Client, Cluster};
use crate::registry::{Hosts, Metrics as RegistryMetrics, PullSecrets, Registry};
use crate::wire::Proxies;

/// How often the file is looked at; kubelet itself needs up to a minute to bring a changed `ConfigMap`.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// What the metrics say of the configuration.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    generation: Gauge,
    last_succeeded: Gauge,
    last_success_s: Gauge,
    needs_restart: Gauge,
}

impl Metrics {
    /// The first generation, just loaded.
    pub fn register(registry: &mut MetricsRegistry) -> Self {
        let metrics = Self::default();
        let sub = registry.sub_registry_with_prefix("longhaul_config");
        let Self { generation, last_succeeded, last_success_s, needs_restart } = &metrics;
        sub.register("generation", "Configurations that were taken, the first included", generation.clone());
        sub.register(
            "last_reload_successful",
            "Whether the file, when it was last looked at, could be used",
            last_succeeded.clone(),
        );
        sub.register(
            "last_reload_success_timestamp_seconds",
            "When a configuration was last taken, seconds since 1970",
            last_success_s.clone(),
        );
        sub.register("restart_needed", "Whether the file holds changes that wait for a restart", needs_restart.clone());
        metrics.taken();
        metrics
    }

    fn taken(&self) {
        self.generation.inc();
        self.last_succeeded.set(1);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_success_s.set(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    }
}

/// The webhook's parts that a new configuration replaces.
pub struct Webhook {
    endpoint: Arc<Endpoint>,
    resolver: Arc<Resolver>,
    /// Follow the files of the registry client that the resolver asks.
    followers: JoinSet<()>,
    metrics: Arc<AdmissionMetrics>,
    registry_metrics: Arc<RegistryMetrics>,
    options: Options,
}

impl Webhook {
    /// The webhook of `config`.
    pub fn new(config: &Config, options: &Options, registry: &mut MetricsRegistry) -> anyhow::Result<Self> {
        let settings = config.admission.as_ref().context("the section `admission` is missing")?;
        let (metrics, registry_metrics) = (AdmissionMetrics::register(registry), RegistryMetrics::register(registry));
        let (resolver, followers) = resolver(config, config.kubeconfig.as_deref(), &metrics, &registry_metrics)?;
        let pipeline = pipeline(config, &resolver, &metrics, options);
        let endpoint = Arc::new(Endpoint::new(settings, pipeline));
        Ok(Self { endpoint, resolver, followers, metrics, registry_metrics, options: options.clone() })
    }

    /// Where reviews are answered.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Changes to `fresh`; the resolver stays with all that it knows when its settings do.
    fn change(&mut self, running: &Config, fresh: &Config) -> anyhow::Result<()> {
        if shown(&running.resolve) != shown(&fresh.resolve) {
            // The followers of the client before end here; reviews that began with it keep it as it is.
            let kubeconfig = running.kubeconfig.as_deref();
            (self.resolver, self.followers) = resolver(fresh, kubeconfig, &self.metrics, &self.registry_metrics)?;
        }
        self.endpoint.replace(pipeline(fresh, &self.resolver, &self.metrics, &self.options));
        Ok(())
    }
}

fn resolver(
    config: &Config,
    kubeconfig: Option<&Path>,
    metrics: &Arc<AdmissionMetrics>,
    registry_metrics: &Arc<RegistryMetrics>,
) -> anyhow::Result<(Arc<Resolver>, JoinSet<()>)> {
    let hosts = Hosts::new(&config.resolve, Proxies::from_env()?, Arc::clone(registry_metrics))?;
    let registry = Arc::new(Registry::new(hosts));
    let mut followers = JoinSet::new();
    followers.spawn(Arc::clone(&registry).follow_files());
    let mut pull_secrets = None;
    if config.resolve.keychain.pull_secrets {
        let cluster = Cluster::find(kubeconfig).context("resolve.keychain.pullSecrets needs the API server")?;
        let client = Arc::new(Client::new(cluster, Transport::Http1));
        followers.spawn(Arc::clone(&client).follow_files());
        pull_secrets = Some(PullSecrets::new(client, Arc::clone(registry_metrics)));
    }
    let resolver = Resolver::new(&config.resolve, registry, Arc::clone(metrics)).with_pull_secrets(pull_secrets);
    Ok((Arc::new(resolver), followers))
}

fn pipeline(config: &Config, resolver: &Arc<Resolver>, metrics: &Arc<AdmissionMetrics>, options: &Options) -> Pipeline {
    let policy = Arc::new(Policy::new(&config.policy, &config.resolve));
    let pipeline = Pipeline::new(policy, Arc::clone(resolver), Arc::clone(metrics));
    #[cfg(feature = "planted-bugs")]
    let pipeline = pipeline.with_planted(options.planted);
    #[cfg(not(feature = "planted-bugs"))]
    let _ = options;
    pipeline
}

/// What stands in the way of the file, for the health page.
#[derive(Debug, Default)]
pub struct Trouble(Mutex<Option<String>>);

impl Probe for Trouble {
    fn name(&self) -> &'static str {
        "config"
    }

    fn dead(&self) -> Option<String> {
        None
    }

    /// Never: the old configuration works, and all replicas read the same file. To fail here would turn a typing mistake into
    /// an outage of the whole webhook.
    fn unready(&self) -> Option<String> {
        None
    }

    fn note(&self) -> Option<String> {
        self.0.lock().clone()
    }

    fn page(&self) -> Option<String> {
        None
    }
}

/// Follows the file.
pub struct Reloader {
    /// The file.
    pub path: PathBuf,
    /// What runs.
    pub running: Config,
    /// Absent in roles without one.
    pub webhook: Option<Webhook>,
    /// Where it is counted.
    pub metrics: Metrics,
    /// Where a person reads of it.
    pub trouble: Arc<Trouble>,
}

impl Reloader {
    /// Looks at the file at each turn, and at once when `look` changes, until dropped.
    pub async fn follow(mut self, mut look: channel::Receiver<u64>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(RELOAD_INTERVAL) => {}
                Ok(()) = look.changed() => {}
            }
            self.turn();
        }
    }

    fn turn(&mut self) {
        match Config::load(&self.path).map_err(anyhow::Error::from).and_then(|fresh| self.take(fresh)) {
            Ok(waiting) => {
                self.metrics.last_succeeded.set(1);
                self.metrics.needs_restart.set(i64::from(!waiting.is_empty()));
                let sections = waiting.join(", ");
                let note = || format!("changed in the file and waiting for a restart: {sections}");
                if self.note((!waiting.is_empty()).then(note)) {
                    tracing::warn!(sections, "the configuration has changes that need a restart");
                }
            }
            Err(error) => {
                self.metrics.last_succeeded.set(0);
                if self.note(Some(format!("the file is refused, the old configuration stays: {error:#}"))) {
                    tracing::error!(error = format!("{error:#}"), "configuration not replaced");
                }
            }
        }
    }

    /// Takes what may change while running; answers the sections that need a restart.
    fn take(&mut self, fresh: Config) -> anyhow::Result<Vec<&'static str>> {
        let (policy, resolve) = (
            shown(&self.running.policy) != shown(&fresh.policy),
            shown(&self.running.resolve) != shown(&fresh.resolve),
        );
        let waiting = waiting(&self.running, &fresh);
        if policy || resolve {
            if let Some(webhook) = &mut self.webhook {
                webhook.change(&self.running, &fresh)?;
            }
            self.running.policy = fresh.policy;
            self.running.resolve = fresh.resolve;
            self.metrics.taken();
            tracing::info!(generation = self.metrics.generation.get(), policy, resolve, "configuration replaced");
        }
        Ok(waiting)
    }

    /// Keeps `note`; answers whether it says something new.
    fn note(&self, note: Option<String>) -> bool {
        let mut known = self.trouble.0.lock();
        let new = note.is_some() && *known != note;
        *known = note;
        new
    }
}

/// The sections that differ and are read at the start only.
fn waiting(running: &Config, fresh: &Config) -> Vec<&'static str> {
    let sections = |config: &Config| {
        // Named one by one, so that a new section has to be put somewhere.
        let Config {
            admission,
            health,
            resolve: _,
            policy: _,
            kubeconfig,
            watch,
            reconcile,
            log_format,
            log_level,
            drain,
        } = config;
        [
            ("admission", shown(admission)),
            ("health", shown(health)),
            ("kubernetes", shown(kubeconfig)),
            ("watch", shown(watch)),
            ("reconcile", shown(reconcile)),
            ("log", shown(&(log_format, log_level))),
            ("shutdown", shown(drain)),
        ]
    };
    let pairs = sections(running).into_iter().zip(sections(fresh));
    pairs.filter(|(old, new)| old.1 != new.1).map(|(old, _)| old.0).collect()
}

/// Settings are compared by what they show: every one of them derives `Debug`, with all its fields.
fn shown(settings: &impl std::fmt::Debug) -> String {
    format!("{settings:?}")
}
