//! The configuration while the process runs: looked at again, and the parts of it that may change are swapped as a whole.
//!
//! `policy`, `validators`, `resolve`, `replicas.allow` and `replicas.rate` take effect at once: a review goes through the generation that
//! it began with, to its end. What else changed is named and waits for a restart. A file that cannot be used changes nothing and is named
//! once.

use std::num::NonZeroU32;
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
use super::followed::Followed;
use super::owners::FromCluster;
use crate::admission::{Current, Metrics as AdmissionMetrics, Owners, Pipeline, Policy, Resolver, Validation};
use crate::config::{self, Config, Transport};
use crate::edge::Probe;
use crate::kube::{self, Cluster};
use crate::registry::{Hosts, Metrics as RegistryMetrics, PullSecrets, Registry};
use crate::replicas::Api;
use crate::share::Share;
use crate::validator::{self, Approvals, Memory, Metrics as ValidationMetrics, Pieces, Validators};
use crate::wire::Proxies;

/// How often the file is read, whatever it looks like.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);
/// How often the files of the configuration are looked at: a key that is no longer trusted is to be refused within a second.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

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

/// Admission's parts that a new configuration replaces; whoever brings reviews shares them.
pub struct Admission {
    current: Arc<Current>,
    client: Client,
    /// What validators have said; it outlives rules and keys, because what it knows is known for these alone.
    approvals: Arc<Approvals>,
    memory: Memory,
    /// What everything from outside may hold.
    share: Arc<Share>,
    /// Who is asked about owners; made at first need.
    owners: Option<Arc<Owners>>,
    metrics: Arc<AdmissionMetrics>,
    validation_metrics: Arc<ValidationMetrics>,
    registry_metrics: Arc<RegistryMetrics>,
    options: Options,
}

/// What asks registries, and what it knows.
struct Client {
    registry: Arc<Registry>,
    resolver: Arc<Resolver>,
    /// The API server, when anything of it is read.
    cluster: Option<Arc<kube::Client>>,
    /// Follow the files of the two clients.
    _followers: JoinSet<()>,
}

impl Admission {
    /// The admission of `config`.
    pub fn new(config: &Config, options: &Options, registry: &mut MetricsRegistry) -> anyhow::Result<Self> {
        let (metrics, registry_metrics) = (AdmissionMetrics::register(registry), RegistryMetrics::register(registry));
        let validation_metrics = ValidationMetrics::register(registry);
        let share = Share::found(config.admission.as_ref().and_then(|settings| settings.max_held_bytes));
        #[cfg(feature = "planted-bugs")]
        let share = match options.planted {
            Some(crate::planted::Bug::HoldsEverything) => Share::of(usize::MAX >> 4),
            _ => share,
        };
        let client = client(config, config.kubeconfig.as_deref(), &share, &metrics, &registry_metrics)?;
        let approvals = approvals(config, &validation_metrics, options);
        let memory = Memory::of(&share);
        #[cfg(feature = "planted-bugs")]
        let memory = memory.with_planted(options.planted);
        let owners = owners(config, &client);
        let parts =
            Parts { client: &client, approvals: &approvals, memory: &memory, share: &share, owners: owners.as_ref() };
        let pipeline = pipeline(config, &parts, &metrics, options)?;
        let current = Current::new(pipeline);
        let options = options.clone();
        Ok(Self {
            current,
            client,
            approvals,
            memory,
            share,
            owners,
            metrics,
            validation_metrics,
            registry_metrics,
            options,
        })
    }

    /// What answers reviews.
    pub fn current(&self) -> &Arc<Current> {
        &self.current
    }

