//! The webhook as a configuration makes it, and how a later configuration changes it without losing what is known.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio::task::JoinSet;

use super::Options;
use super::owners::FromCluster;
use crate::admission::{Endpoint, Metrics as AdmissionMetrics, Owners, Pipeline, Policy, Resolver, Validation};
use crate::config::{Config, Transport};
use crate::kube::{self, Cluster};
use crate::registry::{Hosts, Metrics as RegistryMetrics, PullSecrets, Registry};
use crate::validator::{Approvals, Memory, Metrics as ValidationMetrics, Validators};
use crate::wire::Proxies;

/// The webhook's parts that a new configuration replaces.
pub struct Webhook {
    endpoint: Arc<Endpoint>,
    client: Client,
    /// What validators have said; it outlives rules and keys, because what it knows is known for these alone.
    approvals: Arc<Approvals>,
    memory: Memory,
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

impl Webhook {
    /// The webhook of `config`.
    pub fn new(config: &Config, options: &Options, registry: &mut MetricsRegistry) -> anyhow::Result<Self> {
        let settings = config.admission.as_ref().context("the section `admission` is missing")?;
        let (metrics, registry_metrics) = (AdmissionMetrics::register(registry), RegistryMetrics::register(registry));
        let validation_metrics = ValidationMetrics::register(registry);
        let client = client(config, config.kubeconfig.as_deref(), &metrics, &registry_metrics)?;
        let approvals = approvals(config, &validation_metrics, options);
        let memory = Memory::default();
        #[cfg(feature = "planted-bugs")]
        let memory = memory.with_planted(options.planted);
        let owners = owners(config, &client);
        let parts = Parts { client: &client, approvals: &approvals, memory: &memory, owners: owners.as_ref() };
        let pipeline = pipeline(config, &parts, &metrics, options)?;
        let endpoint = Arc::new(Endpoint::new(settings, pipeline));
        let options = options.clone();
        Ok(Self { endpoint, client, approvals, memory, owners, metrics, validation_metrics, registry_metrics, options })
    }

    /// Where reviews are answered.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Changes to `fresh`; clients stay with all that they know when their settings do.
    pub fn change(&mut self, running: &Config, fresh: &Config) -> anyhow::Result<()> {
        let asks_cluster = |config: &Config| config.policy.child_approval || config.resolve.keychain.pull_secrets;
        let same_clients =
            shown(&running.resolve) == shown(&fresh.resolve) && asks_cluster(running) == asks_cluster(fresh);
        // Nothing is replaced before everything could be made: a key that cannot be read leaves all as it was.
        let made = if same_clients {
            None
        } else {
            Some(client(fresh, running.kubeconfig.as_deref(), &self.metrics, &self.registry_metrics)?)
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
        let parts = Parts { client, approvals: &approvals, memory: &self.memory, owners: owners.as_ref() };
        let pipeline = pipeline(fresh, &parts, &self.metrics, &self.options)?;
        // The followers of a client before end with it; reviews that began with it keep it as it is.
        if let Some(made) = made {
            self.client = made;
        }
        (self.approvals, self.owners) = (approvals, owners);
        self.endpoint.replace(pipeline);
        Ok(())
    }
}

fn client(
    config: &Config,
    kubeconfig: Option<&Path>,
    metrics: &Arc<AdmissionMetrics>,
    registry_metrics: &Arc<RegistryMetrics>,
) -> anyhow::Result<Client> {
    let hosts = Hosts::new(&config.resolve, Proxies::from_env()?, Arc::clone(registry_metrics))?;
    let registry = Arc::new(Registry::new(hosts));
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
    owners: Option<&'p Arc<Owners>>,
}

fn pipeline(
    config: &Config,
    parts: &Parts<'_>,
    metrics: &Arc<AdmissionMetrics>,
    options: &Options,
) -> anyhow::Result<Pipeline> {
    let policy = Arc::new(Policy::new(config));
    let validators = Validators::load(config, &parts.client.registry, parts.memory)?;
    let approvals = Arc::clone(parts.approvals);
    let validation = Validation { validators, approvals, owners: parts.owners.cloned() };
    let resolver = Arc::clone(&parts.client.resolver);
    let pipeline = Pipeline::new(policy, resolver, Arc::clone(metrics)).with_validation(validation);
    #[cfg(feature = "planted-bugs")]
    let pipeline = pipeline.with_planted(options.planted);
    #[cfg(not(feature = "planted-bugs"))]
    let _ = options;
    Ok(pipeline)
}

/// Settings are compared by what they show: every one of them derives `Debug`, with all its fields.
pub(super) fn shown(settings: &impl std::fmt::Debug) -> String {
    format!("{settings:?}")
}
