//! The state of admission that is replaced with each new configuration, and the state that survives.
//!
//! A review uses one generation (state of one configuration) to its end. A new generation replaces the old generation
//! only after it was made completely.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use prometheus_client::registry::Registry as MetricsRegistry;
use service_contract::pool::Metrics as PoolMetrics;
use service_core::alert::AlertSink;
use service_core::known::Knowledge;
use service_core::kube::{self, Cluster, Transport};
use service_core::role::Start;
use service_core::share::Share;
use service_core::wire::Proxies;
use service_registry::{Hosts, Metrics as RegistryMetrics, Pieces, PullSecrets, Registry};
use tokio::task::JoinSet;

use crate::config::Config;
use crate::current::Current;
use crate::metrics::Metrics as AdmissionMetrics;
use crate::owners::{FromCluster, Owners};
use crate::pipeline::{Pipeline, Validation};
use crate::policy::Policy;
use crate::resolver::Resolver;
use crate::validator::{Approvals, Memory, Metrics as ValidationMetrics, Validators};

/// The state of admission that a new configuration replaces. All callers that review objects share this state.
pub struct Generations {
    current: Arc<Current>,
    client: Client,
    /// Cached verdicts of validators. The cached verdicts survive a new configuration, because each verdict is valid
    /// only for its rule and keys.
    approvals: Arc<Approvals>,
    memory: Memory,
    /// The memory that callers and registries may use together.
    share: Arc<Share>,
    alerts: Option<Arc<dyn AlertSink>>,
    known: Option<Arc<dyn Knowledge>>,
    /// The reader of objects' owners; made at first use.
    owners: Option<Arc<Owners>>,
    metrics: Arc<AdmissionMetrics>,
    validation_metrics: Arc<ValidationMetrics>,
    registry_metrics: Arc<RegistryMetrics>,
}

struct Client {
    registry: Arc<Registry>,
    resolver: Arc<Resolver>,
    /// The API server client; `None` if nothing is read from the API server.
    cluster: Option<Arc<kube::Client>>,
    /// Tasks in which the registry client and the API server client reload changed files.
    _followers: JoinSet<()>,
}

impl Generations {
    pub fn new(config: &Config, start: &mut Start<'_>) -> anyhow::Result<Self> {
        let registry: &mut MetricsRegistry = start.metrics;
        let (metrics, registry_metrics) = (AdmissionMetrics::register(registry), RegistryMetrics::register(registry));
        let validation_metrics = ValidationMetrics::register(registry);
        let share = Share::found(config.admission.as_ref().and_then(|settings| settings.max_held_bytes));
        start.edge.room().resize(share.room_bytes());
        let client = client(config, config.kubeconfig.as_deref(), &share, &metrics, &registry_metrics)?;
        let known = start.known.clone();
        let approvals = Approvals::new(&config.policy.verdicts, &config.resolve, Arc::clone(&validation_metrics));
        let approvals = Arc::new(approvals.sharing(known.clone()));
        let memory = Memory::of(&share).counting(PoolMetrics::register(registry));
        let owners = owners(config, &client);
        let parts =
            Parts { client: &client, approvals: &approvals, memory: &memory, share: &share, owners: owners.as_ref() };
        let alerts = start.alerts.clone();
        let current = Current::new(pipeline(config, &parts, &metrics)?.telling(alerts.clone()));
        Ok(Self {
            current,
            client,
            approvals,
            memory,
            share,
            alerts,
            known,
            owners,
            metrics,
            validation_metrics,
            registry_metrics,
        })
    }

    /// A pipeline for a process without a listener; its metrics are not served.
    pub fn alone(config: &Config) -> anyhow::Result<Arc<Current>> {
        let mut registry = MetricsRegistry::default();
        let (metrics, asked) = (AdmissionMetrics::register(&mut registry), RegistryMetrics::register(&mut registry));
        let counts = ValidationMetrics::register(&mut registry);
        let share = Share::found(None);
        let client = client(config, config.kubeconfig.as_deref(), &share, &metrics, &asked)?;
        let approvals = Arc::new(Approvals::new(&config.policy.verdicts, &config.resolve, counts));
        let (memory, owners) = (Memory::of(&share), owners(config, &client));
        let parts =
            Parts { client: &client, approvals: &approvals, memory: &memory, share: &share, owners: owners.as_ref() };
        Ok(Current::new(pipeline(config, &parts, &metrics)?))
    }

    pub fn current(&self) -> &Arc<Current> {
        &self.current
    }

    pub fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// Replaces the state by the state for the configuration `fresh`. Clients and their caches are not replaced if
    /// their settings are unchanged.
    pub fn change(&mut self, running: &Config, fresh: &Config) -> anyhow::Result<()> {
        let asks_cluster = |config: &Config| config.policy.child_approval || config.resolve.keychain.pull_secrets;
        let same_clients = running.resolve == fresh.resolve && asks_cluster(running) == asks_cluster(fresh);
        // Nothing is replaced before all parts are made: after an unreadable key everything stays as it was.
        let made = if same_clients {
            None
        } else {
            Some(client(fresh, running.kubeconfig.as_deref(), &self.share, &self.metrics, &self.registry_metrics)?)
        };
        let same_verdicts = same_clients && running.policy.verdicts == fresh.policy.verdicts;
        let approvals = if same_verdicts {
            Arc::clone(&self.approvals)
        } else {
            let metrics = Arc::clone(&self.validation_metrics);
            let approvals = Approvals::new(&fresh.policy.verdicts, &fresh.resolve, metrics);
            Arc::new(approvals.sharing(self.known.clone()))
        };
        let client = made.as_ref().unwrap_or(&self.client);
        let kept = self.owners.clone().filter(|_| same_clients && fresh.policy.child_approval);
        let owners = kept.or_else(|| owners(fresh, client));
        let parts =
            Parts { client, approvals: &approvals, memory: &self.memory, share: &self.share, owners: owners.as_ref() };
        let pipeline = pipeline(fresh, &parts, &self.metrics)?.telling(self.alerts.clone());
        // The followers of the former client end with it; reviews that began with it keep it as it is.
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

fn owners(config: &Config, client: &Client) -> Option<Arc<Owners>> {
    let cluster = client.cluster.clone().filter(|_| config.policy.child_approval)?;
    Some(Arc::new(Owners::new(Arc::new(FromCluster(cluster)))))
}

/// The objects from which a pipeline is made, besides its policy.
struct Parts<'p> {
    client: &'p Client,
    approvals: &'p Arc<Approvals>,
    memory: &'p Memory,
    share: &'p Share,
    owners: Option<&'p Arc<Owners>>,
}

fn pipeline(config: &Config, parts: &Parts<'_>, metrics: &Arc<AdmissionMetrics>) -> anyhow::Result<Pipeline> {
    let policy = Arc::new(Policy::new(config));
    let pieces: Arc<dyn Pieces> = parts.client.registry.clone();
    let validators = Validators::load(config, &pieces, parts.memory)?;
    let approvals = Arc::clone(parts.approvals);
    let validation = Validation { validators, approvals, owners: parts.owners.cloned() };
    let resolver = Arc::clone(&parts.client.resolver);
    Ok(Pipeline::new(policy, resolver, Arc::clone(metrics))
        .with_validation(validation)
        .within(Arc::clone(parts.share.reviews())))
}