    /// What everything from outside may hold.
    pub fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// Changes to `fresh`; clients stay with all that they know when their settings do.
    fn change(&mut self, running: &Config, fresh: &Config) -> anyhow::Result<()> {
        let asks_cluster = |config: &Config| config.policy.child_approval || config.resolve.keychain.pull_secrets;
        let same_clients =
            shown(&running.resolve) == shown(&fresh.resolve) && asks_cluster(running) == asks_cluster(fresh);
        // Nothing is replaced before everything could be made: a key that cannot be read leaves all as it was.
        let made = if same_clients {
            None
        } else {
            Some(client(fresh, running.kubeconfig.as_deref(), &self.share, &self.metrics, &self.registry_metrics)?)
        };
        let same_verdicts = same_clients && running.policy.verdicts == fresh.policy.verdicts;
        let approvals = if same_verdicts {
            Arc::clone(&self.approvals)
        } else {
            approvals(fresh, &self.validation_metrics, &self.options)
        };
        let client = made.as_ref().unwrap_or(&self.client);
        let kept = self.owners.clone().filter(|_| same_clients && fresh.policy.child_approval);
        let owners = kept.or_else(|| owners(fresh, client));
        let parts =
            Parts { client, approvals: &approvals, memory: &self.memory, share: &self.share, owners: owners.as_ref() };
        let pipeline = pipeline(fresh, &parts, &self.metrics, &self.options)?;
        // The followers of a client before end with it; reviews that began with it keep it as it is.
        if let Some(made) = made {
            self.client = made;
        }
        (self.approvals, self.owners) = (approvals, owners);
        self.current.replace(pipeline);
        Ok(())
    }
}

fn client(
    config: &Config,
    kubeconfig: Option<&Path>,
    share: &Share,
    metrics: &Arc<AdmissionMetrics>,
    registry_metrics: &Arc<RegistryMetrics>,
) -> anyhow::Result<Client> {
    let hosts = Hosts::new(&config.resolve, Proxies::from_env()?, Arc::clone(registry_metrics))?;
    let registry = Arc::new(Registry::new(hosts.within(share)));
    let mut followers = JoinSet::new();
    followers.spawn(Arc::clone(&registry).follow_files());
    let pull_secrets = config.resolve.keychain.pull_secrets;
    let wanted_by = if pull_secrets { "resolve.keychain.pullSecrets" } else { "policy.automaticChildApproval" };
    let mut cluster = None;
    if pull_secrets || config.policy.child_approval {
        let found = Cluster::find(kubeconfig).with_context(|| format!("{wanted_by} needs the API server"))?;
        let client = Arc::new(kube::Client::new(found, Transport::Http1));
        followers.spawn(Arc::clone(&client).follow_files());
        cluster = Some(client);
    }
    let secrets = cluster.clone().filter(|_| pull_secrets);
    let secrets = secrets.map(|client| PullSecrets::new(client, Arc::clone(registry_metrics)));
    let source = Arc::clone(&registry);
    let resolver = Resolver::new(&config.resolve, source, Arc::clone(metrics)).with_pull_secrets(secrets);
    Ok(Client { registry, resolver: Arc::new(resolver), cluster, _followers: followers })
}

fn approvals(config: &Config, metrics: &Arc<ValidationMetrics>, options: &Options) -> Arc<Approvals> {
    let approvals = Approvals::new(&config.policy.verdicts, &config.resolve, Arc::clone(metrics));
    #[cfg(feature = "planted-bugs")]
    let approvals = approvals.with_planted(options.planted);
    #[cfg(not(feature = "planted-bugs"))]
    let _ = options;
    Arc::new(approvals)
}

fn owners(config: &Config, client: &Client) -> Option<Arc<Owners>> {
    let cluster = client.cluster.clone().filter(|_| config.policy.child_approval)?;
    Some(Arc::new(Owners::new(Arc::new(FromCluster(cluster)))))
}

/// What a pipeline is made of besides its policy.
struct Parts<'p> {
    client: &'p Client,
    approvals: &'p Arc<Approvals>,
    memory: &'p Memory,
    share: &'p Share,
    owners: Option<&'p Arc<Owners>>,
}

fn pipeline(
    config: &Config,
    parts: &Parts<'_>,
    metrics: &Arc<AdmissionMetrics>,
    options: &Options,
) -> anyhow::Result<Pipeline> {
    let policy = Arc::new(Policy::new(config));
    let pieces: Arc<dyn Pieces> = parts.client.registry.clone();
    let validators = Validators::load(config, &pieces, parts.memory)?;
    let approvals = Arc::clone(parts.approvals);
    let validation = Validation { validators, approvals, owners: parts.owners.cloned() };
    let resolver = Arc::clone(&parts.client.resolver);
    let pipeline = Pipeline::new(policy, resolver, Arc::clone(metrics))
        .with_validation(validation)
        .within(Arc::clone(parts.share.room()));
    #[cfg(feature = "planted-bugs")]
    let pipeline = pipeline.with_planted(options.planted);
    #[cfg(not(feature = "planted-bugs"))]
    let _ = options;
    Ok(pipeline)
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
    /// [`validator::trust`] of what runs.
    pub trust: String,
    /// Absent in roles that look at no image.
    pub admission: Option<Admission>,
    /// Absent in roles without that API.
    pub replicas: Option<Arc<Api>>,
    /// Where it is counted.
    pub metrics: Metrics,
    /// Where a person reads of it.
    pub trouble: Arc<Trouble>,
}

impl Reloader {
    /// Reads the file at each turn, soon when it or a file that it names looks different, and at once when `look` changes, until
    /// dropped.
    pub async fn follow(mut self, mut look: channel::Receiver<u64>) {
        let mut followed = Followed::of(&self.path, &self.running);
        loop {
            let turn = tokio::time::Instant::now() + RELOAD_INTERVAL;
            while tokio::time::Instant::now() < turn && !followed.changed() {
                tokio::select! {
                    () = tokio::time::sleep(LOOK_INTERVAL) => {}
                    Ok(()) = look.changed() => break,
                }
            }
            // Looked at before they are read: what changes meanwhile is another change.
            followed = Followed::of(&self.path, &self.running);
            self.turn();
            let now = Followed::of(&self.path, &self.running);
            if !now.is_of_the_same_files(&followed) {
                followed = now;
            }
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
                    tracing::warn!(name: crate::logs::names::CONFIG_WAITS, sections, "the configuration has changes that need a restart");
                }
            }
            Err(error) => {
                self.metrics.last_succeeded.set(0);
                if self.note(Some(format!("the file is refused, the old configuration stays: {error:#}"))) {
                    tracing::error!(name: crate::logs::names::CONFIG_REFUSED, error = format!("{error:#}"), "configuration not replaced");
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
        let trust = validator::trust(&fresh);
        let validators = shown(&self.running.validators) != shown(&fresh.validators) || self.trust != trust;
        let waiting = waiting(&self.running, &fresh);
        if policy || resolve || validators {
            if let Some(admission) = &mut self.admission {
                admission.change(&self.running, &fresh)?;
            }
            self.running.policy = fresh.policy;
            self.running.resolve = fresh.resolve;
            self.running.validators = fresh.validators;
            self.running.documents = fresh.documents;
            self.trust = trust;
        }
        let replicas = self.take_replicas(fresh.replicas.as_ref());
        if policy || resolve || validators || replicas {
            self.metrics.taken();
            let generation = self.metrics.generation.get();
            tracing::info!(
                name: crate::logs::names::CONFIG_REPLACED, generation, policy, validators, resolve, replicas, "configuration replaced"
            );
        }
        Ok(waiting)
    }

    /// Takes who may call the API over Deployments and how often; answers whether anything of that is new.
    fn take_replicas(&mut self, fresh: Option<&config::Replicas>) -> bool {
        let (Some(running), Some(fresh)) = (&mut self.running.replicas, fresh) else { return false };
        if (&running.allow, running.rate) == (&fresh.allow, fresh.rate) {
            return false;
        }
        running.allow = fresh.allow.clone();
        running.rate = fresh.rate;
        if let Some(api) = &self.replicas {
            api.replace(&running.allow, running.rate);
        }
        true
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
            replicas,
            health,
            resolve: _,
            validators: _,
            documents: _,
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
            ("replicas", shown(&replicas.as_ref().map(without_what_is_taken))),
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

/// The settings of the API over Deployments that are read at the start only.
fn without_what_is_taken(settings: &config::Replicas) -> config::Replicas {
    let one = NonZeroU32::MIN;
    let bucket = config::Bucket { per_second: one, burst: one };
    let rate = config::Rate { client: bucket, all: bucket };
    config::Replicas { allow: config::Allow::default(), rate, ..settings.clone() }
}

/// Settings are compared by what they show: every one of them derives `Debug`, with all its fields.
fn shown(settings: &impl std::fmt::Debug) -> String {
    format!("{settings:?}")
}
